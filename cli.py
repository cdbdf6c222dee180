"""Run the command from a checkout: python cli.py --help. Installed, the command is `obygaze`."""

from obygaze.cli import main

if __name__ == "__main__":
    main()
