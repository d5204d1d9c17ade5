"""python -m headcount: the command, where its script is not on the path."""

from headcount.cli.main import main

main(prog_name="python -m headcount")
