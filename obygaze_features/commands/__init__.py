"""Define the subcommands of `obygaze` for manifests, extraction and stores."""
