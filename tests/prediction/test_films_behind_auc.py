"""The numbers of clips and films beside an AUC are those that it is of."""

import numpy as np

from obygaze_models.persistence.evidence import describe_evidence
from obygaze_models.prediction.evidence import as_left_out, collect_evidence


def test_films_of_one_class_are_not_counted_beside_an_auc_that_they_have_no_part_in():
    """Of five films, one has clips of both classes: the AUC is its own."""
    clips = np.array([f"c{number}" for number in range(50)])
    movies = np.repeat(["a", "b", "c", "d", "e"], 10)
    labels = np.repeat([0, 0, 1, 1, 0], 10)
    labels[movies == "e"] = np.tile([0, 1], 5)
    scores = np.random.default_rng(0).normal(size=50) + 4 * labels

    evidence = collect_evidence(as_left_out(clips, movies, labels, scores), p_skilled=0.95)

    assert evidence["auc"] is not None
    assert describe_evidence(evidence).endswith(", 10 clips of 1 film")
