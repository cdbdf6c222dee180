"""Define the subcommands of `obygaze` that redo papers."""
