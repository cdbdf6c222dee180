"""Define the subcommands of `obygaze` that train, evaluate and draw."""
