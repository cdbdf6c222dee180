"""The subcommands of `obygaze` that make, read and check manifests and stores."""
