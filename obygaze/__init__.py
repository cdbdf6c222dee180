"""The `obygaze` command: one table of contents over the feature store and the zoo."""
