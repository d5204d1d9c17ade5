"""What people look at: figures, tables, the page. Reads records and nothing else; never imports torch."""
