"""A model that gives all clips of a film one score has an AUC of .5 in whatever films: so its file says."""

import numpy as np

from obygaze_models.persistence.evidence import describe_evidence, may_be_chance
from obygaze_models.prediction.evidence import as_left_out, collect_evidence

CLIPS = np.array([f"c{number}" for number in range(40)])
MOVIES = np.repeat(["a", "b", "c", "d"], 10)
LABELS = np.tile([0, 1], 20)


def test_the_auc_of_scores_that_do_not_vary_within_films_is_one_half_with_an_interval_without_width():
    """A model gives all ten clips of a film the same score, and other films other scores.

    Then it ranks no clips of a film, and its AUC is .5 in any film, so that there is nothing uncertain about
    it. The table of metrics of a run has .500 [.500, .500] of such a model; the evidence must agree.
    """
    scores_by_film_alone = np.repeat([0.1, 0.2, 0.3, 0.4], 10)
    held_out_scores = as_left_out(CLIPS, MOVIES, LABELS, scores_by_film_alone)

    evidence = collect_evidence(held_out_scores, p_skilled=0.25)

    assert describe_evidence(evidence).startswith("AUC on films left out .50 [.50, .50] ")
    assert may_be_chance(evidence)


def test_scores_that_vary_and_rank_no_better_than_chance_in_every_film_have_an_uncertain_auc():
    """Two scores in each film, each as often positive as negative, rank its clips by chance."""
    scores = np.tile([0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0], 4)

    evidence = collect_evidence(as_left_out(CLIPS, MOVIES, LABELS, scores), p_skilled=0.25)

    assert evidence["auc"] == 0.5
    assert evidence["auc_low"] < 0.5 < evidence["auc_high"]
