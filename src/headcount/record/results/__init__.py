"""One file per kind of result, named as its study; each exports RESULT, a frozen dataclass with a VERSION."""
