"""`python -m obygaze`."""

from obygaze.cli import main

main()
