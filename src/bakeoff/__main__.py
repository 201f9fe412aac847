"""`python -m bakeoff` is the same as `bakeoff`."""

from bakeoff.cli import main

main()
