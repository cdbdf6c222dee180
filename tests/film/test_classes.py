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
from obygaze_film.claims import Words, document, film_claims, kinds, phrases
from obygaze_film.classes import classes_of_span
from obygaze_film.page import film_page
from obygaze_film.score import score_film
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.evidence import span_evidence
from obygaze_models.prediction.explain import describe, explain
from tests.film.films import PLANTED, film_store

NAMES = ("revolver", "stage", "stove")
SEEN = (0.80, 0.15, 0.05)
"""Probability of each class in windows with a gun."""
ELSEWHERE = (0.02, 0.90, 0.08)


def with_answers(store, folder):
    """Seal a store of the same windows and vectors with a classifier's answers beside them: guns are seen."""
    told = {"head": "classifier", "beside": "net", "architecture": {"features": list(NAMES)}}
    vectors = store["descriptors"]
    groups = [
        toy_group("descriptors", {"pooled": np.zeros((1, vectors.clip_shape("pooled")[0]), np.float32)}),
        toy_group("net.answers", {"pooled": np.zeros((1, len(NAMES)), np.float32)}, **told),
    ]
    clips = list(store.clips_at(range(len(store.table))).values())
    planned = [PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in clips]
    stage = Stage.open(staging_path(folder / "answered"), planned, groups, {"name": "planted"})
    moments = np.zeros(2), np.zeros(2, np.int64)
    results = []
    for clip, vector in zip(clips, vectors.pooled(), strict=True):
        is_seen = any(clip.start_s < end and clip.end_s > start for start, end in PLANTED)
        answers = np.array(SEEN if is_seen else ELSEWHERE, np.float32)
        features = {
            "descriptors": ClipFeatures(*moments, {"pooled": vector}),
            "net.answers": ClipFeatures(*moments, {"pooled": answers}),
        }
        results.append(ClipResult(clip.clip_id, "ok", groups=features))
    with stage.writer() as writer:
        writer.commit(results)
    return of.open_store(seal(stage.path, folder / "answered", licence="CC0-1.0"))


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answered")
    return with_answers(film_store(folder, "tt0000001"), folder)


@pytest.fixture(scope="module")
def film(answered, trained):
    return score_film(answered, [trained.paths["pcbm_lr"]])


def test_classes_of_windows_are_kept_with_their_mean_in_the_film(film, answered, tmp_path):
    p = answered["net.answers"].pooled()
    assert set(film.classes["classifier"]) == {"net"}
    of_stage = film.classes[film.classes["class"] == "stage"]
    assert of_stage["p"].to_numpy() == pytest.approx(p[:, 1])
    assert of_stage["usual_p"].to_numpy() == pytest.approx(p[:, 1].mean())
    film.write(tmp_path / "film")
    pd.testing.assert_frame_equal(Timeline.read(tmp_path / "film").classes, film.classes)


def test_a_class_that_is_improbable_everywhere_is_not_kept_but_the_most_probable_one_is():
    classes = pd.DataFrame(
        {
            "start_s": [0.0, 4.0, 4.0],
            "end_s": [4.0, 8.0, 8.0],
            "classifier": "net",
            "class": ["a", "a", "b"],
            "p": [0.8, 0.2, 0.6],
            "usual_p": [0.1, 0.1, 0.3],
        }
    )
    whole = classes_of_span(classes, 0.0, 8.0)["net"]
    assert [(one.name, one.p) for one in whole] == [("a", pytest.approx(0.5))]  # b: .3, as in the film
    last = classes_of_span(classes, 5.0, 8.0)["net"]
    assert [(one.name, one.p) for one in last] == [("b", pytest.approx(0.6)), ("a", pytest.approx(0.2))]
    assert classes_of_span(classes, 8.0, 12.0) == {}


def test_a_passage_names_what_is_seen_there_and_not_what_is_usual(film):
    passages = [claim for claim in film_claims(film) if isinstance(claim, kinds.Passage)]
    with_guns = []
    for claim in passages:
        middle = (claim.time.start_s + claim.time.end_s) / 2
        if any(start < middle < end for start, end in PLANTED):
            with_guns.append(claim)
    assert with_guns
    for claim in with_guns:
        (seen,) = claim.classes
        assert (seen.what, seen.who) == ("revolver", ("net",))
        assert seen.number > 2 * seen.usual_p
        assert json.loads(json.dumps(document(claim)))["classes"][0]["what"] == "revolver"


@pytest.mark.parametrize("language", ["en", "fr"])
def test_page_and_desk_say_it_and_films_without_answers_say_nothing(film, timeline, language):
    passages = [claim for claim in film_claims(film) if isinstance(claim, kinds.Passage)]
    words = Words(language)
    said = next(phrases.classes_sentence(claim.classes, words) for claim in passages if claim.classes)
    assert "revolver" in said
    assert said in film_page([film], language=language)
    assert "revolver" not in film_page([timeline], language=language)
    assert phrases.classes_sentence([], words) == ""


def test_the_desk_says_it_of_any_span(film):
    class Opened:
        timeline, store, media = film, None, ()

        def view(self, language):
            from obygaze_film.page.view import FilmView

            return FilmView(film, "f", Words(language), top=20)

    opened = Opened()
    assert "revolver" in span_evidence(opened, [opened], 42.0, 60.0, Words("en"))["classes"]
    assert span_evidence(opened, [opened], 90.0, 140.0, Words("en"))["classes"] == ""


def test_explain_names_them_beside_the_decision(answered, trained):
    clips = answered.clips_at(range(len(answered.table))).values()
    gun = next(clip.clip_id for clip in clips if clip.start_s >= 44)
    model = om.load_model(trained.paths["pcbm_lr"])
    explained = explain(model, [answered], gun, {})
    (seen,) = explained.classes["net"]
    assert (seen.name, seen.p) == ("revolver", pytest.approx(0.8, abs=1e-3))
    assert "revolver (0.80" in describe(explained, model)
