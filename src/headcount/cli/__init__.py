"""The command line: one file per command. Parses, calls one library function, shows the result."""
