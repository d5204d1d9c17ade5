"""One file per architecture family; the file name is the family's name. See docs/how-to/add-a-family.md."""
