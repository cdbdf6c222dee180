"""A span has a probability by one rule, wherever it is listed, cited or explained."""

from base64 import b64decode

import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_film.claims import Words
from obygaze_film.exchange import collect
from obygaze_film.exchange.decided import Decided
from obygaze_film.film_time import BLACK_OR_CREDITS
from obygaze_film.learning import beside_former
from obygaze_film.page import charts
from obygaze_film.page.packed import MISSING
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import decisions_data, timeline_data
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import shown_decisions
from tests.film.page.invented import fake_scored_film, with_columns
from tests.film.workspace.deciding import judge


def film_of_seconds(flags_of_first_minute, *, has_p):
    """Make a film of 600 rows of a second each; those of the first minute have flags, and a p or none."""
    film = fake_scored_film(n_rows=600, duration_s=600.0, unlike_parts=(), trained_on=True)
    seconds = film.table.index.to_numpy(dtype=float)
    film = with_columns(film, start_s=seconds, end_s=seconds + 1, flags="")
    film.table.loc[:59, "flags"] = flags_of_first_minute
    if not has_p:
        film.table.loc[:59, ["p", "p_low", "p_high"]] = float("nan")
    return film


@pytest.mark.parametrize(
    ("flags_of_first_minute", "has_p", "end_of_span_s", "is_scored"),
    [
        pytest.param("credits", True, 20.0, False, id="credits of a film that the model was trained on"),
        pytest.param("unlike", False, 60.2, False, id="a fifth of a second is judged"),
        pytest.param("unlike", False, 62.0, True, id="two seconds are judged"),
    ],
)
def test_list_evidence_and_citations_agree_whether_a_span_has_a_score(
    tmp_path, flags_of_first_minute, has_p, end_of_span_s, is_scored
):
    """AB gives level S to a span from 0 s on; the film's first minute is credits, or has no probability (p).

    A span has a score if half a second of it or more is judged. Credits are not judged, even where they have
    a p, as in a film that the model was trained on. The desk's evidence on the span, its list of decisions
    and the citations at the desk and on the film's page must agree: a score that is not shown cannot have
    been seen by AB, and then the citation ends without it.
    """
    film = film_of_seconds(flags_of_first_minute, has_p=has_p)
    decisions_of_ab = Decisions(tmp_path, film, builtin_codebook("obygaze12"))
    judge(decisions_of_ab, start=0, end=end_of_span_s, level="S")
    film_at_desk = OpenFilm(number=0, timeline=film, decisions=decisions_of_ab)
    page = FilmView(film, "f", Words("en"), top=5)

    evidence = span_evidence(
        film_at_desk, [film_at_desk], start_s=0.0, end_s=end_of_span_s, words=Words("en")
    )
    [in_list] = shown_decisions(film_at_desk, viewer="AB")
    decision = Decided(start_s=0.0, end_s=end_of_span_s, judges=("AB",), level="S")
    [on_page] = decisions_data([decision], page)

    has_score_in_evidence = bool(evidence["p"])
    assert has_score_in_evidence == is_scored
    assert in_list["value"] == evidence["p"]
    end_of_citation = ", in sight of the model's score" if is_scored else ", not blindly"
    assert in_list["cited"].endswith(end_of_citation)
    assert on_page["cited"].endswith(end_of_citation)


def film_with_p(p, *, first_second, last_second):
    """Make a film of 600 rows of a second each, of which the rows from one second to another have this p."""
    film = film_of_seconds("", has_p=True)
    film.table.loc[first_second:last_second, ["p", "p_low", "p_high"]] = p
    return film


def test_a_passage_has_the_same_probability_among_all_passages_and_among_those_that_learning_moved():
    """Having learnt from a film, the model gives .9 to 20 seconds, from 100 s on, to which it gave .05.

    The page lists the passages, and those that learning moved. One of the 20 seconds, at 110 s, is black and
    has .1. Black counts in no number: the mean of the passage is .9 in both lists.
    """
    before_learning = film_with_p(0.05, first_second=100, last_second=119)
    after_learning = film_with_p(0.9, first_second=100, last_second=119)
    after_learning.table.loc[110, ["p", "p_low", "p_high"]] = 0.1
    after_learning.table.loc[110, "flags"] = "black"

    with_both = beside_former(scored=after_learning, film=before_learning)
    page = FilmView(with_both, "f", Words("en"), top=5)

    [in_list_of_moved] = [claim for claim in page.changed_passages if claim.time.start_s == 100]
    [in_list_of_all] = [row for row in page.segments.to_dict("records") if row["start_s"] == 100]
    assert in_list_of_all["p"] == pytest.approx(0.9)
    assert in_list_of_moved.number == pytest.approx(0.9)


def test_an_export_has_no_score_of_the_time_that_it_says_has_none():
    """The first minute is credits; of a film that the model was trained on they have a probability too."""
    film = film_of_seconds("credits", has_p=True)

    exported = collect(film, "csv", tiers=["level", "concepts"])

    assert any("has no score" in caveat or "have no score" in caveat for caveat in exported.caveats)
    assert {placed.tier.kind for placed in exported.spans} == {"level", "concepts"}
    assert min(placed.span.start_s for placed in exported.spans) >= 60


def test_no_curve_is_drawn_over_credits_which_are_hatched():
    """The first minute is credits. The model was trained on the film, so that even these have probabilities.

    Credits are not judged: the figure hatches them, and no curve, of the model or of a concept, runs over
    them. The scripts get the curves as bytes in base64, a percentage a second, with a sign for none; the line
    that is drawn without scripts begins after the minute.
    """
    page = FilmView(film_of_seconds("credits", has_p=True), "f", Words("en"), top=5)
    timeline = timeline_data(page)

    for curve_in_base64 in (timeline["p"], timeline["high"], timeline["concepts"][0]["p"]):
        percentages = list(b64decode(curve_in_base64))
        assert set(percentages[:60]) == {MISSING}
        assert MISSING not in percentages[60:]
    assert [span["kind"] for span in page.hatched] == [BLACK_OR_CREDITS]
    sixty_s_in_tenths = "600"
    assert charts.line(page.rows).startswith(f"M{sixty_s_in_tenths} ")
