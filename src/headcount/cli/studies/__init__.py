"""One file per subcommand of `headcount study`; each exports COMMAND."""
