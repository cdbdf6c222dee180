"""What a classifier finds in a film's windows is kept, and named where it is likelier than in the film."""

import json

import numpy as np
import pandas as pd
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store import PlannedClip, Stage, seal, staging_path
from obygaze_features.store.records import ClipFeatures, ClipResult
from obygaze_features.store.testing import toy_group
from obygaze_film.claims import Words, document, film_claims, phrases
from obygaze_film.claims import kinds as claim_kinds
from obygaze_film.classes import classes_of_span
from obygaze_film.page import film_page
from obygaze_film.page.view import FilmView
from obygaze_film.score import score_film
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.evidence import span_evidence
from obygaze_models.prediction.explain import describe, explain
from tests.film.films import PLANTED, film_store

NAMES = ("revolver", "stage", "stove")
SEEN = (0.80, 0.15, 0.05)
"""Probability of each class in windows with a gun."""
ELSEWHERE = (0.02, 0.90, 0.08)
"""Probability of each class in the others."""


def groups_with_answers(vector_size):
    """Describe the groups of a store that has pooled vectors and the answers of a classifier, net."""
    answers = {"head": "classifier", "beside": "net", "architecture": {"features": list(NAMES)}}
    return [
        toy_group("descriptors", {"pooled": np.zeros((1, vector_size), np.float32)}),
        toy_group("net.answers", {"pooled": np.zeros((1, len(NAMES)), np.float32)}, **answers),
    ]


def answers_for(clip):
    """Return the classifier's answers: a revolver in windows with a planted gun, and a stage elsewhere."""
    has_gun = any(clip.start_s < end_s and clip.end_s > start_s for start_s, end_s in PLANTED)
    return np.array(SEEN if has_gun else ELSEWHERE, np.float32)


def with_answers(store, folder):
    """Seal a store of the same windows and vectors with answers of a classifier, net, beside them."""
    clips = list(store.clips_at(range(len(store.table))).values())
    (vector_size,) = store["descriptors"].clip_shape("pooled")
    planned = [PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in clips]
    stage = Stage.open(
        staging_path(folder / "answered"), planned, groups_with_answers(vector_size), {"name": "planted"}
    )
    frame_times, frame_numbers = np.zeros(2), np.zeros(2, np.int64)  # nobody reads them here
    results = []
    for clip, vector in zip(clips, store["descriptors"].pooled(), strict=True):
        features = {
            "descriptors": ClipFeatures(frame_times, frame_numbers, {"pooled": vector}),
            "net.answers": ClipFeatures(frame_times, frame_numbers, {"pooled": answers_for(clip)}),
        }
        results.append(ClipResult(clip.clip_id, "ok", groups=features))
    with stage.writer() as writer:
        writer.commit(results)
    return of.open_store(seal(stage.path, folder / "answered", licence="CC0-1.0"))


@pytest.fixture(scope="module")
def store_with_answers(tmp_path_factory):
    """The store of a film of ten minutes, with the answers of the classifier net to each window."""
    folder = tmp_path_factory.mktemp("answered")
    return with_answers(film_store(folder, "tt0000001"), folder)


@pytest.fixture(scope="module")
def film(store_with_answers, trained_models):
    """The film, scored: its windows have a revolver where a gun is planted, and a stage elsewhere."""
    return score_film(store_with_answers, [trained_models.paths["pcbm_lr"]])


def test_classes_of_windows_are_kept_with_their_mean_in_the_film(film, store_with_answers):
    """The classifier net gives each window a probability of each class: revolver, stage and stove.

    `usual_p` is the class's mean in the film.
    """
    answers = store_with_answers["net.answers"].pooled()  # [windows, classes]
    p_of_stage = answers[:, 1]  # the second of the three

    rows_of_stage = film.classes[film.classes["class"] == "stage"]

    assert set(film.classes["classifier"]) == {"net"}
    assert rows_of_stage["p"].to_numpy() == pytest.approx(p_of_stage)
    assert rows_of_stage["usual_p"].to_numpy() == pytest.approx(p_of_stage.mean())


def test_classes_of_windows_are_read_back_as_they_were_written(film, tmp_path):
    """A classifier gave each window of the film probabilities of classes, such as a revolver."""
    film.write(tmp_path / "film")
    pd.testing.assert_frame_equal(Timeline.read(tmp_path / "film").classes, film.classes)


CLASSES_OF_TWO_WINDOWS = pd.DataFrame(
    {
        "start_s": [0.0, 4.0, 4.0],
        "end_s": [4.0, 8.0, 8.0],
        "classifier": "net",
        "class": ["stage", "stage", "stove"],
        "p": [0.8, 0.2, 0.6],
        "usual_p": [0.1, 0.1, 0.3],
    }
)
"""Of 0-4 s and 4-8 s. The first window has no row for a stove, which was improbable there: its p is 0."""


def p_by_class_of_span(start_s, end_s):
    """Return the probabilities of the classes that are likelier in a span than in the film, likeliest first.

    The film is that of `CLASSES_OF_TWO_WINDOWS`.
    """
    classes = classes_of_span(CLASSES_OF_TWO_WINDOWS, start_s, end_s)["net"]
    return {class_seen.name: class_seen.p for class_seen in classes}


def test_only_a_class_likelier_in_a_span_than_in_the_film_is_named():
    """A classifier of pictures has the classes "stage" and "stove". A span has two windows, to 4 and to 8 s.

    "stage" has .8 and .2 in these, .5 on average, and .1 in the whole film: it is named. "stove" has 0 and
    .6: .3 on average, no more than in the film.
    """
    assert p_by_class_of_span(start_s=0.0, end_s=8.0) == pytest.approx({"stage": 0.5})


def test_a_part_of_a_window_has_the_windows_classes_likeliest_first():
    """The span 5 to 8 s lies in the window of 4 to 8 s, in which a stove has .6 and a stage .2.

    Both are likelier there than in the film, where a stove has .3 and a stage .1.
    """
    p_by_class = p_by_class_of_span(start_s=5.0, end_s=8.0)

    assert list(p_by_class) == ["stove", "stage"]
    assert p_by_class == pytest.approx({"stove": 0.6, "stage": 0.2})


def test_a_span_without_windows_has_no_classes():
    """The film's two windows are from 0 to 4 and from 4 to 8 s, and the span begins behind them."""
    assert classes_of_span(CLASSES_OF_TWO_WINDOWS, start_s=8.0, end_s=12.0) == {}


def test_an_end_that_was_rounded_brings_no_classes_of_the_window_before():
    """The span begins 1 ms before the end of the last window, of which nobody sees anything in it."""
    assert classes_of_span(CLASSES_OF_TWO_WINDOWS, start_s=7.999, end_s=12.0) == {}


def test_passages_with_a_gun_name_the_revolver_only(film):
    """The classifier sees a stage in all the film, and a revolver where a gun is planted.

    A stage is not likelier there than elsewhere, so that it says nothing of the passage.
    """
    passages_with_gun = []
    for claim in film_claims(film):
        if isinstance(claim, claim_kinds.Passage):
            middle_s = (claim.time.start_s + claim.time.end_s) / 2
            if any(start < middle_s < end for start, end in PLANTED):
                passages_with_gun.append(claim)
    assert passages_with_gun

    for passage in passages_with_gun:
        (class_seen,) = passage.classes
        assert class_seen.what == "revolver"
        assert class_seen.who == ("net",)
        assert class_seen.number > 2 * class_seen.usual_p
        as_json = json.loads(json.dumps(document(passage)))
        assert as_json["classes"][0]["what"] == "revolver"


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_page_names_the_classes_that_are_seen_in_a_passage(film, language):
    """A revolver is seen in the passages with a planted gun."""
    passages = [claim for claim in film_claims(film) if isinstance(claim, claim_kinds.Passage)]
    with_classes = [claim.classes for claim in passages if claim.classes]
    sentence = phrases.classes_sentence(with_classes[0], Words(language))
    assert "revolver" in sentence
    assert sentence in film_page([film], language=language)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_page_on_a_film_without_a_classifiers_answers_names_no_classes(planted_timeline, language):
    """The film has guns, and no classifier was asked, which would have named a revolver."""
    assert "revolver" not in film_page([planted_timeline], language=language)
    assert phrases.classes_sentence([], Words(language)) == ""


class OpenFilmOfTheTest:
    """What the desk has open of a film: its timeline, and neither its features nor its video."""

    store, media = None, ()

    def __init__(self, film):
        self.timeline = film

    def view(self, language):
        return FilmView(self.timeline, "f", Words(language), top=20)


@pytest.mark.parametrize(
    ("start_s", "end_s", "is_named"),
    [(42.0, 60.0, True), (90.0, 140.0, False)],
    ids=["with a gun", "without"],
)
def test_the_desk_names_the_classes_that_are_seen_in_a_span(film, start_s, end_s, is_named):
    """A gun is planted from 40 to 72 s, and none from 90 to 140 s: without one no class stands out."""
    opened = OpenFilmOfTheTest(film)
    sentence = span_evidence(opened, [opened], start_s, end_s, Words("en"))["classes"]
    assert ("revolver" in sentence) == is_named
    assert bool(sentence) == is_named


def test_explain_names_the_classes_seen_in_a_clip_beside_the_models_decision(
    store_with_answers, trained_models
):
    """A gun is planted from 40 to 72 s: the classifier gives a revolver .8 in the window from 44 to 52 s."""
    store = store_with_answers
    clips = store.clips_at(range(len(store.table))).values()
    (clip_with_gun,) = [clip for clip in clips if clip.start_s == 44]
    model = om.load_model(trained_models.paths["pcbm_lr"])

    explained = explain(model, [store], clip_with_gun.clip_id, {})

    (class_seen,) = explained.classes["net"]
    assert class_seen.name == "revolver"
    assert class_seen.p == pytest.approx(0.8, abs=1e-3)
    assert "revolver (0.80" in describe(explained, model)
