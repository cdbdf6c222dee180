"""What people judge is learnt, tested strictly and recorded; what cannot be learnt from is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest, read_manifest, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film import Timeline, learn_from_judgements, read_films, score_film
from obygaze_film.claims import Words, sentences
from obygaze_film.errors import FilmError
from obygaze_film.film_stores import stores_near
from obygaze_film.learning import ONLY_JUDGED_FILM, beside_former, change_of, learning_report
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


def new_film(folder, trained, movie, seed):
    """Score a film of windows of 8 s every 4 s, whose first failed; give which of them are violent."""
    rng = np.random.default_rng(seed)
    violent = rng.random(N) < 0.4
    X = rng.normal(size=(N, D)) + 3 * violent[:, None] * EVENT + 1.35 * LIGHT
    ids = {f"{movie}-{row:03}": movie for row in range(N)}
    spans = {name: (4.0 * row, 4.0 * row + 8) for row, name in enumerate(ids)}
    groups, failed = {"descriptors": {"pooled": X.astype("f4")}}, {f"{movie}-000": "the file ends here"}
    store = open_store(seal_arrays(folder / movie / "windows", ids, groups, spans=spans, failed=failed))
    score_film(store, [trained.paths["linear"]]).write(folder / movie / "scored")
    return violent


def judge(path, violent, rows, seen=0):
    """Judge windows of a film as they are."""
    movie = path.parent.parent.name
    level = ["violent" if there else "calm" for there in violent]
    lines = [f"x{row},{movie},,{4 * row},{4 * row + 8},{level[row]},,AB,{seen}" for row in rows]
    path.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")


@pytest.mark.long
def test_an_event_that_the_corpus_lacks_is_learnt_and_recorded(tmp_path, trained):
    violent = {
        movie: new_film(tmp_path, trained, movie, seed)
        for seed, movie in enumerate(("n0", "n1", "n2", "new"))
    }
    scored = [tmp_path / movie / "scored" for movie in ("n0", "n1", "n2")]
    for folder in scored:
        judge(folder / "judgements.csv", violent[folder.parent.name], range(1, 41))
    judge(scored[0] / "passages.csv", violent["n0"], range(41, N), seen=1)
    write_manifest(trained.manifest, tmp_path / "films.csv")
    learn = ["film", "learn", *scored, "--manifest", tmp_path / "films.csv", "--store", trained.store.where]
    for name in ("learnt", "again"):
        assert obygaze(*learn, "--out", tmp_path / name) == 0
    kept = [Path("scored", movie, "judgements.csv") for movie in ("n0", "n1", "n2")]
    learnt, again = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("learnt", "again")
    )
    assert learnt == again
    # The films as they are scored now have what was decided of them, to go on from.
    assert [learnt[path] for path in kept] == [(each / "judgements.csv").read_bytes() for each in scored]

    # A film that nobody judged: the event is found, as it was not before.
    model = om.load_model(tmp_path / "learnt" / "linear.model")
    windows = open_store(tmp_path / "new" / "windows")
    before, after = (
        auc(violent["new"][1:], om.predict(each, windows).table["logit"].to_numpy())
        for each in (om.load_model(trained.paths["linear"]), model)
    )
    assert before < 0.7
    assert after > 0.85

    # Each judged film, left out whole, is better found by what was learnt from the others.
    films = pd.read_csv(tmp_path / "learnt" / "learn.csv").set_index("movie")
    assert films.loc[["n0", "n1", "n2"], ["judged", "in_sight", "tested"]].to_numpy().tolist() == [
        [59, 19, 40], [40, 0, 40], [40, 0, 40]
    ]  # fmt: skip
    assert (films["after"] - films["before"])["n0":"n2"].min() > 0.15
    assert films.loc["f0", ["judged", "tested"]].tolist() == [0, 0]

    # A person's passage is in the training record; no judgement in sight of the score was tested.
    joined = read_manifest(tmp_path / "learnt" / "manifest.csv")
    passages = {clip.clip_id for clip in joined if clip.extras["seen_score"] == "1"}
    assert len(passages) == 19
    assert model.card.manifest_sha256 == joined.digest()
    assert model.card.n_clips == om.load_model(trained.paths["linear"]).card.n_clips + 139
    assert {"n0", "n1", "n2"} < set(model.card.movies)
    tested = om.read_run(tmp_path / "learnt" / "after").predictions.table
    assert not passages & set(tested["clip_id"])
    assert tested.groupby("fold")["movie"].nunique().max() == 1
    assert all(film.model().is_trained_on for film in read_films([tmp_path / "learnt"]))


@pytest.mark.long  # simulates
def test_two_judged_films_are_enough_to_test_each_by_the_other(tmp_path, trained, capsys):
    scored = []
    for seed, movie in enumerate(("n0", "n1")):
        violent = new_film(tmp_path, trained, movie, seed)
        scored.append(tmp_path / movie / "scored")
        judge(scored[-1] / "judgements.csv", violent, range(1, 41))
    write_manifest(trained.manifest, tmp_path / "films.csv")
    learn = ["film", "learn", *scored, "--manifest", tmp_path / "films.csv", "--store", trained.store.where]
    assert obygaze(*learn, "--out", tmp_path / "learnt", "--json") == 0
    films = pd.read_csv(tmp_path / "learnt" / "learn.csv").set_index("movie")
    before, after = (
        set(om.read_run(tmp_path / "learnt" / name).predictions.table["movie"])
        for name in ("before", "after")
    )
    assert after == before | {"n0", "n1"}
    assert films.loc[["n0", "n1"], ["before", "after"]].notna().all(axis=None)
    assert films.loc["f0", ["before", "after"]].notna().all()
    said = capsys.readouterr()
    json.loads(said.out)
    assert "linear.model" in said.err


@pytest.fixture(scope="module")
def film(tmp_path_factory, trained):
    folder, timeline = scored_film(
        tmp_path_factory.mktemp("film"), trained, models=("linear",), with_shots=False
    )
    return timeline, open_store(folder.parent / f"{timeline.movie}")


def judged_by(trained, *spans, movie="tt0000001", level="violent"):
    """Judge spans of a film blindly, under the corpus's codebook, all with one level."""
    clips = [
        Clip(f"j{n}", movie, "", start, end, level, annotator="AB", extras={"seen_score": "0"})
        for n, (start, end) in enumerate(spans)
    ]
    return Manifest(tuple(clips), trained.manifest.root, trained.manifest.codebook)


def test_a_clip_has_the_features_of_the_windows_in_it(trained, film):
    """Windows last 8 s and begin every 4 s; what counts is how many seconds of them lie in a clip."""
    timeline, store = film
    starting_at = dict(zip(range(0, 600, 4), store["descriptors"].pooled(), strict=False))
    features_of = {
        (8, 16): starting_at[8],  # a window of its own
        # Those of which more than half lies in it: for 7, 8 and 7 s; of that at 4 s it has 3 s.
        (9, 23): (7 * starting_at[8] + 8 * starting_at[12] + 7 * starting_at[16]) / 22,
        # Shorter than half a window: those that reach into it.
        (17, 18): (starting_at[12] + starting_at[16]) / 2,
    }
    learnt = learn_from_judgements(
        [timeline], judged_by(trained, *features_of), [store], trained.manifest, trained.store
    )
    of_judgements = learnt.data.X[len(trained.data) :]
    np.testing.assert_allclose(of_judgements, [*features_of.values()], rtol=1e-5)


def test_judgements_that_cannot_be_learnt_from_are_left_out_and_counted(trained, film):
    timeline, store = film
    judgements = judged_by(trained, (8, 16), (700, 710), (20, 28))
    learnable, behind_the_end, third = judgements
    unsure = replace(third, level="unsure")
    of_another_film = replace(learnable, clip_id="other", movie="tt2")
    judgements = judgements.with_clips([learnable, behind_the_end, unsure, of_another_film])
    unlabelled = Clip("of the film", "tt0000001", "")  # which the corpus may have, as the demo's has
    corpus = trained.manifest.with_clips([*trained.manifest, unlabelled])
    learnt = learn_from_judgements([timeline], judgements, [store], corpus, trained.store)
    assert len(learnt.manifest) == len(corpus) + 1
    assert learnt.notes == (
        "1 judgement left out: of other films",
        "1 judgement left out: of a level that does not count",
        "1 judgement left out: without features",
    )


def test_concepts_that_nobody_was_asked_for_are_not_absent(trained, tmp_path):
    """Who agrees with the model by a key names no concepts: no model of concepts learns from such a clip."""
    folder, timeline = scored_film(tmp_path, trained)
    judgements = judged_by(trained, (8, 16), (40, 48))
    agreed = [replace(clip, extras=clip.extras | {"judgement": "agree"}) for clip in judgements]
    by_a_key, with_a_concept = agreed[0], replace(agreed[1], concepts=("Gun",))
    learnt = learn_from_judgements(
        [timeline],
        judgements.with_clips([by_a_key, with_a_concept]),
        stores_near(folder, timeline),
        trained.manifest,
        trained.store,
    )
    added = learnt.manifest.clips[len(trained.manifest) :]
    assert [clip.concepts for clip in added] == [("Gun",)]


def refused(trained, film, films=None, spans=((8, 16),), windows=None, **judged):
    """Give the message that judgements are refused with."""
    judgements, corpus = judged_by(trained, *spans, **judged), (trained.manifest, trained.store)
    with pytest.raises(FilmError) as error:
        learn_from_judgements(films or [film[0]], judgements, windows or [film[1]], *corpus)
    return str(error.value)


def test_what_cannot_be_learnt_from_is_refused(trained, film, tmp_path):
    timeline, _ = film
    assert "0 judgements" in refused(trained, film, spans=())
    assert "1 judgement" in refused(trained, film, movie="tt2")
    other = film_store(tmp_path, "tt0000001", seed=2)
    assert "tt0000001 was scored from store" in refused(trained, film, windows=[other])
    # Clips of a film of the corpus would be there twice.
    own = structs.replace(timeline.record, movie="f0")
    assert "f0 is in the corpus" in refused(trained, film, films=[replace(timeline, record=own)])
    for field, value in (("codebook", "obygaze12"), ("backbone", "xclip"), ("task", "concept:Gun")):
        assert value in refused(trained, film, [timeline, with_model(timeline, **{field: value})])
    assert "attention reads" in refused(trained, film, [with_model(timeline, model="attention")])


def test_features_that_were_made_otherwise_are_refused(trained, film, tmp_path):
    """The film's windows were read from another layer of the network than the corpus."""
    timeline, store = film
    movie_of = {clip.clip_id: clip.movie for clip in store.clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in store.clips}
    features = {"descriptors": {"pooled": store["descriptors"].pooled()}}
    other = open_store(seal_arrays(tmp_path / "other", movie_of, features, spans=spans, layer="other"))
    scored_from = structs.replace(timeline.record.store, fingerprint=other.fingerprint)
    scored = replace(timeline, record=structs.replace(timeline.record, store=scored_from))
    assert "layer" in refused(trained, film, films=[scored], windows=[other])


def test_levels_of_another_codebook_are_refused(tmp_path, trained, film):
    timeline, _ = film
    timeline.write(tmp_path / "scored")
    write_manifest(trained.manifest, tmp_path / "films.csv")
    (tmp_path / "judged.csv").write_text(f"{HEAD}\na,tt0000001,,8,16,HN,,AB,0\n", encoding="utf-8")
    corpus = ["--manifest", tmp_path / "films.csv", "--store", trained.store.where]
    learn = ["film", "learn", tmp_path / "scored", *corpus, "--judged", tmp_path / "judged.csv"]
    assert obygaze(*learn, "--out", tmp_path / "out") == 1
    assert not (tmp_path / "out").exists()


def test_judgements_under_other_words_than_the_corpus_are_learnt_from_only_where_they_mean_the_same(
    trained, film
):
    timeline, store = film
    of_corpus, reworded = trained.manifest.codebook.definition(), "d" * 64
    judgements = judged_by(trained, *((8 * place, 8 * place + 8) for place in range(1, 12)))
    under_other_words = [
        replace(clip, level=level, extras=clip.extras | {"definition": reworded})
        for clip, level in zip(judgements, ["calm", "violent"] * 6, strict=False)
    ]
    given = (
        [timeline],
        judgements.with_clips(under_other_words),
        [store],
        trained.manifest,
        trained.store,
    )
    with pytest.raises(FilmError, match=r"11 judgements .*dddddddddddd"):
        learn_from_judgements(*given)
    learnt = learn_from_judgements(*given, same_meaning=[reworded])
    definitions = {clip.extras["definition"] for clip in learnt.manifest if clip.movie == timeline.movie}
    assert definitions == {of_corpus}


@pytest.fixture
def learnt(trained, film):
    """What is learnt of one film of which eleven windows are judged, calm and violent in turn."""
    timeline, store = film
    judgements = judged_by(trained, *((8 * place, 8 * place + 8) for place in range(1, 12)))
    in_turn = [replace(clip, level=("calm", "violent")[place % 2]) for place, clip in enumerate(judgements)]
    return learn_from_judgements(
        [timeline], judgements.with_clips(in_turn), [store], trained.manifest, trained.store
    )


def test_the_only_judged_film_has_an_auc_and_no_change_can_be_told_of_it(learnt):
    """Where this film is left out, nothing that was judged is left to learn from."""
    (judged_film,) = learnt.films[learnt.films["judged"] > 0].to_dict("records")
    task = learnt.after.predictions.table["task"].iloc[0]
    rows = om.side(om.saved(learnt.after), learnt.model, task).predictions.table
    of_film = rows[rows["movie"] == judged_film["movie"]]
    assert judged_film["tested"] == len(of_film)
    assert judged_film["after"] == auc(of_film["label"].to_numpy(), of_film["score"].to_numpy())
    assert judged_film["before"] == pytest.approx(judged_film["after"])
    assert ONLY_JUDGED_FILM in learning_report(learnt).notes
    assert len(learnt.claims) == 1  # on the films of the corpus


def test_a_change_is_the_mean_over_the_corpus_of_after_less_before(learnt):
    is_judged = learnt.films["judged"] > 0
    of_corpus = learnt.films[~is_judged]
    differences = of_corpus["after"] - of_corpus["before"]
    assert f"{differences.mean():+.3f}".replace("-", "\N{MINUS SIGN}") in sentences(learnt.claims)[0]
    change = change_of(learnt.films)
    assert change == t_interval(differences, covers="method")
    assert change.low < t_interval(differences).low


def test_a_change_needs_three_films(learnt):
    for n_films, is_refused in ((2, True), (3, False)):
        few = replace(learnt, films=learnt.films.assign(judged=0).head(n_films))
        assert ("needs 3" in sentences(few.claims)[0]) == is_refused


def test_a_film_that_is_scored_anew_keeps_the_former_curve_and_says_what_moved(timeline, tmp_path):
    """Of four planted passages the new model finds the first no more, and one where nothing was."""
    no_more, found_now = (40.0, 72.0), (220.0, 250.0)
    table = timeline.table.copy()
    is_of_model = (table["model"] == timeline.model().key) & table["p"].notna()
    for (start_s, end_s), p in ((no_more, 0.02), (found_now, 0.9)):
        is_inside = (table["start_s"] < end_s) & (table["end_s"] > start_s)
        table.loc[is_of_model & is_inside, ["p", "p_low", "p_high"]] = p
    subtitles = pd.DataFrame({"start_s": [1.0], "end_s": [2.0], "text": ["Stop"]})
    new, former = replace(timeline, table=table), replace(timeline, subtitles=subtitles)
    beside_former(new, former).write(tmp_path / "scored")
    kept = Timeline.read(tmp_path / "scored")
    assert kept.keys == (*timeline.keys, f"{timeline.model().key}-before")
    assert kept.subtitles["text"].tolist() == ["Stop"]
    view = FilmView(kept, "f", Words("en"), top=5)
    assert view.former["p"].tolist() == pytest.approx(timeline.rows()["p"].tolist(), nan_ok=True)
    assert len(view.moved) == 2
    in_first, in_second = sorted(view.moved, key=lambda claim: claim.time.start_s)
    assert in_first.time.start_s < no_more[1] < in_second.time.start_s
    assert in_first.number <= 0.5 < in_second.number


def test_only_one_former_curve_of_the_same_rows_is_kept(timeline):
    scored_anew = beside_former(timeline, timeline)
    assert beside_former(scored_anew, scored_anew).keys == scored_anew.keys
    of_other_rows = replace(timeline, table=timeline.table[timeline.table["start_s"] > 100])
    assert beside_former(timeline, of_other_rows).keys == timeline.keys


def test_a_former_curve_is_drawn_on_the_desk(timeline, tmp_path):
    halved = timeline.table.assign(p=timeline.table["p"] * 0.5)
    beside = beside_former(replace(timeline, table=halved), timeline)
    opened = OpenFilm(0, beside, Decisions(tmp_path, beside, codebook(tmp_path)))
    page = desk_page([opened], opened, "read", "en")
    state = json.loads(re.search('id="state">(.*?)</script>', page, re.DOTALL)[1])
    assert state["rows"]["former"] == packed_shares(timeline.rows()["p"])
    assert page.count("data-span=") >= 4
    alone = OpenFilm(0, timeline, opened.decisions)
    assert "d-moved" not in desk_page([alone], alone, "read", "en").partition("<body")[2]


def test_the_list_of_what_moved_has_the_probabilities_that_passages_have_elsewhere(timeline, tmp_path):
    halved = timeline.table.assign(p=timeline.table["p"] * 0.5)
    beside = beside_former(replace(timeline, table=halved), timeline)
    opened = OpenFilm(0, beside, Decisions(tmp_path, beside, codebook(tmp_path)))
    page = desk_page([opened], opened, "read", "en")
    view = FilmView(beside, "f", Words("en"), top=5)
    key = view.model.key
    before_and_now = {}
    for claim in view.moved:
        before, now = view.words.probability(claim.before), view.words.probability(claim.number)
        assert f"{before} → {now}" in page
        before_and_now[claim.time.start_s, claim.time.end_s] = before, now
    for place, name in enumerate((f"{key}-before", key)):
        p_of = beside.segments(name).set_index(["start_s", "end_s"])["p"].to_dict()
        in_both = before_and_now.keys() & p_of.keys()
        assert in_both
        for span in in_both:
            assert before_and_now[span][place] == view.words.probability(p_of[span])
