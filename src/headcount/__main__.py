"""python -m headcount: runs the command line if its script is not on the path."""

from headcount.cli.main import main

main(prog_name="python -m headcount")
