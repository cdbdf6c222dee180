"""A small corpus with planted truths: real H.264 files of abstract shapes, labelled by construction."""

from obygaze_features.demo.corpus import PlannedMovie, beside_planted, plan_corpus, write_corpus

__all__ = ["PlannedMovie", "beside_planted", "plan_corpus", "write_corpus"]
