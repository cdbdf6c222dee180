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


@pytest.mark.parametrize(
    ("file", "task"), [("02_EN_S", "en_s"), ("02_HN_S", "hn_s"), ("02_ENHN_S", "enhn_s")]
)
def test_classifier_folds_have_the_clips_of_the_original_code_in_its_order(obygaze12, oracle, file, task):
    """The oracle has the folds that the paper's code makes of each split file, with their names and clips."""
    original = oracle["LinearProbing_KFold"][file]

    folds = classifier_folds(obygaze12, TASKS[task], TASKS[task])

    assert [fold.name for fold in folds] == original["folds_used_by_process_train"]
    for number, expected in original["folds"].items():
        assert_same_clips(folds[int(number)], expected)


def any_number_of_clips(size_of_fold):
    """Return a number of clips of which a tenth, rounded down, is a fold of this size."""
    return 10 * size_of_fold + 5


@pytest.mark.parametrize("file", ["02_EN_S", "02_HN_S", "02_ENHN_S"])
def test_of_a_larger_class_the_same_tenths_are_drawn_as_by_the_original_code(oracle, file):
    """The paper's code divides the clips of each class into tenths, which it calls mini folds.

    So that classes have about as many clips, it draws of a larger class as many tenths as together are as
    large as the smallest class. The oracle has the size of a tenth of each class, and the numbers of the
    tenths that were drawn in each fold.
    """
    for number_of_fold, expected in oracle["LinearProbing_KFold"][file]["folds"].items():
        sizes_of_tenths = expected["draw"]["mini_fold_size"]
        n_clips_of_smallest_class = any_number_of_clips(min(sizes_of_tenths))
        for size, drawn_by_original in zip(sizes_of_tenths, expected["draw"]["drawn_folds"], strict=True):
            n_clips_of_class = any_number_of_clips(size)

            drawn = draw_folds(n_clips_of_class, n_clips_of_smallest_class, int(number_of_fold))

            assert list(drawn) == drawn_by_original


def name_of_film_pair(original, test_number, validation_number):
    """Return our name of a film pair, of which the oracle has the numbers of both films."""
    film_of_number = original["fold_to_movie"]
    test = f"test {test_number} {film_of_number[test_number]}"
    validation = f"validation {validation_number} {film_of_number[validation_number]}"
    return f"{test}, {validation}"


def test_film_pairs_have_the_clips_of_the_original_code_in_its_order(obygaze12, oracle):
    """In a fold of film pairs one film is tested, a second one is validated, and the rest are trained on.

    The oracle has the clips of each pair, by the numbers of its two films, as the paper's code makes them:
    for each file of the released movie set, which is of one task.
    """
    for file, original in oracle["MovieBySet_KFold"]["files"].items():
        task = TASKS[file.lower()]
        fold_of_name = {fold.name: fold for fold in movie_folds(obygaze12, train=task, test=task)}

        for test_number, pairs_of_test_film in original["pairs"].items():
            for validation_number, expected in pairs_of_test_film.items():
                name = name_of_film_pair(original, test_number, validation_number)
                assert_same_clips(fold_of_name[name], expected)


def movies_and_levels(manifest, clip_ids):
    """Return the set of movies, and the set of levels, of some clips."""
    clips = [manifest.by_id[clip_id] for clip_id in clip_ids]
    return {clip.movie for clip in clips}, {clip.level for clip in clips}


def test_there_are_90_film_pairs_and_films_3_and_7_are_always_trained_on(obygaze12):
    """Two of the twelve films are never held out; ten can be tested, each with nine others for validation.

    Models are trained on HN and S, and tested on EN, HN and S.
    """
    film_3 = "tt0212338"
    film_7 = "tt1142988"

    folds = movie_folds(obygaze12, TASKS["hn_s"], TASKS["enhn_s"])

    assert len(folds) == 10 * 9
    assert len({fold.name for fold in folds}) == 10 * 9
    for fold in folds:
        movies_held_out, _ = movies_and_levels(obygaze12, fold.validation + fold.test)
        movies_trained_on, levels_trained_on = movies_and_levels(obygaze12, fold.train)
        _, levels_tested = movies_and_levels(obygaze12, fold.test)
        assert len(movies_held_out) == 2
        assert film_3 not in movies_held_out
        assert film_7 not in movies_held_out
        assert not movies_held_out & movies_trained_on
        assert levels_tested == {"EN", "HN", "S"}
        assert levels_trained_on == {"HN", "S"}


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_concept_folds_have_the_clips_and_labels_of_the_original_code(obygaze12, oracle, negatives):
    """A concept is told from clips without it, its negatives: EN clips, all clips, or HN and S clips alone.

    The oracle has, for each concept and fold, the clips of each side and their labels, as a text of 0 and 1.
    """
    folds_of_concepts = oracle["XCLIP_Multi_SHN"]["exp"][negatives]
    for concept, original_folds in folds_of_concepts.items():
        folds = concept_folds(obygaze12, concept, NEGATIVES[negatives])
        label_of = concept_labels(obygaze12, concept, NEGATIVES[negatives])

        for number, expected in original_folds.items():
            assert_same_clips(folds[int(number)], expected)
            for side in ("train", "val", "test"):
                labels = [str(label_of[clip_id]) for clip_id in expected[side]["ids"]]
                assert "".join(labels) == expected[side]["labels"]


LEAKING_FOLD = Fold(name=0, train=("a", "b"), validation=("c",), test=("b", "c", "d"))
FOLD_WITHOUT_LEAK = Fold(name=1, train=("a",), validation=(), test=("b", "c", "d"))


def test_leaks_into_training_and_validation_are_counted_apart():
    """Of the test clips b, c and d, b is trained on and c is validated on."""
    n_in_training, n_in_validation = count_leaks(LEAKING_FOLD)

    assert n_in_training == 1
    assert n_in_validation == 1


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
    """`LEAKING_FOLD` tests on the clips b, c and d, of which it trains on b and validates on c.

    Where folds differ, the caption has the fewest and the most.
    """
    assert leak_caption(folds) == caption


def test_a_bottlenecks_head_is_tested_on_as_many_clips_as_originally_and_on_none_of_training(obygaze12):
    """The head of a bottleneck decides by concept values. It is trained on a task and tested on another.

    For each such pair of tasks the original draws one fold: it tests on 100 clips of the task EN and HN vs S,
    and on 71 of EN vs S. A head that is trained on HN vs S sees none of the 100.
    """
    fold_tested_on_enhn_s = head_fold(obygaze12, train=TASKS["hn_s"], test=TASKS["enhn_s"])
    fold_tested_on_en_s = head_fold(obygaze12, train=TASKS["enhn_s"], test=TASKS["en_s"])

    assert not set(fold_tested_on_enhn_s.train) & set(fold_tested_on_enhn_s.test)
    assert len(fold_tested_on_enhn_s.test) == 100
    assert len(fold_tested_on_en_s.test) == 71


def test_clips_without_a_video_are_in_no_fold(obygaze12):
    """The original code left them out, as it had no features of them."""
    first_fold, *_ = classifier_folds(obygaze12, train=TASKS["enhn_s"], test=TASKS["enhn_s"])

    for clip_id in first_fold.train + first_fold.validation + first_fold.test:
        assert obygaze12.by_id[clip_id].video


def test_clips_without_a_video_that_the_released_folds_name_are_counted(obygaze12):
    """The released split files put clips of EN, HN and S into folds (column `fold_enhn_s`).

    51 of these clips have no video in the released ObyGaze12.
    """
    assert count_without_video(obygaze12, ["fold_enhn_s"]) == 51


def test_a_manifest_without_the_columns_of_the_split_files_is_refused_by_their_name(obygaze12):
    """Classifier folds are read from columns such as `fold_hn_s`, which the released split files fill."""
    without_columns = obygaze12.with_clips(replace(clip, extras={}) for clip in obygaze12)

    with pytest.raises(ProtocolError, match="fold_hn_s"):
        classifier_folds(without_columns, TASKS["hn_s"], TASKS["hn_s"])


def test_a_manifest_without_videos_is_refused_by_the_name_of_the_column(obygaze12):
    """Concept folds have clips with a video alone, and here no clip names one."""
    without_videos = obygaze12.with_clips(replace(clip, video="") for clip in obygaze12)

    with pytest.raises(ProtocolError, match="video"):
        concept_folds(without_videos, "Body", Negatives.EN)


def test_film_pairs_of_the_task_en_s_are_refused_as_they_were_never_released(obygaze12):
    """The released movie set, of which film pairs are made, has files of hn_s and enhn_s alone."""
    with pytest.raises(ProtocolError, match="en_s"):
        movie_folds(obygaze12, TASKS["en_s"], TASKS["enhn_s"])


@pytest.mark.parametrize(
    ("level", "fold", "message"),
    [
        ("EN", "3", r"clip a-1.*fold_hn_s.*EN"),
        ("S", "three", r"clip a-1: column fold_hn_s.*three"),
    ],
    ids=["a clip of another level", "no number"],
)
def test_a_fold_of_another_level_or_no_number_is_refused(tmp_path, level, fold, message):
    """The column `fold_hn_s` has the number of the fold of each HN and S clip; the manifest has one clip."""
    clip = Clip("a-1", movie="a", video="a.avi", level=level, extras={"fold_hn_s": fold})

    with pytest.raises(ProtocolError, match=message):
        classifier_folds(Manifest((clip,), tmp_path), TASKS["hn_s"], TASKS["hn_s"])
