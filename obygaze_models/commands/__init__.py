"""The subcommands of `obygaze` that train, evaluate and draw."""
