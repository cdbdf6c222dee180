"""Define the subcommands of `obygaze film`."""
