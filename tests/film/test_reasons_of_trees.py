"""A tree's reasons are the same on a film's page and in `obygaze explain`: what moving a concept does."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec.structs import replace as changed

from obygaze_film.claims import Words, phrases
from obygaze_film.claims.of_film import at_usual, passage
from obygaze_film.score import score_film
from obygaze_film.scored_files import write_films
from obygaze_film.segments import changes_of_rows, columns_of, mean_columns, reasons
from obygaze_film.timeline import read_films
from obygaze_models.prediction.explain import explain
from obygaze_models.prediction.saved_model import load_model
from tests.film.films import film_store
from tests.planted_models import train_and_save_models


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A model that decides by a tree of concepts, and a new film each of whose rows is one window."""
    folder = tmp_path_factory.mktemp("tree")
    model = load_model(train_and_save_models(folder / "shelf", models=("pcbm_dt",)).paths["pcbm_dt"])
    store = film_store(folder, "film", window_s=4.0, end_s=200.0)
    return SimpleNamespace(model=model, store=store, film=score_film(store, [model]))


def reasons_of_row(film, row):
    """Average one row alone, as the page and the desk do for a span, and read its reasons by concept."""
    one_row = columns_of(row)
    weights = (row["end_s"] - row["start_s"]).to_numpy()
    return {reason.concept: reason for reason in reasons(mean_columns(one_row, weights, film.model()))}


def test_a_window_has_the_reasons_that_explain_gives_of_its_clip(world):
    """Contributions follow the clip's path through the tree, and may have another sign: they decide nothing.

    `explain` moves each concept to the values of training clips, and names by how much that changes p.
    """
    clip_of_start = {clip.start_s: clip.clip_id for clip in world.store.clips}
    n_reasons = 0
    for index in world.film.table.index[world.film.table["p"].notna()]:
        # given a window, and what `explain` says of it
        row = world.film.table.loc[[index]]
        explained = explain(world.model, [world.store], clip_of_start[row["start_s"].item()], {})

        # when its reasons are read from the film's scores, then they are the same
        of_row = reasons_of_row(world.film, row)
        for part, change in zip(explained.parts.contributions, explained.changes, strict=True):
            is_reason = abs(change) >= 0.01
            reason = of_row.get(part.concept)
            assert is_reason == (reason is not None and reason.moves)
            if is_reason:
                assert reason.change == pytest.approx(change, abs=1e-12)
                assert reason.is_for == (change > 0)
                assert not reason.goes_both_ways
                n_reasons += 1
    assert n_reasons > 20


def test_a_contribution_of_the_other_sign_decides_nothing(world):
    """Speech may speak for a passage where there is a look, and against it elsewhere: a path says either."""
    table = world.film.table.copy()
    for concept in world.film.model().concepts:
        table[f"{concept.name}_contribution"] *= -1
    film = replace(world.film, table=table)
    first = table.index[table["p"].notna()][:1]

    as_scored = reasons_of_row(world.film, world.film.table.loc[first])
    of_row = reasons_of_row(film, table.loc[first])

    assert of_row
    for concept, reason in of_row.items():
        assert reason == replace(as_scored[concept], contribution=-as_scored[concept].contribution)
    assert not any(reason.goes_both_ways for reason in of_row.values())


def test_the_page_lists_them_by_what_they_change(world):
    """Without usual values nothing is "more than usual", and no probability "at its usual value" is given."""
    model = world.film.model()
    segment = world.film.segments().iloc[0]
    claim = passage(model, segment)

    assert [reason.number for reason in claim.reasons] == [reason.change for reason in reasons(segment)]
    assert any(reason.moves for reason in claim.reasons)
    for reason in claim.reasons:
        assert reason.number is not None
        assert at_usual(claim, reason) is None
    for language, of_path in (("en", "follow the path through a tree"), ("fr", "suivent le chemin")):
        note = phrases.reasons_note(Words(language), has_usual=False, has_changes=model.has_changes)
        assert of_path in note


def test_scores_that_were_written_are_read_with_their_changes(world, tmp_path):
    """A tree on concepts scored a film: each row has how much each concept changes its probability.

    The film is written to a folder and read again, with the same changes.
    """
    folders = write_films([world.film], tmp_path / "scores")
    (film_read,) = read_films(list(folders.values()))
    model = film_read.model()

    changes = changes_of_rows(columns_of(film_read.table), model)

    for concept in model.concepts:
        as_scored = world.film.table[f"{concept.name}_change"].to_numpy()
        assert changes[concept.name] == pytest.approx(as_scored, nan_ok=True)


def test_scores_of_an_earlier_version_have_no_changes_and_the_contributions_decide(world):
    """They can't be computed from what such a folder holds; the film has to be scored again."""
    model = changed(world.film.model(), has_changes=False)
    columns = [f"{concept.name}_change" for concept in model.concepts]
    table = world.film.table.drop(columns=columns)
    film = replace(world.film, table=table, record=changed(world.film.record, models=[model]))

    row = film.table[film.table["p"].notna()].head(1)

    for reason in reasons_of_row(film, row).values():
        assert reason.change is None
        assert reason.is_for == (reason.contribution > 0)
