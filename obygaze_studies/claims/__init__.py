"""Sentences of the papers, tested on released data."""
