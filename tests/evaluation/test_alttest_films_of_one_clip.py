"""The alternative annotator test where films have one clip each, such as trailers that are labelled whole."""

import numpy as np
import pytest

from obygaze_models.evaluation.alttest import alt_test

N_CLIPS = 200


def labels_of_skill(rng, truth, skill):
    """Draw labels of somebody who is right in a share of clips."""
    is_right = rng.random(len(truth)) < skill
    return np.where(is_right, truth, ~truth).astype(np.int64)


@pytest.fixture
def truth():
    return np.random.default_rng(1).random(N_CLIPS) < 0.5


@pytest.fixture
def annotators(truth):
    rng = np.random.default_rng(2)
    return {name: labels_of_skill(rng, truth, 0.95) for name in ("AB", "CD")}


@pytest.mark.parametrize(
    "films", [np.arange(N_CLIPS), np.maximum(np.arange(N_CLIPS), 9)], ids=["one", "most"]
)
def test_a_machine_as_good_as_the_annotators_may_stand_in(truth, annotators, films):
    """Within films of one clip, its answers in another order were its answers, and so the control passed.

    The annotators, who agree in nine of ten clips, were then said to agree too little to tell.
    """
    machine = labels_of_skill(np.random.default_rng(3), truth, 0.97)

    assert alt_test(machine, annotators, films).answer == "may stand in"


def test_annotators_who_agree_by_chance_still_tell_nothing(truth):
    """Whoever answers anything agrees with them as well as they do."""
    rng = np.random.default_rng(4)
    annotators = {name: labels_of_skill(rng, truth, 0.5) for name in ("AB", "CD")}

    result = alt_test(labels_of_skill(rng, truth, 0.5), annotators, np.arange(N_CLIPS))

    assert result.answer != "may stand in"
