"""The paper's folds are the original code's, clip for clip, and what leaks is counted."""

import gzip
import json
from dataclasses import replace

import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import Fold
from obygaze_studies.obygaze12.corpus import TASKS
from obygaze_studies.obygaze12.paper_folds import (
    CAPTION_WITHOUT_LEAK,
    Negatives,
    classifier_folds,
    concept_folds,
    concept_labels,
    count_leaks,
    count_without_video,
    draw_folds,
    head_fold,
    leak_caption,
    movie_folds,
)

NEGATIVES = {
    "Sc_HNc_vs_EN": Negatives.EN,
    "Sc_HNc_vs_conceptbar": Negatives.ALL,
    "Sc_HNc_vs_conceptbar_inter_ENbar": Negatives.HN_S,
}


@pytest.fixture(scope="module")
def oracle(shared_data):
    with gzip.open(shared_data / "oracles" / "splits.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def assert_same_clips(fold, expected):
    """Hold that a fold has the original's clips on each side, in the original's order."""
    assert list(fold.train) == expected["train"]["ids"]
    assert list(fold.validation) == expected["val"]["ids"]
    assert list(fold.test) == expected["test"]["ids"]


@pytest.mark.parametrize("file", ["02_EN_S", "02_HN_S", "02_ENHN_S"])
def test_classifier_folds_are_the_originals_id_for_id(obygaze12, oracle, file):
    task = TASKS[file.removeprefix("02_").lower()]
    folds = classifier_folds(obygaze12, task, task)
    assert [fold.name for fold in folds] == oracle["LinearProbing_KFold"][file]["folds_used_by_process_train"]
    for number, expected in oracle["LinearProbing_KFold"][file]["folds"].items():
        assert_same_clips(folds[int(number)], expected)


def any_number_of_clips(size_of_fold):
    """Return a number of clips of which a tenth, rounded down, is a fold of this size."""
    return 10 * size_of_fold + 5


@pytest.mark.parametrize("file", ["02_EN_S", "02_HN_S", "02_ENHN_S"])
def test_the_folds_of_a_class_that_are_drawn_are_those_that_the_original_draws(oracle, file):
    """From a larger class so many folds of a tenth are drawn as are as large as the smallest class."""
    for number, expected in oracle["LinearProbing_KFold"][file]["folds"].items():
        sizes = expected["draw"]["mini_fold_size"]
        n_clips_of_smallest = any_number_of_clips(min(sizes))
        for size, drawn in zip(sizes, expected["draw"]["drawn_folds"], strict=True):
            assert list(draw_folds(any_number_of_clips(size), n_clips_of_smallest, int(number))) == drawn


def test_film_pairs_are_the_originals_id_for_id(obygaze12, oracle):
    for file, expected in oracle["MovieBySet_KFold"]["files"].items():
        task = TASKS[file.lower()]
        films = expected["fold_to_movie"]
        folds = {fold.name: fold for fold in movie_folds(obygaze12, task, task)}
        for tested, row in expected["pairs"].items():
            for validated, sides in row.items():
                name = f"test {tested} {films[tested]}, validation {validated} {films[validated]}"
                assert_same_clips(folds[name], sides)


def test_there_are_90_film_pairs_and_films_3_and_7_are_always_trained_on(obygaze12):
    folds = movie_folds(obygaze12, TASKS["hn_s"], TASKS["enhn_s"])
    assert len({fold.name for fold in folds}) == len(folds) == 90
    for fold in folds:
        movies = {obygaze12.by_id[clip_id].movie for clip_id in fold.validation + fold.test}
        assert len(movies) == 2
        assert not movies & {"tt0212338", "tt1142988"}
        assert not movies & {obygaze12.by_id[clip_id].movie for clip_id in fold.train}
        assert {obygaze12.by_id[clip_id].level for clip_id in fold.test} == {"EN", "HN", "S"}
        assert {obygaze12.by_id[clip_id].level for clip_id in fold.train} == {"HN", "S"}


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_concept_folds_and_labels_are_the_originals_id_for_id(obygaze12, oracle, negatives):
    for concept, splits in oracle["XCLIP_Multi_SHN"]["exp"][negatives].items():
        folds = concept_folds(obygaze12, concept, NEGATIVES[negatives])
        labels = concept_labels(obygaze12, concept, NEGATIVES[negatives])
        for number, expected in splits.items():
            assert_same_clips(folds[int(number)], expected)
            for side in ("train", "val", "test"):
                result = "".join(str(labels[clip_id]) for clip_id in expected[side]["ids"])
                assert result == expected[side]["labels"]


LEAKING_FOLD = Fold(name=0, train=("a", "b"), validation=("c",), test=("b", "c", "d"))
FOLD_WITHOUT_LEAK = Fold(name=1, train=("a",), validation=(), test=("b", "c", "d"))


def test_leaks_into_training_and_validation_are_counted_apart():
    """Of the test clips b, c and d, b is trained on and c is validated on."""
    n_in_training, n_in_validation = count_leaks(LEAKING_FOLD)
    assert (n_in_training, n_in_validation) == (1, 1)


@pytest.mark.parametrize(
    ("folds", "caption"),
    [
        (
            [LEAKING_FOLD, FOLD_WITHOUT_LEAK],
            "LEAKS: 0 to 1 of 3 test clips are in training, 0 to 1 in validation",
        ),
        ([FOLD_WITHOUT_LEAK], CAPTION_WITHOUT_LEAK),
        (
            [Fold(name=0, train=("a",), validation=("b",), test=("b", "c"))],
            "LEAKS: 0 of 2 test clips are in training, 1 in validation",
        ),
    ],
    ids=["two folds", "no leak", "one fold"],
)
def test_a_caption_says_how_many_test_clips_of_each_fold_leak(folds, caption):
    assert leak_caption(folds) == caption


def test_a_heads_fold_is_disjoint_and_has_the_originals_sizes(obygaze12):
    fold = head_fold(obygaze12, TASKS["hn_s"], TASKS["enhn_s"])
    assert not set(fold.train) & set(fold.test)
    assert len(fold.test) == 100
    assert len(head_fold(obygaze12, TASKS["enhn_s"], TASKS["en_s"]).test) == 71


def test_clips_without_a_video_are_in_no_fold_and_are_counted(obygaze12):
    fold = classifier_folds(obygaze12, TASKS["enhn_s"], TASKS["enhn_s"])[0]
    assert all(obygaze12.by_id[clip_id].video for clip_id in fold.train + fold.validation + fold.test)
    assert count_without_video(obygaze12, ["fold_enhn_s"]) == 51


def test_a_manifest_without_the_split_files_is_refused_with_the_way_out(obygaze12):
    bare = obygaze12.with_clips(replace(clip, extras={}) for clip in obygaze12)
    with pytest.raises(ProtocolError, match="fold_hn_s"):
        classifier_folds(bare, TASKS["hn_s"], TASKS["hn_s"])
    without = obygaze12.with_clips(replace(clip, video="") for clip in obygaze12)
    with pytest.raises(ProtocolError, match="video"):
        concept_folds(without, "Body", Negatives.EN)


def test_the_movie_set_has_no_en_s(obygaze12):
    with pytest.raises(ProtocolError, match="en_s"):
        movie_folds(obygaze12, TASKS["en_s"], TASKS["enhn_s"])


def test_a_fold_of_another_level_or_no_number_is_refused(tmp_path):
    clip = Clip("a-1", "a", video="a.avi", level="EN", extras={"fold_hn_s": "3"})
    with pytest.raises(ProtocolError, match=r"clip a-1.*fold_hn_s.*EN"):
        classifier_folds(Manifest((clip,), tmp_path), TASKS["hn_s"], TASKS["hn_s"])
    odd = replace(clip, level="S", extras={"fold_hn_s": "three"})
    with pytest.raises(ProtocolError, match=r"clip a-1: column fold_hn_s.*three"):
        classifier_folds(Manifest((odd,), tmp_path), TASKS["hn_s"], TASKS["hn_s"])
