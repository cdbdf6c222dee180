"""Benchmark tasks of neighbouring papers, on the same stores; a package each."""
