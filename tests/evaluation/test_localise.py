"""Frames are compared with segments: planted moments are found, and chance is what knowing nothing gives."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from benchmarks.planted import frames
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_models.commands.predict_commands import _localisation_table
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.localise import Localisation, localise, marked_segments, read_frames
from obygaze_models.evaluation.metrics import average_precision
from obygaze_models.models.attention import AttentionPooling
from tests.planted_frames import planted_frames

CLIP_S = 60.0
"""Seconds from one clip's start to the next one's."""


def frames_of(scores, movies):
    """Lay out scores [clips, frames] as a table: frames a second apart, clips a minute apart."""
    n_clips, n_frames = scores.shape
    starts = CLIP_S * np.arange(n_clips)
    return pd.DataFrame(
        {
            "clip_id": np.repeat([f"c{clip:04}" for clip in range(n_clips)], n_frames),
            "movie": np.repeat(movies, n_frames),
            "time_s": (starts[:, None] + np.arange(n_frames)).ravel(),
            "weight": scores.ravel(),
        }
    )


def segments_of(event, movies):
    """Make a segment of the first to the last marked frame of each clip; `event` is [clips, frames]."""
    segments = {}
    for clip, is_marked in enumerate(event):
        places = np.flatnonzero(is_marked)
        if places.size:
            span = (CLIP_S * clip + places[0], CLIP_S * clip + places[-1] + 1)
            segments.setdefault(movies[clip], []).append(span)
    return segments


@pytest.mark.long
def test_attention_points_at_planted_moments():
    """A model is trained on ten films in which moments are planted, and tested on four others.

    It weighs each frame of a clip. The heaviest frame should lie in the moment in nine of ten clips
    (pointing), and the moment's frames should mostly come before others (average precision). Weights that are
    shifted by chance within the film hardly ever reach as much (p).
    """
    clips = planted_frames(n_movies=14)
    is_train = clips.movies < 8
    is_validation = (clips.movies == 8) | (clips.movies == 9)
    is_test = clips.movies >= 10
    model = AttentionPooling()
    model.fit(
        clips.X[is_train], clips.y[is_train], X_val=clips.X[is_validation], y_val=clips.y[is_validation]
    )
    films = np.array([f"film{movie}" for movie in clips.movies[is_test]])

    weights_of_frames = frames_of(model.weights(clips.X[is_test]), films)
    planted_moments = segments_of(clips.is_event[is_test], films)
    result = localise(weights_of_frames, planted_moments)

    pooled = result.pooled.set_index("measure")
    assert pooled.loc["pointing", "value"] >= 0.9
    assert pooled.loc["average_precision", "value"] >= 0.8
    assert pooled.loc["average_precision", "low"] > pooled.loc["average_precision", "chance"]
    assert (pooled["p"] <= 0.005).all()


def test_equal_weights_point_at_moments_as_often_as_moments_are_long():
    """Twelve clips of two films. In each, the moment is 3 of 32 frames, and all weights are 1.

    Any of the 32 frames could be the highest one, and 3 of them are right.
    """
    movies = np.repeat(["a", "b"], 6)
    event = np.zeros((12, 32), dtype=bool)
    event[:, 10:13] = True
    equal_weights = np.ones((12, 32))

    pooled = localise(frames_of(equal_weights, movies), segments_of(event, movies)).pooled

    assert pooled.set_index("measure").loc["pointing", "value"] == pytest.approx(3 / 32)


def mean_precision(event, scores, pairs):
    """Return the mean AP of one clip's event and another clip's scores, over pairs of clips."""
    return np.mean([average_precision(event[clip], scores[other]) for clip, other in pairs])


def test_chance_is_the_mean_with_the_scores_of_each_other_clip_of_the_movie():
    """Six clips of 12 frames with random scores are of two movies. All but clip 5 have an event.

    The value of a movie is the mean AP with which a clip's scores find the frames of its own event. Chance is
    the mean AP with which the scores of each other clip of the movie find that event. Both are listed below
    as pairs: (the clip of the event, the clip of the scores). Clip 5 has scores, but no event to find.
    """
    rng = np.random.default_rng(3)
    movies = np.array(["a", "b", "a", "a", "b", "a"])
    scores = rng.integers(4, size=(6, 12)).astype(float)  # many are equal
    event = np.zeros((6, 12), dtype=bool)
    event[0, 0:4] = True
    event[1, 3:7] = True
    event[2, 9:12] = True
    event[3, 5:9] = True
    event[4, 10:12] = True

    by_movie = localise(frames_of(scores, movies), segments_of(event, movies)).by_movie.set_index("movie")

    value = by_movie["average_precision"]
    own_scores_in_a = [(0, 0), (2, 2), (3, 3)]
    own_scores_in_b = [(1, 1), (4, 4)]
    assert value["a"] == pytest.approx(mean_precision(event, scores, own_scores_in_a))
    assert value["b"] == pytest.approx(mean_precision(event, scores, own_scores_in_b))
    chance = by_movie["average_precision_chance"]
    others_scores_in_a = [(0, 2), (0, 3), (0, 5), (2, 0), (2, 3), (2, 5), (3, 0), (3, 2), (3, 5)]
    others_scores_in_b = [(1, 4), (4, 1)]
    assert chance["a"] == pytest.approx(mean_precision(event, scores, others_scores_in_a))
    assert chance["b"] == pytest.approx(mean_precision(event, scores, others_scores_in_b))


def test_p_is_twice_the_share_of_shifts_of_a_movies_clips_that_are_as_far_from_chance():
    """Each of five clips has a mark in another frame and scores that are 1 there and 0 elsewhere.

    A shift gives each clip the scores of the clip some places on, in a circle. Only one of the five shifts,
    by 0 clips, is as good: any other misses the marks. Its share of 1/5 is doubled, as the test is
    two-sided: p is 2/5.

    With another clip's scores, the highest score is beside the mark, so that pointing is 0 by chance. AP
    takes frames of equal scores together: the mark, with a score of 0, is found among all six frames, so
    that AP is 1/6 by chance.
    """
    movies = np.array(["a", "a", "a", "a", "a"])
    event = np.array(
        [
            [1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 1, 0],
        ],
        dtype=bool,
    )
    scores = event.astype(float)
    n_drawn_shifts = 4000  # many, so that the p of drawn shifts is within .03 of 2/5

    result = localise(frames_of(scores, movies), segments_of(event, movies), n_shifts=n_drawn_shifts)

    pooled = result.pooled.set_index("measure")
    assert pooled["value"].to_dict() == {"average_precision": 1.0, "pointing": 1.0}
    assert pooled.loc["average_precision", "chance"] == pytest.approx(1 / 6)
    assert pooled.loc["pointing", "chance"] == 0
    assert pooled["p"].tolist() == pytest.approx([2 / 5, 2 / 5], abs=0.03)


def test_how_well_scores_find_segments_does_not_depend_on_ids_of_clips_or_the_order_of_rows():
    """Two films have six clips of six frames each. A segment covers one frame of each of the clips 2 to 7.

    The scores of all frames are random numbers. Then each clip gets its id read backwards, and the rows of
    the table of frames are shuffled: the metrics over both films (`pooled`) must stay what they were.
    """
    movies = np.repeat(["a", "b"], 6)
    event = np.zeros((12, 6), dtype=bool)
    for frame in range(6):
        event[2 + frame, frame] = True
    segments = segments_of(event, movies)
    frames = frames_of(np.random.default_rng(1).random((12, 6)), movies)
    renamed = frames.assign(clip_id=frames["clip_id"].str[::-1])
    shuffled = renamed.sample(frac=1, random_state=0)

    result = localise(frames, segments)
    result_of_shuffled = localise(shuffled, segments)

    pd.testing.assert_frame_equal(result_of_shuffled.pooled, result.pooled)


def test_for_chance_the_scores_of_fewer_frames_are_stretched_over_the_clip_with_the_event():
    """The first clip has an event in the last two of its six frames, and scores that fall.

    Pointing is whether the highest score is in the event. By the clip's own scores it is not: 0. Chance is
    what the scores of the film's other clip find of the same event. This clip has only three frames, with
    scores 1, 2 and 3. Stretched over six frames they are 1 1 2 2 3 3, highest in the event, so chance is 1.
    """
    movies = np.array(["a", "a"])
    absent = np.nan
    scores = np.array([[6.0, 5, 4, 3, 2, 1], [absent, 1, absent, 2, 3, absent]])
    event = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]], dtype=bool)

    by_movie = localise(frames_of(scores, movies), segments_of(event, movies)).by_movie

    (movie,) = by_movie.to_dict("records")
    assert movie["pointing"] == 0.0
    assert movie["pointing_chance"] == 1.0
    assert movie["average_precision_chance"] == 1.0


def test_how_often_a_clips_highest_frame_is_in_an_event_by_chance_is_undefined_for_a_film_of_one_clip():
    """Pointing is right in a clip whose frame of the highest score is in the marked event.

    By chance it is right as often as with the scores of another clip of the film. Film a has one clip, and so
    no other; film b has two.
    """
    movies = np.array(["a", "b", "b"])
    event = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], dtype=bool)
    scores = event.astype(float)

    by_movie = localise(frames_of(scores, movies), segments_of(event, movies)).by_movie

    assert by_movie["pointing_chance"].isna().tolist() == [True, False]  # of a and b


def test_scores_of_a_single_clip_have_no_chance_to_be_compared_with_and_a_p_of_1():
    """Chance is how well the scores of other clips of the film point to a clip's event; here is no other.

    The clip's own scores are highest in the event, but nothing can show that others would be worse.
    """
    movies = np.array(["a"])
    event = np.array([[1, 0, 0, 0, 0, 0]], dtype=bool)
    scores = event.astype(float)

    pooled = localise(frames_of(scores, movies), segments_of(event, movies)).pooled

    assert pooled["chance"].isna().all()
    assert pooled["p"].tolist() == [1.0, 1.0]


@pytest.mark.long  # simulates
def test_scores_that_know_nothing_of_the_moments_are_found_above_chance_in_5_percent_at_most():
    """The benchmark `frames` draws films with moments, and smooth scores that are independent of them.

    Three draws are made in each of its conditions. AP and pointing (whether the highest score is in a moment)
    may be called above chance in 5 % of all draws. A count above `max_by_chance` would then come with a
    probability of 1 in 1000. If chance were that of frames in random order, the interval of AP would be above
    it in 28 % of draws.
    """
    (simulation,) = frames.ROWS
    results = []
    for condition in simulation.cells:
        for seed in range(3):
            generator = np.random.default_rng(seed)
            results.append(simulation.draw(generator, *condition.arguments))

    n_draws = len(results)
    max_by_chance = binom.ppf(0.999, n_draws, 0.05)
    for finding in (
        "AP above chance",
        "pointing above chance",
        "AP's interval above",
        "pointing's interval above",
    ):
        n_found = sum(result[finding] for result in results)
        assert n_found <= max_by_chance, finding


def test_clips_marked_wholly_or_not_at_all_are_left_out_and_counted():
    """There is nothing to find in a clip whose frames are all marked or all unmarked.

    Of three clips, of three frames each, one frame is marked, none, and all.
    """
    movies = np.array(["a", "a", "b"])
    event = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=bool)
    scores = np.array([[0.0, 1, 2], [3, 4, 5], [6, 7, 8]])

    result = localise(frames_of(scores, movies), segments_of(event, movies))

    assert result.n_left_out == 2
    assert result.by_movie["n_clips"].tolist() == [1]


def test_clips_to_whose_frames_a_model_gives_no_scores_are_counted_apart():
    """A film has three clips of two frames, each with an event in the second frame.

    The third has NaN as scores: a model gives none to a clip that is unlike all that it was trained on. Two
    clips are compared with their events, and none is left out for another reason.
    """
    scores = np.array([[0.1, 0.9], [0.9, 0.1], [np.nan, np.nan]])
    table = frames_of(scores, ["f"] * 3)
    event = np.array([[False, True], [False, True], [False, True]])

    result = localise(table, segments_of(event, ["f"] * 3), n_shifts=9)

    assert result.by_movie["n_clips"].sum() == 2
    assert result.n_left_out == 0
    assert result.n_without_scores == 1


def test_frames_in_which_nothing_can_be_found_are_refused():
    """The frames are of a clip of the film a, from 0 to 3 s, with their weights in the column `weight`."""
    frames = frames_of(np.ones((1, 3)), np.array(["a"]))
    segments_of_a = {"a": [(0, 1)]}
    segments_of_another_film = {"b": [(0, 1)]}
    frames_without_times = frames.assign(time_s=np.nan)

    with pytest.raises(ProtocolError, match="nothing to find"):
        localise(frames, segments_of_another_film, "weight")
    with pytest.raises(ProtocolError, match="'p'"):
        localise(frames, segments_of_a, "p")  # there is no column p
    with pytest.raises(ProtocolError, match="no time"):
        localise(frames_without_times, segments_of_a, "weight")


# --- segments that people marked
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("levels", "concept"),
    [(["S"], None), ((), "Body"), ([" s"], None), ((), "body")],
    ids=["by level", "by concept", "by a level in other letters", "by a concept in other letters"],
)
def test_marked_segments_are_listed_by_annotator(levels, concept):
    """Two annotators mark the film a from 0 to 4 s, as S and with Body, and say EN from 10 to 14 s."""
    clips = (
        Clip("marked-ann", "a", "", start_s=0.0, end_s=4.0, level="S", concepts=("Body",), annotator="ann"),
        Clip("other-ann", "a", "", start_s=10.0, end_s=14.0, level="EN", annotator="ann"),
        Clip("marked-bob", "a", "", start_s=0.0, end_s=4.0, level="S", concepts=("Body",), annotator="bob"),
        Clip("other-bob", "a", "", start_s=10.0, end_s=14.0, level="EN", annotator="bob"),
    )
    manifest = Manifest(clips, Path(), builtin_codebook("obygaze12"))
    segments = marked_segments(manifest, levels, concept)

    assert segments == {"ann": {"a": [(0.0, 4.0)]}, "bob": {"a": [(0.0, 4.0)]}}


def marks(annotator, film, *, seen_score, **extras):
    """Mark a film as S from 0 to 4 s, blindly (0) or in sight of a score (1), and as EN from 10 to 14 s."""
    how = {"seen_score": seen_score, **extras}
    return (
        Clip(
            f"{film}-{annotator}-0",
            film,
            "",
            start_s=0.0,
            end_s=4.0,
            level="S",
            annotator=annotator,
            extras=how,
        ),
        Clip(
            f"{film}-{annotator}-1",
            film,
            "",
            start_s=10.0,
            end_s=14.0,
            level="EN",
            annotator=annotator,
            extras={**how, "seen_score": "0"},
        ),
    )


def test_segments_that_were_marked_in_sight_of_a_models_score_are_no_truth_for_models():
    """Ann marked the film a in sight of a model's score, and the film b blindly; Bob marked a blindly.

    Ann's mark in a may follow the model, so that the model would be right by its own score: a model is
    compared with the two other marks alone. Where all marks were made in sight, that is an error.
    """
    clips = (
        *marks("ann", "a", seen_score="1"),
        *marks("ann", "b", seen_score="0"),
        *marks("bob", "a", seen_score="0"),
    )
    manifest = Manifest(clips, Path(), builtin_codebook("obygaze12"))

    segments = marked_segments(manifest, ["S"])

    assert segments == {"ann": {"b": [(0.0, 4.0)]}, "bob": {"a": [(0.0, 4.0)]}}
    seen_by_all = manifest.with_clips(marks("ann", "a", seen_score="1"))
    with pytest.raises(ProtocolError, match="2 judgements in sight of a model's score"):
        marked_segments(seen_by_all, ["S"])


def test_marks_under_two_definitions_of_the_codebook_are_not_taken_together():
    """Ann marked segments in two films blindly, and the codebook was changed between the films.

    What S means changed with it, so segments of S from both films are refused together. The message names
    the definitions by the beginning of their digests.
    """
    first_definition = "a" * 64
    second_definition = "b" * 64
    clips = (
        *marks("ann", "a", seen_score="0", definition=first_definition),
        *marks("ann", "b", seen_score="0", definition=second_definition),
    )
    manifest = Manifest(clips, Path(), builtin_codebook("obygaze12"))

    with pytest.raises(ManifestError, match="under aaaaaa"):
        marked_segments(manifest, ["S"])


def test_a_concept_that_was_marked_in_sight_of_a_models_score_is_no_truth_even_without_a_level():
    """Ann and Bob marked Body in a film and gave no levels. Ann saw the model's score, and Bob did not.

    A model is compared with Bob's mark alone; where Ann's is the only one, that is an error.
    """
    by_ann = Clip("a", "m", "", 0.0, 4.0, None, ("Body",), "ann", {"seen_score": "1"})
    by_bob = Clip("b", "m", "", 2.0, 6.0, None, ("Body",), "bob", {"seen_score": "0"})
    manifest = Manifest((by_ann, by_bob), Path(), builtin_codebook("obygaze12"))

    assert marked_segments(manifest, concept="Body") == {"bob": {"m": [(2.0, 6.0)]}}
    with pytest.raises(ProtocolError, match="1 judgement in sight of a model's score"):
        marked_segments(manifest.with_clips([by_ann]), concept="Body")


@pytest.mark.parametrize(
    ("levels", "concept", "message"),
    [((), None, "found"), (("S",), "Body", "found"), (("loud",), None, "'loud'"), (("HN",), None, "HN")],
    ids=["neither levels nor a concept", "both", "an unknown level", "a level that nobody gave"],
)
def test_segments_are_refused_unless_chosen_by_levels_or_by_a_concept_that_somebody_gave(
    levels, concept, message
):
    """The manifest's only segment has the level S, and no concept.

    Either levels or a concept say which segments are to be found, not both and not neither; a level must be
    in the codebook and be given to a segment.
    """
    clips = (Clip("a-0", "a", "", start_s=0.0, end_s=4.0, level="S"),)
    manifest = Manifest(clips, Path(), builtin_codebook("obygaze12"))
    with pytest.raises((ProtocolError, ManifestError), match=message):
        marked_segments(manifest, levels, concept)


@pytest.mark.parametrize(
    ("text", "column"),
    [("movie,clip_id,weight\na,b,0.5\n", "time_s"), ("movie,clip_id,time_s,weight\na,b,1,much\n", "weight")],
    ids=["without times", "with a word for a weight"],
)
def test_a_table_that_holds_no_frames_is_refused(tmp_path, text, column):
    """A table of frames says of each frame its film, its clip, its time and a number such as its weight."""
    (tmp_path / "frames.csv").write_text(text)
    with pytest.raises((ManifestError, ProtocolError), match=f"column {column}"):
        read_frames(tmp_path / "frames.csv")


def test_the_printed_table_has_interval_and_chance_where_there_are_any():
    """Two films of 3 and 4 clips; of the second measure neither an interval nor a chance level is known."""
    by_movie = pd.DataFrame({"movie": ["a", "b"], "n_clips": [3, 4]})
    pooled = pd.DataFrame(
        {
            "measure": ["average_precision", "pointing"],
            "value": [0.7, 0.5],
            "low": [0.6, np.nan],
            "high": [0.8, np.nan],
            "chance": [0.25, np.nan],
            "p": [0.01, 0.5],
        }
    )

    lines = _localisation_table({"AB": Localisation(by_movie, pooled, n_left_out=0, n_shifts=99)})

    of_precision = next(line for line in lines if "average" in line)
    of_pointing = next(line for line in lines if "pointing" in line)
    assert re.findall(r"[0-9.]+", of_precision) == ["0.700", "0.600", "0.800", "0.250", "0.010", "2", "7"]
    assert re.findall(r"[0-9.]+", of_pointing) == ["0.500", "0.500", "2", "7"]
