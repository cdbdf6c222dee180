"""What people judge is learnt, tested strictly and recorded; what cannot be learnt from is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest, read_manifest, write_manifest
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film import Timeline, learn_from_judgements, read_films, score_film
from obygaze_film.claims import Words, sentences
from obygaze_film.errors import FilmError
from obygaze_film.film_stores import stores_near
from obygaze_film.learning import (
    ONLY_JUDGED_FILM,
    _accepted_definitions,
    beside_former,
    change_of,
    learning_report,
)
from obygaze_film.page.packed import packed_shares
from obygaze_film.page.view import FilmView
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page
from obygaze_models.evaluation import auc, t_interval
from tests.command import obygaze
from tests.film.films import film_store, scored_film
from tests.film.page.invented import with_model
from tests.planted_models import LIGHT, D, codebook

EVENT = np.eye(D)[3]
"""What violence looks like in the new films; in the corpus it means nothing."""

N = 60
HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score"


def plant_scored_film(folder, trained_models, movie, seed):
    """Score a film of 60 windows of 8 s every 4 s, the first of which failed.

    Two windows in five are violent, which shows as `EVENT`. Returns which ones, [60].
    """
    rng = np.random.default_rng(seed)
    is_violent = rng.random(N) < 0.4
    noise = rng.normal(size=(N, D))
    # The light of the corpus's films, so that the film is like training.
    features = noise + 3 * is_violent[:, None] * EVENT + 1.35 * LIGHT
    movie_of = {f"{movie}-{row:03}": movie for row in range(N)}
    spans = {clip_id: (4.0 * row, 4.0 * row + 8) for row, clip_id in enumerate(movie_of)}
    path = seal_arrays(
        folder / movie / "windows",
        movie_of,
        {"descriptors": {"pooled": features.astype("f4")}},
        spans=spans,
        failed={f"{movie}-000": "the file ends here"},
    )
    score_film(open_store(path), [trained_models.paths["linear"]]).write(folder / movie / "scored")
    return is_violent


def write_judgements(table, is_violent, windows, *, movie, seen_score=0):
    """Write AB's judgements of some windows of a film into a table: each is right.

    `seen_score` is 1 if AB saw the model's score before judging.
    """
    lines = []
    for row in windows:
        level = "violent" if is_violent[row] else "calm"
        start_s, end_s = 4 * row, 4 * row + 8
        lines.append(f"x{row},{movie},,{start_s},{end_s},{level},,AB,{seen_score}")
    table.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")


JUDGED_FILMS = ("n0", "n1", "n2")
N_BLIND, N_IN_SIGHT = 40, 19
"""Windows of each film that AB judged blindly, and windows of `n0` that AB judged in sight of the score."""


class LearntFromThree(NamedTuple):
    """What `film learn` made of three judged films, and a film that nobody judged.

    Attributes
    ----------
    folder
        Holds the films' folders, and the folder `learning_result` that the command wrote.
    arguments
        Arguments of the command, without --out.
    unjudged_violent : ndarray of bool, shape [60]
        Which windows of the film `new` are violent.
    """

    folder: Path
    arguments: list[object]
    unjudged_violent: np.ndarray


@pytest.fixture(scope="module")
def learnt_from_three(tmp_path_factory, trained_models):
    """What is learnt from films n0, n1 and n2, in which violence shows as `EVENT`, and AB judged windows.

    In the corpus this event does not go with violence. A fourth film with it, `new`, is judged by nobody.
    """
    folder = tmp_path_factory.mktemp("learn")
    is_violent = {}
    for seed, movie in enumerate((*JUDGED_FILMS, "new")):
        is_violent[movie] = plant_scored_film(folder, trained_models, movie, seed)

    scored = {movie: folder / movie / "scored" for movie in JUDGED_FILMS}
    judged_blindly = range(1, 1 + N_BLIND)  # window 0 failed
    for movie, path in scored.items():
        write_judgements(path / "judgements.csv", is_violent[movie], judged_blindly, movie=movie)
    judged_in_sight = range(1 + N_BLIND, 1 + N_BLIND + N_IN_SIGHT)
    write_judgements(
        scored["n0"] / "passages.csv", is_violent["n0"], judged_in_sight, movie="n0", seen_score=1
    )

    write_manifest(trained_models.manifest, folder / "films.csv")
    corpus = ["--manifest", folder / "films.csv", "--store", trained_models.store.where]
    arguments = ["film", "learn", *scored.values(), *corpus]
    assert obygaze(*arguments, "--out", folder / "learnt") == 0
    return LearntFromThree(folder, arguments, is_violent["new"])


def files_in(folder):
    """Return the bytes of all files below a folder, by path."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.mark.long
def test_learning_the_same_again_gives_the_same_bytes(learnt_from_three):
    """All that is random has a fixed seed, so that a result can be reproduced."""
    folder = learnt_from_three.folder
    assert obygaze(*learnt_from_three.arguments, "--out", folder / "again") == 0
    assert files_in(folder / "again") == files_in(folder / "learnt")


@pytest.mark.long
def test_judgements_are_copied_beside_films_that_are_scored_anew(learnt_from_three):
    """Three films n0, n1 and n2 are judged. Judging goes on at them as the new model scores them.

    It was trained on their judgements: its scores of them are no test of it.
    """
    folder = learnt_from_three.folder
    for movie in ("n0", "n1", "n2"):
        copied = folder / "learnt" / "scored" / movie / "judgements.csv"
        original = folder / movie / "scored" / "judgements.csv"
        assert copied.read_bytes() == original.read_bytes()
    for film in read_films([folder / "learnt"]):
        assert film.model().is_trained_on


@pytest.mark.long
def test_violence_that_was_learnt_from_three_judged_films_is_found_in_a_fourth(
    learnt_from_three, trained_models
):
    """In these films violence shows as an event that does not go with violence in the corpus.

    So the corpus's model hardly finds it in the fourth film, which nobody judged; the model that has learnt
    from AB's judgements of the three others does. By chance the AUC would be .5.
    """
    windows = open_store(learnt_from_three.folder / "new" / "windows")
    n_failed = 1  # the first window has no features, and so no prediction
    is_violent = learnt_from_three.unjudged_violent[n_failed:]
    corpus_model = om.load_model(trained_models.paths["linear"])
    learnt_model = om.load_model(learnt_from_three.folder / "learnt" / "linear.model")

    by_corpus_model = om.predict(corpus_model, windows).table["logit"].to_numpy()
    by_learnt_model = om.predict(learnt_model, windows).table["logit"].to_numpy()

    assert auc(is_violent, by_corpus_model) < 0.7
    assert auc(is_violent, by_learnt_model) > 0.85


@pytest.mark.long
def test_the_table_of_learning_has_counts_and_the_gain_of_each_judged_film(learnt_from_three):
    """What was judged in sight of the score is trained on and not tested, as the score may have swayed it.

    Of n0, n1 and n2 40 windows each were judged blindly, and 19 more of n0 in sight. Films of the corpus, as
    f0, have no judgements.
    """
    films = pd.read_csv(learnt_from_three.folder / "learnt" / "learn.csv").set_index("movie")
    counts = films[["judged", "in_sight", "tested"]]
    assert counts.loc["n0"].tolist() == [59, 19, 40]
    assert counts.loc["n1"].tolist() == [40, 0, 40]
    assert counts.loc["n2"].tolist() == [40, 0, 40]
    assert films.loc["f0", ["judged", "tested"]].tolist() == [0, 0]


@pytest.mark.long
def test_the_auc_of_each_judged_film_rises_by_learning(learnt_from_three):
    """Each is tested by what was learnt from the other two: its AUC rises by .15 or more."""
    films = pd.read_csv(learnt_from_three.folder / "learnt" / "learn.csv").set_index("movie")
    judged_films = films.loc[["n0", "n1", "n2"]]
    gains = judged_films["after"] - judged_films["before"]
    assert gains.min() > 0.15


@pytest.mark.long
def test_a_learnt_model_is_trained_on_the_corpus_and_all_judgements(learnt_from_three, trained_models):
    """40 blind judgements of each of three films and 19 in sight are added to the clips of the corpus."""
    learning_result = learnt_from_three.folder / "learnt"
    n_clips_of_corpus = om.load_model(trained_models.paths["linear"]).card.n_clips

    card = om.load_model(learning_result / "linear.model").card

    assert card.manifest_sha256 == read_manifest(learning_result / "manifest.csv").digest()
    assert card.n_clips == n_clips_of_corpus + 3 * 40 + 19
    assert {"n0", "n1", "n2"} < set(card.movies)


@pytest.mark.long
def test_what_was_judged_in_sight_of_the_score_is_never_tested(learnt_from_three):
    """A judge who saw the score may follow it, and a test by such judgements would flatter the model.

    19 windows were judged so.
    """
    learning_result = learnt_from_three.folder / "learnt"
    clips = read_manifest(learning_result / "manifest.csv")
    ids_in_sight = {clip.clip_id for clip in clips if clip.extras["seen_score"] == "1"}
    assert len(ids_in_sight) == 19

    tested = om.read_run(learning_result / "after").predictions.table
    assert not tested["clip_id"].isin(ids_in_sight).any()


@pytest.mark.long
def test_each_fold_of_what_is_learnt_tests_one_film(learnt_from_three):
    """Clips of one film in both training and test would flatter the model."""
    tested = om.read_run(learnt_from_three.folder / "learnt" / "after").predictions.table
    n_films_of_folds = tested.groupby("fold")["movie"].nunique()
    assert n_films_of_folds.max() == 1


@pytest.mark.long  # simulates
def test_two_judged_films_are_enough_to_test_each_by_the_other(tmp_path, trained_models, capsys):
    """A model learns from judgements of two films, n0 and n1, beside those of its corpus, as f0.

    Each of the two is tested by a model that learnt from the other; before, only films of the corpus were
    tested. The answer in JSON is printed alone, and what is written is said beside it.
    """
    scored_films = []
    for seed, movie in enumerate(("n0", "n1")):
        is_violent = plant_scored_film(tmp_path, trained_models, movie, seed)
        folder = tmp_path / movie / "scored"
        scored_films.append(folder)
        write_judgements(folder / "judgements.csv", is_violent, range(1, 41), movie=movie)
    write_manifest(trained_models.manifest, tmp_path / "films.csv")
    corpus = ["--manifest", tmp_path / "films.csv", "--store", trained_models.store.where]
    learnt = tmp_path / "learnt"

    exit_code = obygaze("film", "learn", *scored_films, *corpus, "--out", learnt, "--json")
    printed = capsys.readouterr()

    assert exit_code == 0
    tests_of_films = pd.read_csv(learnt / "learn.csv").set_index("movie")
    assert tests_of_films.loc[["n0", "n1", "f0"], ["before", "after"]].notna().all(axis=None)
    tested_before = set(om.read_run(learnt / "before").predictions.table["movie"])
    tested_after = set(om.read_run(learnt / "after").predictions.table["movie"])
    assert tested_after == tested_before | {"n0", "n1"}
    json.loads(printed.out)
    assert "linear.model" in printed.err


class FilmAndStore(NamedTuple):
    """A scored film, and the store of its windows."""

    timeline: Timeline
    store: Store


@pytest.fixture(scope="module")
def film_and_store(tmp_path_factory, trained_models):
    """A scored film of ten minutes and the store of its windows."""
    folder, timeline = scored_film(
        tmp_path_factory.mktemp("film"), trained_models, models=("linear",), with_shots=False
    )
    store = open_store(folder.parent / timeline.movie)  # where `scored_film` keeps it
    return FilmAndStore(timeline, store)


def judged_by(trained_models, *spans, movie="tt0000001", level="violent"):
    """Judge spans of a film blindly, under the corpus's codebook, all with one level."""
    clips = [
        Clip(f"j{n}", movie, "", start, end, level, annotator="AB", extras={"seen_score": "0"})
        for n, (start, end) in enumerate(spans)
    ]
    return Manifest(tuple(clips), trained_models.manifest.root, trained_models.manifest.codebook)


@pytest.mark.long
def test_a_clip_has_the_features_of_the_windows_in_it(trained_models, film_and_store):
    """Windows last 8 s and begin every 4 s. Those that lie in the clip by more than half are averaged.

    They are weighed by their seconds in it. A clip shorter than half a window has the mean of the windows
    that reach into it.
    """
    starts_s = range(0, 600, 4)
    window_at = dict(zip(starts_s, film_and_store.store["descriptors"].pooled(), strict=False))
    judgements = judged_by(trained_models, (8, 16), (9, 23), (17, 18))

    learning_result = learn_from_judgements(
        [film_and_store.timeline],
        judgements,
        [film_and_store.store],
        trained_models.manifest,
        trained_models.store,
    )

    n_clips_of_corpus = len(trained_models.data)
    of_8_to_16_s, of_9_to_23_s, of_17_to_18_s = learning_result.data.X[n_clips_of_corpus:]
    # Of the window from 4 to 12 s only 3 s lie in 9 to 23 s.
    average = (7 * window_at[8] + 8 * window_at[12] + 7 * window_at[16]) / (7 + 8 + 7)
    np.testing.assert_allclose(of_8_to_16_s, window_at[8], rtol=1e-5)
    np.testing.assert_allclose(of_9_to_23_s, average, rtol=1e-5)
    np.testing.assert_allclose(of_17_to_18_s, (window_at[12] + window_at[16]) / 2, rtol=1e-5)


@pytest.mark.long
def test_judgements_that_cannot_be_learnt_from_are_left_out_and_counted(trained_models, film_and_store):
    """Of four judgements one is learnt from: the others are of another film, unsure, or after the film's end.

    The film lasts 600 s.
    """
    learnable, after_the_end, third = judged_by(trained_models, (8, 16), (700, 710), (20, 28))
    unsure = replace(third, level="unsure")
    of_another_film = replace(learnable, clip_id="other", movie="tt2")
    judgements = judged_by(trained_models).with_clips([learnable, after_the_end, unsure, of_another_film])
    # The corpus may have clips of the film itself if they have no label, as the corpus of the demo does.
    unlabelled = Clip("of the film", "tt0000001", "")
    corpus = trained_models.manifest.with_clips([*trained_models.manifest, unlabelled])

    learning_result = learn_from_judgements(
        [film_and_store.timeline], judgements, [film_and_store.store], corpus, trained_models.store
    )
    assert len(learning_result.manifest) == len(corpus) + 1
    assert learning_result.notes == (
        "1 judgement left out: of other films",  # of_another_film
        "1 judgement left out: of a level that does not count",  # unsure
        "1 judgement left out: without features",  # after_the_end
    )


@pytest.mark.long
def test_a_model_of_concepts_does_not_learn_from_a_level_that_was_confirmed_without_naming_concepts(
    trained_models, tmp_path
):
    """AB agreed with the model's level of two windows, and named the concept Gun in the second alone.

    A person who presses the key "agree" was not asked which concepts are there: that none is named does not
    mean that none is there. So the model, which decides by concepts, learns from the second window alone.
    """
    folder, timeline = scored_film(tmp_path, trained_models)
    judgements = judged_by(trained_models, (8, 16), (40, 48))
    agreed = [replace(clip, extras=clip.extras | {"judgement": "agree"}) for clip in judgements]
    without_concepts, with_gun = agreed[0], replace(agreed[1], concepts=("Gun",))

    learning_result = learn_from_judgements(
        [timeline],
        judgements.with_clips([without_concepts, with_gun]),
        stores_near(folder, timeline),
        trained_models.manifest,
        trained_models.store,
    )

    n_of_corpus = len(trained_models.manifest)
    learnt_from_film = learning_result.manifest.clips[n_of_corpus:]
    assert [clip.concepts for clip in learnt_from_film] == [("Gun",)]


@pytest.mark.long
def test_a_model_of_a_concept_does_not_learn_from_who_names_none(trained_models, tmp_path):
    """A model finds the concept Gun. AB judged two spans and named no concept. CD named Gun in one of them.

    From CD one learns that there is no gun in the other span. AB may just not name concepts, and says nothing
    of guns. So only CD's judgements are learnt from, and a note says so.
    """
    run = om.evaluate(trained_models.data, ["linear"], "concept:Gun")
    paths = om.save_models(run, trained_models.data, ["linear"], tmp_path / "models")
    store = film_store(tmp_path, "tt0000001")
    timeline = score_film(store, [paths["linear"]])
    with_levels_alone = judged_by(trained_models, (8, 16), (40, 48))
    by_cd = [replace(clip, clip_id=f"cd-{clip.clip_id}", annotator="CD") for clip in with_levels_alone]
    by_cd[0] = replace(by_cd[0], concepts=("Gun",))

    learning_result = learn_from_judgements(
        [timeline],
        with_levels_alone.with_clips([*with_levels_alone, *by_cd]),
        [store],
        trained_models.manifest,
        trained_models.store,
    )

    learnt_from = learning_result.manifest.clips[len(trained_models.manifest) :]
    assert {clip.annotator for clip in learnt_from} == {"CD"}
    assert learning_result.notes[0].startswith("2 judgements left out: of AB, who names no concept")


def refusal(trained_models, film, *, films=None, spans=((8, 16),), windows=None, movie="tt0000001"):
    """Return the message with which judgements of spans of a film are refused."""
    timeline, store = film
    judgements = judged_by(trained_models, *spans, movie=movie)
    with pytest.raises(FilmError) as error:
        learn_from_judgements(
            films or [timeline], judgements, windows or [store], trained_models.manifest, trained_models.store
        )
    return str(error.value)


def test_learning_without_judgements_of_the_films_is_refused(trained_models, film_and_store):
    """There is nothing to learn from: no judgement, or one judgement of a film that was not scored.

    `refusal` tries to learn from judgements of these spans of a film, and returns the error.
    """
    assert "0 judgements" in refusal(trained_models, film_and_store, spans=())
    assert "1 judgement" in refusal(trained_models, film_and_store, movie="tt2")


def test_other_windows_than_those_scored_are_refused(trained_models, film_and_store, tmp_path):
    """A film was scored from one store of windows; judgements of it are to be learnt from another store."""
    other_windows = film_store(tmp_path, "tt0000001", seed=2)
    assert "tt0000001 was scored from store" in refusal(
        trained_models, film_and_store, windows=[other_windows]
    )


@pytest.mark.parametrize(
    ("field", "value"), [("codebook", "obygaze12"), ("backbone", "xclip"), ("task", "concept:Gun")]
)
def test_films_scored_by_two_kinds_of_models_are_refused(trained_models, film_and_store, field, value):
    """One model is learnt for all films, so that codebook, backbone and task must be the same."""
    timeline, _ = film_and_store
    other = with_model(timeline, **{field: value})
    assert value in refusal(trained_models, film_and_store, films=[timeline, other])


@pytest.mark.parametrize("movie", ["f0", "F0", "Ｆ0"])
def test_a_film_of_the_corpus_is_refused_however_its_name_is_spelled(trained_models, film_and_store, movie):
    """Clips of f0, a film of the corpus, would be there twice, and what tests them would have learnt them."""
    timeline, _ = film_and_store
    of_corpus = replace(timeline, record=structs.replace(timeline.record, movie=movie))
    assert f"{movie} is in the corpus" in refusal(trained_models, film_and_store, films=[of_corpus])


def test_learning_a_concept_from_a_film_of_the_corpus_is_refused_even_if_the_corpus_has_no_levels(
    trained_models, film_and_store
):
    """A model of the concept Gun scored f0, a film of the corpus, whose clips name Gun and have no level.

    A film of the corpus is not learnt from twice. Clips without a level would not count for a model of
    levels; for one of a concept they are labels, so that f0 is in the corpus.
    """
    timeline, store = film_and_store
    by_model_of_gun = with_model(timeline, concept="Gun", positive=[], negative=[])
    film_f0 = replace(by_model_of_gun, record=structs.replace(by_model_of_gun.record, movie="f0"))
    corpus = trained_models.manifest
    corpus_without_levels = corpus.with_clips(replace(clip, level=None, concepts=("Gun",)) for clip in corpus)
    judgements = judged_by(trained_models, (8, 16))

    with pytest.raises(FilmError, match="f0 is in the corpus"):
        learn_from_judgements([film_f0], judgements, [store], corpus_without_levels, trained_models.store)


def test_a_film_scored_by_a_model_of_frames_is_refused(trained_models, film_and_store):
    """A film was scored by a model of attention, which reads the frames of windows.

    What is learnt from a judgement is the mean of its windows' vectors, without frames. So such a model
    cannot be trained on judgements, and the error names it.
    """
    timeline, _ = film_and_store
    by_attention = with_model(timeline, model="attention")
    assert "attention reads" in refusal(trained_models, film_and_store, films=[by_attention])


def test_features_that_were_made_otherwise_are_refused(trained_models, film_and_store, tmp_path):
    """The film's windows were read from another layer of the network than the corpus."""
    timeline, store = film_and_store
    movie_of = {clip.clip_id: clip.movie for clip in store.clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in store.clips}
    features = {"descriptors": {"pooled": store["descriptors"].pooled()}}
    other = open_store(seal_arrays(tmp_path / "other", movie_of, features, spans=spans, layer="other"))
    scored_from = structs.replace(timeline.record.store, fingerprint=other.fingerprint)
    scored = replace(timeline, record=structs.replace(timeline.record, store=scored_from))

    assert "layer" in refusal(trained_models, film_and_store, films=[scored], windows=[other])


def test_levels_of_another_codebook_are_refused(tmp_path, trained_models, film_and_store):
    """HN is no level of the corpus's codebook, which has calm and violent."""
    timeline, _ = film_and_store
    timeline.write(tmp_path / "scored")
    write_manifest(trained_models.manifest, tmp_path / "films.csv")
    (tmp_path / "judged.csv").write_text(f"{HEAD}\na,tt0000001,,8,16,HN,,AB,0\n", encoding="utf-8")
    corpus = ["--manifest", tmp_path / "films.csv", "--store", trained_models.store.where]
    learn = ["film", "learn", tmp_path / "scored", *corpus, "--judged", tmp_path / "judged.csv"]

    assert obygaze(*learn, "--out", tmp_path / "out") == 1
    assert not (tmp_path / "out").exists()


REWORDED = "d" * 64
"""Digest of a codebook with other texts than the corpus's."""


def judgements_under(trained_models, definition):
    """Return eleven judgements of a film, calm and violent in turn, that were made under a definition."""
    judgements = judged_by(trained_models, *((8 * index, 8 * index + 8) for index in range(1, 12)))
    clips = []
    for index, clip in enumerate(judgements):
        level = ("calm", "violent")[index % 2]
        clips.append(replace(clip, level=level, extras=clip.extras | {"definition": definition}))
    return judgements.with_clips(clips)


def test_judgements_under_another_wording_are_refused(trained_models, film_and_store):
    """The corpus was labelled under one wording of the codebook, and eleven windows judged under another.

    Levels may differ in meaning. The message counts the judgements and names the wording by its digest's
    beginning.
    """
    timeline, store = film_and_store
    judgements = judgements_under(trained_models, definition=REWORDED)
    with pytest.raises(FilmError, match=f"11 judgements .*{REWORDED[:12]}"):
        learn_from_judgements([timeline], judgements, [store], trained_models.manifest, trained_models.store)


@pytest.mark.parametrize(
    ("meaning", "accepts_all", "is_accepted"),
    [("the corpus's", False, True), ("another", False, False), ("another", True, True)],
    ids=["the same meaning", "another meaning", "another meaning that is declared the same"],
)
def test_only_definitions_that_mean_the_same_as_the_corpus_are_accepted(
    trained_models, meaning, accepts_all, is_accepted
):
    """A film was judged under another wording of the levels (`REWORDED`) than the corpus was labelled under.

    The judgements are accepted if a film's ledger declares that both wordings have one meaning, or if the
    user declares it of all (`accepts_all`).
    """
    meaning_by_definition = {"definition of the corpus": "the corpus's", REWORDED: meaning}
    declared_by_ledgers = SimpleNamespace(representative=lambda definition: meaning_by_definition[definition])
    judgements = judgements_under(trained_models, REWORDED)
    tables = SimpleNamespace(manifest=judgements, meanings=declared_by_ledgers)

    accepted = _accepted_definitions(tables, "definition of the corpus", accepts_all=accepts_all)

    assert accepted == ([REWORDED] if is_accepted else [])


@pytest.mark.long
def test_judgements_under_a_wording_of_the_same_meaning_are_learnt(trained_models, film_and_store):
    """The user declares that the other wording means the same.

    The judgements get the definition of the corpus.
    """
    timeline, store = film_and_store
    judgements = judgements_under(trained_models, REWORDED)
    learning_result = learn_from_judgements(
        [timeline],
        judgements,
        [store],
        trained_models.manifest,
        trained_models.store,
        same_meaning=[REWORDED],
    )
    definitions = {
        clip.extras["definition"] for clip in learning_result.manifest if clip.movie == timeline.movie
    }

    assert definitions == {trained_models.manifest.codebook.definition()}


@pytest.fixture(scope="module")
def learning_result(trained_models, film_and_store):
    """What is learnt of one film of which eleven windows are judged, calm and violent in turn."""
    timeline, store = film_and_store
    judgements = judged_by(trained_models, *((8 * index, 8 * index + 8) for index in range(1, 12)))
    in_turn = [replace(clip, level=("calm", "violent")[index % 2]) for index, clip in enumerate(judgements)]
    return learn_from_judgements(
        [timeline], judgements.with_clips(in_turn), [store], trained_models.manifest, trained_models.store
    )


@pytest.mark.long
def test_the_only_judged_film_has_the_auc_of_its_held_out_scores(learning_result):
    """Of one film eleven windows were judged. Its AUC is that of scores by models not trained on it.

    After learning the model is evaluated, with the judged film among those of the corpus, each left out once:
    the test takes the scores of this film from that run.
    """
    (row_of_film,) = learning_result.films[learning_result.films["judged"] > 0].to_dict("records")
    run_after_learning = learning_result.after
    (task,) = run_after_learning.predictions.table["task"].unique()
    run_of_learnt_model = om.side(om.saved(run_after_learning), learning_result.model, task)
    held_out = run_of_learnt_model.predictions.table
    held_out_of_film = held_out[held_out["movie"] == row_of_film["movie"]]

    expected_auc = auc(held_out_of_film["label"].to_numpy(), held_out_of_film["score"].to_numpy())
    auc_after_learning, n_tested = row_of_film["after"], row_of_film["tested"]
    assert auc_after_learning == expected_auc
    assert n_tested == len(held_out_of_film)


@pytest.mark.long
def test_the_only_judged_film_has_no_gain(learning_result):
    """Of one film eleven windows were judged, and no other film was.

    Where this film is left out, nothing that was judged is left to learn from, and a note says so. The only
    claim is on the films of the corpus.
    """
    (judged_film,) = learning_result.films[learning_result.films["judged"] > 0].to_dict("records")
    assert judged_film["before"] == pytest.approx(judged_film["after"])
    assert ONLY_JUDGED_FILM in learning_report(learning_result).notes
    assert len(learning_result.claims) == 1


def changes_of_auc_in_the_corpus(films):
    """Return by how much the AUC of each film of the corpus changed, those without a judgement."""
    n_judged = films["judged"].fillna(0)
    films_of_corpus = films[n_judged == 0]
    return films_of_corpus["after"] - films_of_corpus["before"]


@pytest.mark.long
def test_the_change_of_auc_is_a_mean_over_the_films_of_the_corpus_with_an_interval(learning_result):
    """The corpus's films tell whether learning has harmed what the model knew.

    Models of different folds share most of their films, and are not independent: the interval that covers
    the method is wider than one that takes folds for independent.
    """
    changes = changes_of_auc_in_the_corpus(learning_result.films)

    mean_change = change_of(learning_result.films)

    assert mean_change == t_interval(changes, covers="method")
    assert mean_change.low < t_interval(changes).low


@pytest.mark.long
def test_the_first_sentence_on_learning_has_the_mean_change_of_auc_with_its_sign(learning_result):
    """As "+0.012" or, with the sign for minus, "−0.012"."""
    mean_change = changes_of_auc_in_the_corpus(learning_result.films).mean()
    first_sentence, *_ = sentences(learning_result.claims)
    assert f"{mean_change:+.3f}".replace("-", "\N{MINUS SIGN}") in first_sentence


@pytest.mark.long
@pytest.mark.parametrize(("n_films", "is_refused"), [(2, True), (3, False)])
def test_the_mean_change_of_auc_is_told_of_three_films_and_refused_of_two(
    learning_result, n_films, is_refused
):
    """The model was trained on films of a corpus, and has learnt from another film, which people judged.

    By how much its AUC changed is a mean over films of the corpus, of which nobody judged a window. A mean
    over two has no useful interval, and the sentence says that it needs 3.
    """
    films_of_corpus = learning_result.films.assign(judged=0).head(n_films)
    result_of_few_films = replace(learning_result, films=films_of_corpus)
    sentence_on_change, *_ = sentences(result_of_few_films.claims)
    assert ("needs 3" in sentence_on_change) == is_refused


NO_MORE, FOUND_NOW = (40.0, 72.0), (220.0, 250.0)
"""Seconds of a planted passage that a new model finds no more, and of one that it finds where nothing is."""


@pytest.fixture
def scored_anew(planted_timeline, tmp_path):
    """A film as a new model scores it, beside the former curve, as it is read back from its folder.

    The former film has subtitles, which stay.
    """
    subtitles = pd.DataFrame({"start_s": [1.0], "end_s": [2.0], "text": ["Stop"]})
    former = replace(planted_timeline, subtitles=subtitles)
    new = with_probability(planted_timeline, NO_MORE, p=0.02)
    new = with_probability(new, FOUND_NOW, p=0.9)
    beside_former(scored=new, film=former).write(tmp_path / "scored")
    return Timeline.read(tmp_path / "scored")


def with_probability(timeline, span, p):
    """Give all rows of the first model that overlap a span the same probability, if they have one."""
    start_s, end_s = span
    table = timeline.table.copy()
    is_of_model = (table["model"] == timeline.model().key) & table["p"].notna()
    overlaps = (table["start_s"] < end_s) & (table["end_s"] > start_s)
    table.loc[is_of_model & overlaps, ["p", "p_low", "p_high"]] = p
    return replace(timeline, table=table)


@pytest.mark.long
def test_a_film_scored_anew_keeps_its_former_curve_and_subtitles(planted_timeline, scored_anew):
    """People see both curves beside each other, and so what has changed."""
    assert scored_anew.keys == (*planted_timeline.keys, f"{planted_timeline.model().key}-before")
    former = FilmView(scored_anew, "f", Words("en"), top=5).rows_before_learning
    assert former["p"].tolist() == pytest.approx(planted_timeline.rows()["p"].tolist(), nan_ok=True)
    assert scored_anew.subtitles["text"].tolist() == ["Stop"]


def test_a_film_that_is_scored_anew_says_which_passages_moved(scored_anew):
    """A film is scored by a model and, later, by another one, which finds other passages.

    The passage from 40 to 72 s was found before; its probability is now .02. The passage from 220 to 250 s is
    found now, with .9. The page lists both; `number` is the probability by the model of now.
    """
    moved = FilmView(scored_anew, "f", Words("en"), top=5).changed_passages
    found_no_more, found_now = sorted(moved, key=lambda claim: claim.time.start_s)
    assert found_no_more.time.start_s < 72
    assert found_no_more.number <= 0.5
    assert found_now.time.start_s > 72
    assert found_now.number > 0.5


def test_only_the_last_former_curve_is_kept(planted_timeline):
    """A film that was scored anew twice has no curve of the first time.

    `keys` names the models whose probabilities a film has: after each time, the new model and the former one.
    """
    scored_anew = beside_former(scored=planted_timeline, film=planted_timeline)
    scored_anew_again = beside_former(scored=scored_anew, film=scored_anew)
    assert scored_anew_again.keys == scored_anew.keys


def test_a_former_curve_of_other_rows_is_not_kept(planted_timeline):
    """A film scored by a new model keeps the former model's curve of probabilities beside the new one.

    Curves are compared row by row. Here the former one lacks the rows of the first 100 s, so that it cannot
    be compared and is left out: the film has the curve of the new model alone. `keys` names the models whose
    curves a film has.
    """
    is_after_100_s = planted_timeline.table["start_s"] > 100
    without_first_100_s = replace(planted_timeline, table=planted_timeline.table[is_after_100_s])

    scored_anew = beside_former(scored=planted_timeline, film=without_first_100_s)

    assert scored_anew.keys == planted_timeline.keys


@pytest.fixture(scope="module")
def halved_beside_former(planted_timeline):
    """A film as a new model scores it, which halves all probabilities, with the former model's kept beside.

    Each model's probabilities along the film are a curve at the desk; the former model's has the key of the
    model with "-before".
    """
    halved = planted_timeline.table.assign(p=planted_timeline.table["p"] * 0.5)
    scored_anew = replace(planted_timeline, table=halved)
    return beside_former(scored=scored_anew, film=planted_timeline)


def test_the_desk_has_the_former_curve_and_links_to_moved_passages(
    planted_timeline, halved_beside_former, tmp_path
):
    """A new model halves all probabilities of a film, so that at least its four planted passages moved.

    The data of the desk's script have the former probability of each row, packed, from which a curve is
    drawn. The page has a link to each passage that moved, with its probability before and now.
    """
    words = Words("en")
    film = halved_beside_former
    opened = OpenFilm(number=0, timeline=film, decisions=Decisions(tmp_path, film, codebook(tmp_path)))
    moved_passages = FilmView(film, "f", words, top=5).changed_passages

    desk = desk_page([opened], opened, mode="read", language="en")

    data_of_script = json.loads(re.search('id="state">(.*?)</script>', desk, re.DOTALL)[1])
    assert data_of_script["rows"]["former"] == packed_shares(planted_timeline.rows()["p"])
    n_links = desk.count("data-span=")
    assert n_links >= 4
    for passage in moved_passages:
        p_before = words.probability(passage.before)
        p_now = words.probability(passage.number)
        assert f"{p_before} → {p_now}" in desk


def test_the_desk_of_a_film_that_was_scored_once_has_no_list_of_passages_that_moved(
    planted_timeline, tmp_path
):
    """A passage moved if a new model gives it another probability than a former one, and there is only one.

    The page's head has the styles of that list, and so its id: only the body is looked at.
    """
    decisions = Decisions(tmp_path, planted_timeline, codebook(tmp_path))
    opened = OpenFilm(number=0, timeline=planted_timeline, decisions=decisions)

    _head, body = desk_page([opened], opened, mode="read", language="en").split("<body")

    id_of_list_of_moved_passages = "d-moved"
    assert id_of_list_of_moved_passages not in body


@pytest.mark.parametrize(
    ("field_of_claim", "end_of_key"),
    [
        pytest.param("before", "-before", id="the former model"),
        pytest.param("number", "", id="the new model"),
    ],
)
def test_the_claim_on_a_moved_passage_has_the_probabilities_that_both_models_passages_have(
    halved_beside_former, field_of_claim, end_of_key
):
    """A new model halves all probabilities of a film, which has the former model's beside them.

    A claim on a passage that moved has its probability by the former model, `before`, and by the new one,
    `number`. Where a passage from the same second to the same is among those of the model, the claim must
    have the probability that this one has, to two decimals. At least one such passage must be there.
    """
    view = FilmView(halved_beside_former, "f", Words("en"), top=5)
    passages_of_model = halved_beside_former.segments(view.model.key + end_of_key)
    p_by_span = passages_of_model.set_index(["start_s", "end_s"])["p"].to_dict()

    n_compared = 0
    for claim in view.changed_passages:
        span = claim.time.start_s, claim.time.end_s
        if span in p_by_span:
            n_compared += 1
            p_of_claim = getattr(claim, field_of_claim)
            assert view.words.probability(p_of_claim) == view.words.probability(p_by_span[span])

    assert n_compared > 0
