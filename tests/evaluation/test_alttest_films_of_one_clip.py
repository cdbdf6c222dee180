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
    "films",
    [np.arange(N_CLIPS), np.maximum(np.arange(N_CLIPS), 9)],
    ids=["each film has one clip", "one film has ten clips, each other film one"],
)
def test_a_machine_as_good_as_the_annotators_may_stand_in(truth, annotators, films):
    """The machine is right in 97 % of 200 clips, and the two annotators in 95 %.

    The test has a control that must fail: the machine's own answers in another order. Films of one clip must
    exchange their answers for it. Shuffled within each film they would stay as they are, and the control
    would pass like the machine, as if the annotators agreed too little to tell good from bad.
    """
    machine = labels_of_skill(np.random.default_rng(3), truth, 0.97)

    assert alt_test(machine, annotators, films).answer == "may stand in"


def test_no_machine_may_stand_in_for_annotators_who_agree_by_chance(truth):
    """Two annotators and a machine are right in half of 200 films of one clip each, as if they tossed coins.

    The machine agrees with one annotator as well as the other one does, but so would any random answers.
    """
    rng = np.random.default_rng(4)
    annotators = {name: labels_of_skill(rng, truth, 0.5) for name in ("AB", "CD")}
    machine = labels_of_skill(rng, truth, 0.5)

    result = alt_test(machine, annotators, films=np.arange(N_CLIPS))

    assert result.answer != "may stand in"
