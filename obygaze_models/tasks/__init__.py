"""Run benchmark tasks of neighbouring papers on the same stores, one package per task."""
