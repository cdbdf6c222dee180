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


def test_a_windows_reasons_change_p_as_much_as_explain_says_of_its_clip(world):
    """Each row of the film is one window, and so one clip of the store, which `explain` can explain, too.

    `explain` moves each concept to the values of training clips; by how much p changes then is what counts,
    and of which side the concept is. A concept that changes p by .01 or more is a reason of the row.

    The model is a tree. A concept's contribution is what the clip's path through the tree adds at that
    concept, and may have the other sign than the change: it decides nothing.
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


def test_turning_the_signs_of_a_trees_contributions_turns_no_reason(world):
    """In a copy of the film's scores every contribution has the opposite sign, and all else is as it was.

    In a tree a concept may count for a passage on one path and against it on another. So the change of p
    says for which side a reason is, and never its contribution: only the contribution itself differs.
    """
    table = world.film.table.copy()
    for concept in world.film.model().concepts:
        table[f"{concept.name}_contribution"] *= -1
    film_with_turned_signs = replace(world.film, table=table)
    first_row = table.index[table["p"].notna()][:1]

    as_scored = reasons_of_row(world.film, world.film.table.loc[first_row])
    with_turned_signs = reasons_of_row(film_with_turned_signs, table.loc[first_row])

    assert with_turned_signs
    for concept, reason in with_turned_signs.items():
        assert reason == replace(as_scored[concept], contribution=-as_scored[concept].contribution)
    assert not any(reason.goes_both_ways for reason in with_turned_signs.values())


def test_the_page_gives_the_change_of_p_of_each_reason_of_a_tree_and_no_usual_value(world):
    """The reasons of the film's first passage have the changes of p that its table has, in the same order.

    A tree has no usual value of a concept, to which a linear model compares: no p "at its usual value" is
    given.
    """
    model = world.film.model()
    segment = world.film.segments().iloc[0]
    claim = passage(model, segment)

    assert [reason.number for reason in claim.reasons] == [reason.change for reason in reasons(segment)]
    assert any(reason.moves for reason in claim.reasons)
    for reason in claim.reasons:
        assert reason.number is not None
        assert at_usual(claim, reason) is None


@pytest.mark.parametrize(
    ("language", "of_path"), [("en", "follow the path through a tree"), ("fr", "suivent le chemin")]
)
def test_the_note_on_reasons_says_that_a_trees_contributions_follow_its_path(world, language, of_path):
    """A tree has no usual values of concepts, but its film's scores have the changes of p."""
    has_changes = world.film.model().has_changes
    assert of_path in phrases.reasons_note(Words(language), has_usual=False, has_changes=has_changes)


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


def test_reasons_in_scores_without_changes_of_p_are_for_the_side_of_their_contributions(world):
    """An earlier version wrote no columns NAME_change, by how much p changes without a concept.

    They cannot be computed from the folder that it wrote. Until the film is scored again, the sign of the
    contribution says whether a concept speaks for the level or against it.
    """
    model = changed(world.film.model(), has_changes=False)
    columns = [f"{concept.name}_change" for concept in model.concepts]
    table = world.film.table.drop(columns=columns)
    film = replace(world.film, table=table, record=changed(world.film.record, models=[model]))

    row = film.table[film.table["p"].notna()].head(1)

    for reason in reasons_of_row(film, row).values():
        assert reason.change is None
        assert reason.is_for == (reason.contribution > 0)
