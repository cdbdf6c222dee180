"""Generate a small corpus with known labels: real H.264 files of abstract shapes."""

from obygaze_features.demo.corpus import UNLABELLED, PlannedMovie, beside_planted, plan_corpus, write_corpus

__all__ = ["UNLABELLED", "PlannedMovie", "beside_planted", "plan_corpus", "write_corpus"]
