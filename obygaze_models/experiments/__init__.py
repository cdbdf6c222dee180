"""Experiments: each trains and tests models under a protocol and leaves one run."""
