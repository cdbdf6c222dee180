"""Provide the `obygaze` command: one table of contents for the feature store and the model zoo."""
