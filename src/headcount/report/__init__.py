"""Reports: figures, tables and the page. Reads only records; never imports torch."""
