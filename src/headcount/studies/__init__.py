"""One experiment per file: it fills a Record."""
