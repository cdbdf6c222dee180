"""What the page says of a film, without a browser."""

import io
import itertools
import json
import re
import tomllib
from base64 import b64decode, b64encode
from dataclasses import replace as film_with
from html import unescape
from typing import NamedTuple
from xml.dom import minidom

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from obygaze_features.manifest import BUILTIN, builtin_codebook
from obygaze_film.claims import LANGUAGES, Words
from obygaze_film.claims.kinds import NO_SKILL, UNDEFINED, UNTESTED, ClaimTime
from obygaze_film.claims.of_film import model_evidence, passage_reasons
from obygaze_film.claims.phrases import reasons_sentence
from obygaze_film.claims.words import clock
from obygaze_film.commands.film_lines import lines_of_film
from obygaze_film.exchange import Decided, export
from obygaze_film.exchange.registry import collect
from obygaze_film.page import Owned, ScoredCopy, charts, film_page
from obygaze_film.page.figure_pdf import figure_pdf
from obygaze_film.page.figures import film_figure, text_width
from obygaze_film.page.packed import MISSING
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import decisions_data
from obygaze_film.schema import EvidenceRecord
from obygaze_film.segments import Reason
from obygaze_models.prediction import mean_probability
from obygaze_models.report.pages import asset
from tests.film.page.invented import fake_scored_film, ten_minute_film, with_columns, with_model
from tests.film.saying import data_of, evidence_line, first_sentence, heading_of, percentages_of


def view_of(film, language="en"):
    """Return what a page shows of a film."""
    return FilmView(film, "f1", Words(language), top=5)


def text_of(page):
    """Words of a page, without scripts and tags."""
    body = re.sub(r"<(script|style|template)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", body).split())


@pytest.fixture(scope="module")
def page_of_ten_minutes():
    """The English page of a film of ten minutes."""
    return film_page([ten_minute_film()])


def test_two_pages_of_a_film_have_the_same_bytes(page_of_ten_minutes):
    """`page_of_ten_minutes` is of this film, too: nothing on it depends on the time or a random number."""
    assert film_page([ten_minute_film()]) == page_of_ten_minutes


def test_numbers_of_a_page_have_two_decimals_at_most(page_of_ten_minutes):
    """More decimals would claim a precision that no number of a model has."""
    assert re.findall(r"\d+\.\d{3,}", text_of(page_of_ten_minutes)) == []


@pytest.mark.parametrize(
    ("name", "package"),
    [("film", "obygaze_film.page"), ("claims", "obygaze_film.claims"), ("notes", "obygaze_film")],
)
def test_every_text_exists_in_both_languages(name, package):
    """A placeholder, as {share}, that one language lacks would lose a number or break the page."""
    english = tomllib.loads(asset(f"{name}.en.toml", package))
    french = tomllib.loads(asset(f"{name}.fr.toml", package))

    def placeholders(text):
        return sorted(re.findall(r"{\w*", text))

    assert english.keys() == french.keys()
    for text_name in english:
        assert placeholders(english[text_name]) == placeholders(french[text_name]), text_name


def test_a_page_begins_with_what_matters_most(page_of_ten_minutes):
    """First what the model marks, then how to see it, and then how far it can be trusted."""
    text = text_of(page_of_ten_minutes)
    in_order = ["the model marks", "Open your own copy", "Passages", "kappa", "no verdict on a film"]
    places = [text.index(words) for words in in_order]
    assert places == sorted(places)


def test_title_and_heading_say_that_a_film_was_trained_on():
    """Scores of a film that the model was trained on predict nothing: the page's title and heading say so.

    The sentence that else comes first says how many passages the model marks: of such a film there is none.
    """
    film = ten_minute_film(trained_on=True)
    page = film_page([film])
    no_sentence = ""
    assert "no prediction: the model was trained on this film" in heading_of(film)
    assert re.search("<title>(.*?)</title>", page)[1] == heading_of(film)
    assert re.search("<h1[^>]*>(.*?) <small>", page)[1] == heading_of(film)
    assert first_sentence(film) == no_sentence


def seconds_within(rows, passages):
    """Add up the seconds of the rows that lie within the passages."""
    total = 0.0
    for start_s, end_s in passages[["start_s", "end_s"]].to_numpy():
        inside = rows[(rows["start_s"] >= start_s) & (rows["end_s"] <= end_s)]
        total += (inside["end_s"] - inside["start_s"]).sum()
    return float(total)


def marked_passages_of(film):
    """Return the passages that reach the model's threshold."""
    return film.segments().query("reaches == 1")


def in_minutes(seconds):
    """Write seconds as minutes with a decimal."""
    return f"{seconds / 60:.1f} minutes"


def test_the_first_sentence_counts_judged_and_marked_minutes_and_says_what_the_level_means():
    """As in "Of the 80.0 minutes that it can judge (80% of the film; ...) the model marks 5 passages, ...".

    The counts are computed here from the film's rows. A passage may go on over rows below the threshold: the
    sentence also says how much of the passages reaches it. At last it says what the level S means by the
    model's record.
    """
    film = with_model(fake_scored_film(), means={"S": "staged like what experts call M"})
    time = film.time()
    judged_share, *_other_shares = Words("en").shares_of_whole(
        [time.judged_s, time.unjudged_s, time.black_or_credits_s]
    )
    passages = marked_passages_of(film)
    marked_s = passages["judged_s"].sum()
    reaching_rows = film.rows().query(f"p >= {film.model().threshold_p}")
    reaching_s = seconds_within(reaching_rows, passages)

    assert first_sentence(film).startswith(
        f"Of the {in_minutes(time.judged_s)} that it can judge "
        f"({judged_share} of the film; {in_minutes(time.black_or_credits_s)} of black or credits) "
        f"the model marks {len(passages)} passages, {in_minutes(marked_s)} "
        f"({in_minutes(reaching_s)} of them at its threshold or above), "
        "as S (Sure: staged like what experts call M)"
    )


def film_that_begins_unlike(share):
    """Make a film of ten minutes whose beginning, this share of it, is unlike the clips trained on.

    At its end are credits, as in all invented films.
    """
    return ten_minute_film(unlike_parts=((0.0, share),))


def test_the_page_hatches_as_many_seconds_as_are_not_judged():
    """Hatching marks what has no probability: unlike training, or nothing to judge (black, credits).

    The first half of the film is unlike training, and at its end are credits.
    """
    film = film_that_begins_unlike(share=0.5)
    time = film.time()

    hatched_s = {"unlike": 0.0, "nothing": 0.0}
    for span in view_of(film).hatched:
        hatched_s[span["kind"]] += span["end"] - span["start"]

    assert hatched_s == pytest.approx({"unlike": time.unjudged_s, "nothing": time.black_or_credits_s})


def test_credits_that_are_unlike_everything_too_are_credits():
    """The last tenth of a film of 600 s is unlike training, and its last 24 seconds are credits as well.

    These are hatched as what is nothing to judge, and counted once in the film's time.
    """
    film = ten_minute_film(unlike_parts=((0.9, 1.0),))
    flags = film.table["flags"].mask(film.table["start_s"] > 576.0, "unlike;credits")
    film = with_columns(film, flags=flags)

    last_span = view_of(film).hatched[-1]

    assert last_span["kind"] == "nothing"
    assert last_span["end"] == 600.0
    assert film.time().whole_s == pytest.approx(600.0)


def test_a_film_wholly_unlike_training_has_no_numbers():
    """All of the film's 60 rows are unlike the clips that the model was trained on.

    So its page prints no share with a band, and the data of its curve have no probability of any row.
    """
    page = film_page([film_that_begins_unlike(share=1.0)])

    share_and_band = r"\d+%\s*\["  # as in "38% [21%, 55%]"
    assert not re.search(share_and_band, text_of(page))

    without_probability = -1  # what `percentages_of` has for such a row
    assert percentages_of(data_of(page)["rows"]["p"]) == [without_probability] * 60


def key_figures(film):
    """Return the three key figures of a film's page: the share, the number of passages, the AUC."""
    return view_of(film).figures


def warnings_on_page(film):
    """Return the warnings on a film's page."""
    return re.findall('class="warning"><strong>(.*?)</strong>', film_page([film]))


def with_unjudged_row_in_a_passage(film):
    """Take the probability from a row within the longest passage; return the film and the row's seconds.

    The row is short enough, up to 5 s, that the passage goes on over it; and long enough, from .5 s on, that
    the page says how much of the passage is judged.
    """
    rows = film.rows()
    longest = marked_passages_of(film).sort_values("judged_s").iloc[-1]
    within = rows[(rows["start_s"] > longest["start_s"]) & (rows["end_s"] < longest["end_s"])]
    seconds = within["end_s"] - within["start_s"]
    candidates = within.index[seconds.between(0.6, 4.9)]
    middle_row = candidates[len(candidates) // 2]
    table = film.table.copy()
    table.loc[middle_row, ["p", "p_low", "p_high"]] = np.nan
    table.loc[middle_row, "flags"] = "unlike"
    return film_with(film, table=table), seconds[middle_row]


def test_the_page_says_how_much_of_a_passage_is_judged_if_a_row_in_it_is_not():
    """A row of .6 to 4.9 s within the longest passage is unlike training, and has no probability.

    So short a row does not end the passage, which goes on behind it. The page writes its length and how much
    of it is judged, as in "1.5 minutes, 1.4 minutes of it judged".
    """
    film, unjudged_s = with_unjudged_row_in_a_passage(fake_scored_film(n_rows=400, duration_s=1800.0))
    words = Words("en")

    passages = film.segments()
    lengths_s = passages["end_s"] - passages["start_s"]
    is_judged_in_part = passages["judged_s"] < lengths_s - 0.5
    (passage_with_row,) = passages.index[is_judged_in_part]
    length_s = lengths_s[passage_with_row]
    judged_s = passages["judged_s"][passage_with_row]
    assert judged_s == pytest.approx(length_s - unjudged_s)

    lengths_on_page = [passage["length"] for passage in data_of(film_page([film]))["passages"]]
    assert f"{words.duration(length_s)}, {words.duration(judged_s)} of it judged" in lengths_on_page


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_models_evidence_stands_above_the_timeline(language):
    """Readers see how well the model did on films left out of its training before they see its curve.

    The AUC was .67 over 7 clips of 4 films.
    """
    evidence = EvidenceRecord(n_clips=7, n_movies=4, auc=0.67, auc_low=0.0, auc_high=1.0, p_skilled=0.4)
    film = with_model(ten_minute_film(), no_skill=True, evidence=evidence)

    line = evidence_line(film, language)
    page = film_page([film], language=language)

    numbers = re.findall(r"[\d.,]*\d", line)
    assert {Words(language).number(0.67), "7", "4"} <= set(numbers)
    place_of_timeline = page.index('class="d-desk"')
    assert page.index(line) < place_of_timeline


@pytest.mark.parametrize("no_skill", [True, False])
def test_an_auc_that_no_film_gives_is_undefined_and_the_model_tested(no_skill):
    """The model was tested on 7 clips of 4 films, none of which has both classes: no film has an AUC."""
    undefined = EvidenceRecord(n_clips=7, n_movies=4, auc=None, auc_low=None, auc_high=None, p_skilled=None)
    film = with_model(ten_minute_film(), no_skill=no_skill, evidence=undefined)
    untested = with_model(ten_minute_film(), no_skill=no_skill, evidence=None, metrics=[])

    expected = (NO_SKILL, UNDEFINED) if no_skill else (UNDEFINED,)
    assert model_evidence(film.model()).conditions == expected
    assert model_evidence(untested.model()).conditions == (UNTESTED,)


@pytest.mark.parametrize(("window_s", "n_warnings"), [(10.0, 0), (11.0, 0), (11.5, 1), (8.5, 1)])
def test_windows_unlike_the_training_clips_in_length_have_a_warning(window_s, n_warnings):
    """The model was trained on clips of 10 s. Windows of 9 to 11 s are near enough: 10 % off."""
    film = with_model(ten_minute_film(), clip_s=10.0)
    windows = replace(film.record.windows, window_s=window_s)
    film = film_with(film, record=replace(film.record, windows=windows))
    assert len(warnings_on_page(film)) == n_warnings


def test_concepts_without_a_known_precision_say_so():
    """No average precision (`ap`) is known of the film's eight concepts: each of their strips says so."""
    film = ten_minute_film()
    concepts = [replace(concept, ap=None) for concept in film.model().concepts]
    assert len(concepts) == 8

    page = film_page([with_model(film, concepts=concepts)])

    _, after_head_of_strips = page.split('class="d-strips"')
    strips, *_ = after_head_of_strips.split("</section>")
    assert strips.count(f"<small>{Words('en')['unknown_ap']}</small>") == 8


def test_the_figure_of_passages_counts_those_that_reach_the_threshold():
    """A page has three key figures: the film's share, the number of its passages, and the model's AUC."""
    film = ten_minute_film()
    _share, number_of_passages, _auc = key_figures(film)
    n_marked = len(marked_passages_of(film))
    assert re.findall(r"\d+", number_of_passages.value) == [str(n_marked)]


@pytest.mark.parametrize(
    "film",
    [
        film_that_begins_unlike(share=1.0),
        with_model(ten_minute_film(), threshold_p=None),
        with_model(ten_minute_film(), calibration=None),
    ],
    ids=["no probability", "no threshold", "no calibration"],
)
def test_where_no_passage_is_looked_for_none_is_counted(film):
    """A count of 0 would say that the model looked for passages; a dash stands in its place.

    The key figures of a page are the film's share, the number of its passages, and the model's AUC.
    """
    _share, number_of_passages, _auc = key_figures(film)

    assert number_of_passages.value == "–"
    for line in lines_of_film(film, Words("en")):
        assert "0 passages" not in line


def test_a_film_of_a_model_without_calibration_has_a_warning():
    """A model without calibration gives scores, but no probabilities: the page must warn of it."""
    calibrated = ten_minute_film()
    uncalibrated = with_model(calibrated, calibration=None)
    assert Words("en")["uncalibrated"] in view_of(uncalibrated).warnings
    assert view_of(calibrated).warnings == []


def test_a_calibration_without_its_worst_error_leaves_the_share_as_it_is():
    """The worst error is told beside the share, and is not a part of it."""
    film = ten_minute_film()
    calibration = replace(film.model().calibration, worst_film_error=None)
    film_without_worst_error = with_model(film, calibration=calibration)

    share, _n_passages, _auc = key_figures(film)
    share_without_worst_error, _n_passages, _auc = key_figures(film_without_worst_error)

    assert share_without_worst_error.value == share.value


def test_concepts_are_in_the_order_of_how_well_they_are_found(page_of_ten_minutes):
    """Of eight concepts five are found better than by chance: Body best, then Clothing, and three more.

    They come first. Look, Posture and Appearance come after them, each with the remark that it is in doubt.
    """
    concepts = data_of(page_of_ten_minutes)["rows"]["concepts"]
    names = [concept["name"] for concept in concepts]
    assert names[:2] == ["Body", "Clothing"]
    assert set(names[5:]) == {"Look", "Posture", "Appearance"}
    for concept in concepts[:5]:
        assert concept["doubt"] == ""
    for concept in concepts[5:]:
        assert concept["doubt"] == "(not shown better than chance)"


def test_concepts_that_are_not_found_better_than_chance_are_grey(page_of_ten_minutes):
    """Of Body the average precision (AP) is .55 and chance .21; Look is hardly better than chance."""
    shown, grey = page_of_ten_minutes.split('<div class="dim">')
    assert "AP 0.55, chance 0.21" in shown  # Body
    assert "AP 0.28, chance 0.26" in grey  # Look
    assert Words("en").say("legend_unfound", n=3) in page_of_ten_minutes


def rows_seen_by_script(concept):
    """Return the rows in which the page's script says that a concept can be seen.

    The script has whole percentages alone: it counts the rows that reach `seen` percent, but for a list of
    rows, `unseen`, whose rounded percentage reaches it while the probability does not.
    """
    rows = []
    for row, percent in enumerate(b64decode(concept["p"])):
        has_p = percent != MISSING
        if has_p and percent >= concept["seen"] and row not in concept["unseen"]:
            rows.append(row)
    return rows


@pytest.mark.parametrize(
    "above_row_20", [0.0, 1e-9, 0.002], ids=["at a row's probability", "just above it", "by less than .01"]
)
def test_the_script_sees_a_concept_in_the_rows_that_reach_its_threshold(above_row_20):
    """The page's script has probabilities as whole percentages, but sees a concept in the right rows.

    The threshold of each concept is its probability in row 20, or more by so little that the percentage is
    the same: then row 20 does not reach it.
    """
    film = ten_minute_film()
    rows = film.rows()
    concepts = []
    for concept in film.model().concepts:
        p_of_row_20 = rows[f"{concept.name}_p"].iloc[20]
        concepts.append(replace(concept, threshold_p=float(p_of_row_20 + above_row_20)))

    page = film_page([with_model(film, concepts=concepts)])

    concepts_of_script = {concept["name"]: concept for concept in data_of(page)["rows"]["concepts"]}
    for concept in concepts:
        p = rows[f"{concept.name}_p"].to_numpy()
        rows_that_reach_threshold = np.flatnonzero(p >= concept.threshold_p).tolist()
        assert rows_seen_by_script(concepts_of_script[concept.name]) == rows_that_reach_threshold


@pytest.mark.long
def test_films_stand_in_the_order_of_their_years():
    """A film without a year comes last. The order in which films are given does not matter."""
    films = [
        ten_minute_film("a", "A", year=2009, seed=1),
        ten_minute_film("b", "B", year=1989, seed=2),
        ten_minute_film("c", "C", year=None, seed=3),
    ]
    page = film_page(films)
    links = re.findall(r'<a href="#f\d">([^<]*)</a>', page)
    years = [re.findall(r"\((\d{4})\)", link) for link in links]

    assert years == [["1989"], ["2009"], []]
    assert page == film_page(films[::-1])


def test_another_codebook_gives_the_models_own_levels_and_concepts():
    """The model tells calm from violent. "Sure" is a level of the default codebook, obygaze12."""
    film = ten_minute_film(
        codebook="violence", levels=(("calm",), ("violent",)), concepts=(("Gun", 0.9, 0.4),)
    )
    text = text_of(film_page([film]))
    assert "of violent" in text
    assert "Sure" not in text


def test_a_page_says_that_frames_of_the_film_are_in_it():
    """Pictures of a film may be protected: whoever passes a page on must know that it has some.

    Stills of the copy that was scored are given as one picture, a sheet.
    """
    film, words = ten_minute_film(), Words("en")
    sheet = {
        "sheet": "data:image/webp;base64,AAAA",
        "starts": [0.0],
        "width": 96,
        "height": 54,
        "columns": 40,
    }
    copy = ScoredCopy(duration_s=600.0, fps=24.0, key="key", stills=sheet)

    page_with_stills = film_page([film], owned={film.movie: Owned(copy=copy)})

    assert words["has_stills"] in page_with_stills
    assert words["no_frames"] not in page_with_stills
    id_of_strip_of_stills = "f1-stills"
    assert id_of_strip_of_stills in page_with_stills


def test_a_page_says_that_no_frames_of_the_film_are_in_it(page_of_ten_minutes):
    """The page was made from the film's scores alone, so that it has no strip of stills."""
    id_of_strip_of_stills = "f1-stills"
    assert Words("en")["no_frames"] in page_of_ten_minutes
    assert id_of_strip_of_stills not in page_of_ten_minutes


# --- charts and words
# ---------------------------------------------------------------------------
def corners_of(path):
    """Follow a path of SVG in steps and return its corners (x, y)."""
    x = y = 0
    corners = []
    for letter, numbers in re.findall(r"([MHVZ])([\d. ]*)", path):
        if letter == "M":
            x, y = map(int, numbers.split())
        elif letter == "H":
            x = int(numbers)
        elif letter == "V":
            y = int(numbers)
        corners.append((x, y))
    return corners


def test_the_line_goes_through_every_probability():
    """X is in tenths of a second; y is from 100 below to 0 above, for a probability of 0 to 1."""
    rows = ten_minute_film().rows()
    judged = rows.dropna(subset="p")
    heights = [100 - round(100 * p) for p in judged["p"]]
    first_x = round(10 * judged["start_s"].iloc[0])
    last_x = round(10 * judged["end_s"].iloc[-1])

    corners = corners_of(charts.line(rows))

    assert corners[0] == (first_x, heights[0])
    assert corners[-1][0] == last_x
    assert {y for _, y in corners} == set(heights)


def test_the_line_begins_anew_after_a_row_without_a_probability():
    """The letter M begins a piece of a line in SVG: with a gap there are two.

    So no line is drawn through what is unknown.
    """
    rows = ten_minute_film().rows()
    assert charts.line(rows).count("M") == 1

    rows.loc[30, "p"] = np.nan
    assert charts.line(rows).count("M") == 2


def sentence_on(concept_reasons, words, not_better_than_chance=None):
    """Return the sentence on the reasons for a passage.

    `not_better_than_chance` is the name of the concept that the model found no better than by chance, if any.
    """
    model = ten_minute_film().model()
    concepts = []
    if not_better_than_chance:
        near_chance = [concept for concept in model.concepts if concept.is_near_chance]
        concepts = [replace(near_chance[0], name=not_better_than_chance)]
    model = replace(model, concepts=concepts)
    passage = ClaimTime("span", seconds=10.0, start_s=0.0, end_s=10.0)
    return reasons_sentence(passage_reasons(model, concept_reasons, passage), words)


def reason(name, change, *, amount="more", p=0.5, usual_p=0.2):
    """Make a concept that changes the passage's probability by so much against its usual value."""
    return Reason(name, p, np.sign(change), is_present=p > 0.4, usual_p=usual_p, amount=amount, change=change)


REASONS = {
    "more of it than usual, which raises the probability": (
        [reason("Look", 0.3)],
        "For it: more Look than usual (0.50, 0.20 at its usual value).",
    ),
    "less of it than usual, which raises the probability": (
        [reason("Look", 0.3, p=0.33, usual_p=0.18), reason("Body", 0.1, amount="less", p=0.1)],
        (
            "For it: more Look than usual (0.33, 0.18 at its usual value); "
            "less Body than usual (0.10, 0.20 at its usual value)."
        ),
    ),
    "less by its values, more by its probabilities": (
        [reason("Body", -0.3), reason("Look", 0.1, amount="less", p=0.3, usual_p=0.2)],
        "For it: less Look than usual ("
        + Words("en").say("why_parted", p="0.30", usual="0.20")
        + "). Against it: more Body than usual (0.50, 0.20 at its usual value).",
    ),
    "a change below a hundredth is left out": (
        [reason("Body", 0.009), reason("Look", -0.01)],
        "Against it: more Look than usual (0.50, 0.20 at its usual value).",
    ),
    "all changes below a hundredth": (
        [reason("Body", 0.009)],
        "No concept moves the probability by 0.01.",
    ),
    "found no better than chance": (
        [reason("Vague", 0.2, p=0.204)],
        "For it: more Vague than usual (not shown to be found better than chance).",
    ),
    "no usual values are known": (
        [
            Reason("A", p=0.9, contribution=1.0, is_present=True),
            Reason("B", p=0.1, contribution=-1.0, is_present=False),
        ],
        "For it: A. Against it: B.",
    ),
    "one concept contributes nothing": (
        [
            Reason("Body", p=0.1, contribution=0.0, is_present=False),
            Reason("Look", p=0.1, contribution=0.4, is_present=False),
        ],
        "For it: Look.",
    ),
    "no concepts": ([], ""),
}


@pytest.mark.parametrize(("concept_reasons", "sentence"), REASONS.values(), ids=REASONS)
def test_a_sentence_on_reasons_says_how_much_and_to_what_effect(concept_reasons, sentence):
    """A reason is a concept that is more or less than usual, and moves the probability by .01 or more.

    `REASONS` has the concepts of a passage with their effects, and the sentence that the page must say of
    them. It warns of the concept "Vague", which the model finds no better than by chance.
    """
    assert sentence_on(concept_reasons, Words("en"), not_better_than_chance="Vague") == sentence


def test_numbers_are_rounded_half_up():
    """.125 is halfway between two numbers of two decimals: it is written 0.13, and not 0.12, the even one."""
    assert Words("en").number(0.125) == "0.13"


def test_french_numbers_have_a_comma():
    """A half is 0.50 in English and 0,50 in French."""
    assert Words("fr").number(0.5) == "0,50"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (0.0001, "<1%"), (0.165, "17%"), (0.9999, ">99%"), (1.0, "100%")],
)
def test_only_nothing_is_written_as_0_percent_and_only_all_as_100(share, text):
    """Other shares are rounded to whole percent, .165 up to 17%, and those near the ends have < or >."""
    assert Words("en").share(share) == text


def test_a_share_that_is_all_or_nothing_but_for_its_last_digit_is_written_so():
    """Sums of decimals miss 0 and 1 by their last digit, 2**-53."""
    almost_all, almost_nothing = 1 - 2**-53, 2**-53
    words = Words("en")
    assert words.share(almost_all) == "100%"
    assert words.share(almost_nothing) == "0%"
    assert words.shares_of_whole([almost_all, almost_nothing]) == ["100%", "0%"]


@pytest.mark.parametrize(("value", "text"), [(1.449, "+1.45"), (-0.1, "−0.10"), (-0.001, "0.00")])
def test_a_signed_number_has_a_sign_unless_it_rounds_to_zero(value, text):
    """Numbers have two decimals. Below 0 they have a minus sign (−), which is broader than a hyphen."""
    assert Words("en").signed(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(3661.4, "1:01:01"), (3661.5, "1:01:02"), (3661.9999, "1:01:02")]
)
def test_clocks_are_rounded_to_the_nearest_second(seconds, text):
    """3661 s are 1 hour, 1 minute and 1 second: 1:01:01. From half a second more on it is 1:01:02."""
    assert clock(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(599.0, "599 s"), (600.0, "10 minutes")])
def test_lengths_are_in_seconds_below_ten_minutes(seconds, text):
    """Ten minutes are 600 s: from there on a length is written in minutes."""
    assert Words("en").duration(seconds) == text


def test_lengths_of_one_sentence_share_a_unit():
    """The longest decides on minutes; as one of the lengths is short, all have a decimal, but for 0."""
    lengths = Words("en").durations(6000.0, 77.0, 0.0)
    assert lengths == ["100.0 minutes", "1.3 minutes", "0 minutes"]


# --- files, commands
# ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.005, 0.2, "0.01 to 0.20"),
        (0.004, 0.2, "<0.01 to 0.20"),
        (0.001, 0.005, "<0.01 to 0.01"),
        (0.001, 0.004, ""),
    ],
)
def test_an_end_of_a_band_below_a_hundredth_is_written_so(low, high, text):
    """Ends are rounded to two decimals. If neither is a number that one could read, there is no text."""
    assert Words("en").band(low, high, " to ") == text


def test_a_tiny_probability_is_read_out_without_its_band():
    """A probability of 0 has a band from 0 to .004, which is written as 0, or to .005, which is 0.01."""
    words = Words("en")
    assert words.spoken(0.0, 0.0, 0.004) == words["probability_low"]
    assert "band" in words.spoken(0.0, 0.0, 0.005)


def classes_styled_by(css):
    """Return the names of classes in the selectors of a style sheet."""
    without_comments = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    return set(re.findall(r"\.(-?[a-zA-Z][\w-]*)(?=[^{}]*{)", without_comments))


def test_no_two_style_sheets_of_one_page_have_rules_for_the_same_class():
    """An element of a class that two style sheets know would get the rules of both.

    The pages of a film, the desk and figures have the style sheet of reports beside their own, and a figure
    may stand within the desk. The classes `facts` and `n` of reports may be in the others too: these have
    rules for them in certain elements alone.
    """
    of_reports = classes_styled_by(asset("page.css"))
    of_film = classes_styled_by(asset("film.css", "obygaze_film.page"))
    of_desk = classes_styled_by(asset("desk.css", "obygaze_film.page"))
    of_figures = classes_styled_by(asset("figures.css", "obygaze_film.page"))

    assert len(of_reports) > 8  # else none were found
    assert (of_film | of_desk | of_figures) & of_reports <= {"facts", "n"}
    assert of_desk & of_figures == set()


def strips_of(figure):
    """Return where each strip of a figure begins and ends, in tenths of a second of the film."""
    boxes = re.findall(r'viewBox="(\d+) 0 (\d+) \d+" preserve', figure)
    return [(int(start), int(start) + int(width)) for start, width in boxes]


def test_a_figure_shows_the_span_with_half_a_minute_around_it():
    """The span is 100 to 400 s, so that 70 to 430 s are drawn, in tenths of a second.

    Without the film there are no stills.
    """
    figure = str(film_figure(view_of(ten_minute_film()), start_s=100.0, end_s=400.0))
    assert set(strips_of(figure)) == {(700, 4300)}
    assert "0:01:40–0:06:40" in figure
    assert 'class="c-threshold"' in figure
    assert "<image" not in figure


def test_a_figure_has_the_concepts_that_are_found_by_name():
    """A concept is found if the model's tests show it to be found better than by chance."""
    film = ten_minute_film()
    figure = film_figure(view_of(film), start_s=100.0, end_s=400.0)
    for concept in film.model().concepts:
        if concept.is_found:
            assert f">{concept.name}</text>" in figure


def test_a_figure_is_well_formed_xml_and_needs_nothing_from_the_network():
    """A figure is an SVG file by itself. The only address in it is its format's name, which nobody opens."""
    figure = str(film_figure(view_of(ten_minute_film()), start_s=100.0, end_s=400.0))
    name_of_format = "http://www.w3.org/2000/svg"
    minidom.parseString(figure)  # noqa: S318 - ours
    assert "http" not in figure.replace(name_of_format, "")


@pytest.mark.parametrize(
    ("language", "left_out"),
    [
        ("en", ("Concepts that are not drawn", "Look", "Posture", "Appearance")),
        ("fr", ("Concepts qui ne sont pas dessinés", "Regard", "Posture", "Apparence")),
    ],
    ids=["en", "fr"],
)
def test_a_figure_names_the_concepts_that_it_does_not_draw(language, left_out):
    """Look, Posture and Appearance are found no better than chance and not drawn: a text names them."""
    figure = str(
        film_figure(FilmView(ten_minute_film(), "f1", Words(language), top=5), start_s=100.0, end_s=400.0)
    )
    for text in left_out:
        assert text in figure


def words_of(figure):
    """Words of a figure, of which a sentence may be on several lines."""
    return " ".join(text_of(str(figure)).split())


def text_of_figure(film, start_s=0.0, end_s=600.0, language="en"):
    """Return the words of the figure of a span of a film; by default of all ten minutes."""
    return words_of(film_figure(view_of(film, language), start_s, end_s))


@pytest.mark.parametrize(
    ("language", "none", "some"),
    [("en", "No passage", "Passages reach"), ("fr", "Aucun passage", "Les passages atteignent")],
)
def test_a_figure_says_whether_passages_reach_the_threshold(language, none, some):
    """The figure is of all ten minutes of a film: with the threshold .999 no passage reaches it."""
    film = ten_minute_film()
    without_passages = with_model(film, threshold_p=0.999)

    assert none in text_of_figure(without_passages, language=language)
    assert some not in text_of_figure(without_passages, language=language)
    assert some in text_of_figure(film, language=language)


def test_a_figure_without_passages_has_the_notice_that_exports_have():
    """With the threshold .999 no passage of the film reaches it, of which exports have a notice."""
    without_passages = with_model(ten_minute_film(), threshold_p=0.999)
    notice = collect(without_passages, "eaf", tiers=["segments"]).notice
    assert notice.startswith("No passage")
    assert notice in text_of_figure(without_passages)


def test_a_figure_of_a_part_without_passages_says_nothing_of_passages():
    """The film has passages elsewhere, so that "No passage" would be wrong."""
    film = ten_minute_film()
    last_end_s = float(film.segments(film.model().key, top=0)["end_s"].max())
    start_s = last_end_s + 31  # a figure also draws the 30 s before its span
    words = text_of_figure(film, start_s, start_s + 1)
    assert "reach the threshold" not in words
    assert "No passage" not in words


@pytest.mark.parametrize(
    "span_s",
    [(0.0, 1e9), (590.0, 700.0), (1e6, 1e9)],
    ids=["from its first second on", "beyond its end", "wholly behind its end"],
)
def test_a_figure_ends_with_its_film(span_s):
    """The film lasts 600 s, and the asked span ends later. A figure has up to eight times, on the clock."""
    figure = str(film_figure(view_of(ten_minute_film()), *span_s))

    assert {end for _, end in strips_of(figure)} == {6000}  # tenths of a second
    clocks = re.findall(r">(\d):(\d\d):(\d\d)</text>", figure)
    assert 0 < len(clocks) <= 8
    for hours, minutes, seconds in clocks:
        assert 3600 * int(hours) + 60 * int(minutes) + int(seconds) <= 600


class DrawnText(NamedTuple):
    """A text of a figure, with its left and right end in the figure's pixels."""

    text: str
    left: float
    right: float
    kind: str


def texts_of(figure):
    """Return the texts of a figure; its classes say whether x is their start, middle or end."""
    shares_left_of_x = {"c-start": 0.0, "c-middle": 0.5, "c-end": 1.0}
    texts = []
    for kind, x, escaped in re.findall(r'<text class="([\w-]+)" x="([\d.]+)" y="[\d.]+">([^<]*)<', figure):
        text = unescape(escaped)
        left = float(x) - shares_left_of_x[kind] * text_width(text)
        texts.append(DrawnText(text, left, left + text_width(text), kind))
    return texts


def concept_of_longest_title(codebook_name, language):
    """Return the concept of a built-in codebook whose title is the widest when it is written in a figure."""
    concepts = builtin_codebook(codebook_name).concepts
    return max(concepts, key=lambda concept: text_width(concept.in_language(language).title))


def film_with_found_concept(concept_name, codebook_name):
    """Invent a film by a model that finds one concept, well above chance, so that figures draw it."""
    name_ap_chance = (concept_name, 0.9, 0.1)
    film = ten_minute_film(concepts=(name_ap_chance,), codebook=codebook_name)
    found_concepts = [replace(concept, low=0.5) for concept in film.model().concepts]
    return with_model(film, concepts=found_concepts)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "codebook_name", [name for name in sorted(BUILTIN) if builtin_codebook(name).concepts]
)
def test_no_name_of_a_concept_is_cut_in_a_figure(codebook_name, language):
    """A figure of a film writes titles of concepts left of the drawing, so that they end where it begins.

    The longest title of each built-in codebook begins within the figure, whose left edge is at 0.
    """
    concept = concept_of_longest_title(codebook_name, language)
    longest_title = concept.in_language(language).title
    film = film_with_found_concept(concept.name, codebook_name)

    figure = str(film_figure(view_of(film, language), start_s=100.0, end_s=200.0))

    (drawn_title,) = [text for text in texts_of(figure) if text.text == longest_title]
    assert drawn_title.left >= 0


@pytest.mark.parametrize(
    "title", ["視線" * 60, "W" * 150, "e\u0301" * 200], ids=["Japanese", "wide", "accents"]
)
def test_a_title_without_blanks_is_broken_where_a_line_of_a_figure_is_full(title):
    """A title in Japanese has no blanks. Its lines end before the right edge, and no letter is lost."""
    figure = str(film_figure(view_of(ten_minute_film(title=title)), start_s=100.0, end_s=200.0))

    width = int(re.search(r'width="(\d+)"', figure)[1])
    heading, _, _ = "".join(text.text for text in texts_of(figure)).partition("0:01:40")
    assert all(text.right <= width for text in texts_of(figure))
    assert title in heading


LONG_NAME = "A name as long as the desk takes it, of " + 40 * "M"


def figure_of_last_half_minute(duration_s, title, judge):
    """Draw the last 30 seconds of a film, with a decision of somebody there."""
    film = fake_scored_film(title=title, n_rows=60, duration_s=duration_s)
    view = view_of(film)
    decision = Decided(duration_s - 40, duration_s - 10, (judge,), level="S", is_blind=True)
    return str(film_figure(view, duration_s - 30, duration_s, decisions_data([decision], view)))


@pytest.mark.parametrize("title", ["Short", "A Very Long Title " * 12])
@pytest.mark.parametrize("judge", ["AB", LONG_NAME])
def test_no_text_of_a_figure_is_cut(title, judge):
    """Even with a long title and a long name no text begins or ends outside the figure."""
    figure = figure_of_last_half_minute(duration_s=600.0, title=title, judge=judge)

    width = float(re.search(r'viewBox="0 0 ([\d.]+)', figure)[1])
    texts = texts_of(figure)
    for text in texts:
        assert text.left >= 0
        assert text.right <= width
    all_texts = "\n".join(text.text for text in texts)
    assert all_texts.count(judge) == 1


@pytest.mark.parametrize("duration_s", [600.0, 12 * 3600.0])
def test_no_times_of_a_figure_touch(duration_s):
    """Times are the only texts that are drawn around their middle (class c-middle)."""
    figure = figure_of_last_half_minute(duration_s, "Title", "AB")
    times = [text for text in texts_of(figure) if text.kind == "c-middle"]
    assert len(times) > 1
    for before, after in itertools.pairwise(times):
        assert before.right < after.left


def test_a_figure_says_who_decided_what_in_its_span():
    """AB decided within the span of 100 to 160 s, and CD after 500 s."""
    view = view_of(ten_minute_film())
    inside = Decided(start_s=120.0, end_s=150.0, judges=("AB",), level="S", is_blind=True)
    elsewhere = Decided(start_s=500.0, end_s=510.0, judges=("CD",), level="S")
    figure = film_figure(
        view, start_s=100.0, end_s=160.0, decisions=decisions_data([inside, elsewhere], view)
    )
    assert "S (Sure), AB (blind)" in figure
    assert "CD" not in figure


class GreyStills:
    """Stills of 96 by 54 pixels as data URLs; the grey of each (0 to 255) is its time in seconds."""

    width, height = 96, 54

    def address(self, at_s):
        """Return a still as grey as its second is late: `grey_of` reads the second again, up to 255."""
        file = io.BytesIO()
        Image.new("L", (self.width, self.height), int(at_s) % 256).save(file, "PNG")
        return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def grey_of(address):
    """Return the grey of a still, from its data URL."""
    _, data = address.split(",")
    return Image.open(io.BytesIO(b64decode(data))).getpixel((0, 0))


def test_a_figure_has_a_strip_of_stills_in_the_order_of_time():
    """A figure of 100 to 160 s shows 30 s before and after, so its stills are of 70 to 190 s.

    The stills are planted: each is as grey as the number of its second, so that one can read its time.
    """
    svg = film_figure(view_of(ten_minute_film()), start_s=100.0, end_s=160.0, stills=GreyStills())
    stills = minidom.parseString(svg).getElementsByTagName("image")  # noqa: S318 - ours
    assert len(stills) > 4
    times_s = [grey_of(still.getAttribute("href")) for still in stills]
    assert times_s == sorted(times_s)
    assert 70 <= times_s[0] < times_s[-1] <= 190


def test_the_last_still_of_a_figure_is_not_cut():
    """Pictures of the film stand side by side in a figure of 760 pixels. The last one ends within it."""
    svg = film_figure(view_of(ten_minute_film()), start_s=100.0, end_s=160.0, stills=GreyStills())
    *_, last = minidom.parseString(svg).getElementsByTagName("image")  # noqa: S318 - ours
    right_edge = float(last.getAttribute("x")) + float(last.getAttribute("width"))
    assert right_edge <= 760


def test_a_still_has_its_place_and_size_in_a_figures_pdf():
    """A picture of 200 by 100 pixels has a still of 96 by 54, 20 from the left and 10 from above.

    A pixel is .75 points, and in a PDF y rises from the lower edge: 100 - 10 - 54 = 36 pixels, or 27 points,
    are below the still. matplotlib rounds to whole pixels.
    """
    matplotlib = pytest.importorskip("matplotlib")
    still = f'<image x="20" y="10" width="96" height="54" href="{GreyStills().address(100)}"/>'

    with matplotlib.rc_context({"pdf.compression": 0}):  # so that it can be read here
        pdf = figure_pdf(f'<svg width="200" height="100">{still}</svg>')

    command_that_draws_it = rb"q ([\d.]+) 0 0 ([\d.]+) ([\d.]+) ([\d.]+) cm /I1 Do"
    ((width, height, left, bottom),) = re.findall(command_that_draws_it, pdf)
    assert float(left) == pytest.approx(15, abs=0.75)
    assert float(bottom) == pytest.approx(27, abs=0.75)
    assert float(width) == pytest.approx(72, abs=0.75)
    assert float(height) == pytest.approx(40.5, abs=0.75)


@pytest.mark.long
def test_a_figures_pdf_has_its_size_and_fonts():
    """The figure of a film, 760 pixels wide, becomes a PDF. An inch is 96 pixels or 72 points.

    So a pixel is .75 points. Fonts are embedded ("FontFile2"), as journals ask for. The same figure gives
    the same bytes again.
    """
    pytest.importorskip("matplotlib")
    view = view_of(ten_minute_film(), "fr")
    figure = str(film_figure(view, start_s=100.0, end_s=160.0, stills=GreyStills()))
    height_pixels = float(re.search(r'viewBox="0 0 760 (\d+)"', figure)[1])

    pdf = figure_pdf(figure)
    pdf_again = figure_pdf(figure)

    assert pdf.startswith(b"%PDF-")
    assert pdf == pdf_again
    width_points, height_points = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf).groups()
    assert float(width_points) == pytest.approx(760 * 0.75)
    assert float(height_points) == pytest.approx(height_pixels * 0.75)
    assert b"DejaVuSans" in pdf
    assert b"/FontFile2" in pdf


def titles_in(book, language):
    """Return the titles of a codebook's levels and concepts in a language."""
    return {part.in_language(language).title for part in (*book.levels, *book.concepts)}


@pytest.mark.parametrize(
    ("language", "other", "beginning_of_meaning_of_s"),
    [("en", "fr", "staged like those"), ("fr", "en", "mis en scène comme ceux")],
    ids=["en-fr", "fr-en"],
)
def test_a_page_has_a_codebooks_words_in_one_language(language, other, beginning_of_meaning_of_s):
    """A codebook has titles of levels and concepts, and what levels mean, in English and in French.

    The page of a film, on which AB decided one span, has those of its own language alone, in its text and in
    the data of its script. Titles that both languages share say nothing.
    """
    book = builtin_codebook("obygaze12")
    film = with_model(ten_minute_film(traced=True), means=book.means, construct=book.construct)
    by_ab = Decided(start_s=120.0, end_s=150.0, judges=("AB",), level="S", concepts=("Clothing",))

    page = film_page([film], language=language, owned={film.movie: Owned(people=[by_ab])})

    assert f'<html lang="{language}">' in page
    text = text_of(page)
    data = json.dumps(data_of(page), ensure_ascii=False)
    only_in_language = titles_in(book, language) - titles_in(book, other)
    only_in_other_language = titles_in(book, other) - titles_in(book, language)
    assert any(title in data for title in only_in_language)
    for title in only_in_other_language:
        assert not re.search(rf"\b{title}\b", text), title
        assert not re.search(rf"\b{title}\b", data), title
    assert beginning_of_meaning_of_s in text
    for level in book.levels:
        assert level.in_language(other).means not in text


# --- minute by minute
# ---------------------------------------------------------------------------
def film_of_seconds(judged_in_minutes):
    """Make a film of rows of a second; of each minute only its last seconds are judged, so many as given.

    [0, 20] is a film of two minutes, of which the last 20 seconds are judged. The other rows have no
    probability of the level; concepts have theirs in all rows.
    """
    n_rows = 60 * len(judged_in_minutes)
    film = fake_scored_film(n_rows=n_rows, duration_s=float(n_rows), unlike_parts=())
    draws = [(0.3, -1.0), (0.9, -0.4), (2.0, 0.3)]  # slope and intercept of three calibrations
    table = film.table.assign(start_s=np.arange(n_rows) * 1.0, end_s=np.arange(1, n_rows + 1) * 1.0, flags="")
    p = mean_probability(np.array(draws), table["logit"].to_numpy())
    is_judged = np.concatenate([np.arange(60) >= 60 - n_judged for n_judged in judged_in_minutes])
    table["p"] = np.where(is_judged, p, np.nan)
    table["p_low"] = np.where(is_judged, 0.5 * p, np.nan)
    table["p_high"] = np.where(is_judged, 0.5 * (1 + p), np.nan)
    table["flags"] = np.where(is_judged, "", "unlike")
    calibration = replace(film.model().calibration, draws=draws)
    return with_model(film_with(film, table=table), calibration=calibration)


def test_a_minute_has_a_probability_from_ten_judged_seconds_on():
    """Of four minutes 0, 5, 20 and 60 s are judged: a mean of five seconds says too little of a minute."""
    film = film_of_seconds(judged_in_minutes=[0, 5, 20, 60])

    minutes = view_of(film).minutes
    data = data_of(film_page([film]))["minutes"]

    assert [minute.judged_s for minute in minutes] == [0, 5, 20, 60]
    assert [bool(np.isnan(minute.p)) for minute in minutes] == [True, True, False, False]
    judged_in_script = np.frombuffer(b64decode(data["judged"]), "<u2")  # 16 bits each
    assert judged_in_script.tolist() == [0, 5, 20, 60]
    no_probability = -1
    assert percentages_of(data["p"])[:2] == [no_probability] * 2


def test_concepts_have_numbers_in_minutes_in_which_the_level_is_not_judged():
    """A film of one minute is unlike training, so that no second of it has a probability of the level.

    The values of concepts are there all the same, and the minute has their means.
    """
    film_with_no_judged_second = film_of_seconds(judged_in_minutes=[0])
    (minute,) = view_of(film_with_no_judged_second).minutes
    assert np.isnan(minute.p)
    assert not np.isnan(minute.concepts).any()


def test_a_last_minute_of_less_than_ten_seconds_has_no_number():
    """A film lasts 60.9 s, and all of it is judged with p .5. Its second minute has .9 s.

    Less than ten judged seconds say too little of a minute: neither level nor concepts have a number.
    """
    film = fake_scored_film(n_rows=61, duration_s=60.9, unlike_parts=())
    film = with_columns(film, flags="", p=0.5, p_low=0.4, p_high=0.6)
    first, last = view_of(film).minutes

    assert first.p == pytest.approx(0.5)
    assert last.judged_s == pytest.approx(0.9)
    assert np.isnan(last.p)
    assert np.isnan(last.concepts).all()


def without_experts(film):
    """Return the film of a model whose record names no experts of a corpus who labelled clips."""
    return with_model(film, human=None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_and_exports_of_a_model_without_experts_speak_of_none(language):
    """The model's record names no experts whose labels it was trained on.

    One text of the page says so, and has the word; nothing else on the page or in an export has it.
    """
    film = without_experts(ten_minute_film())
    page = text_of(film_page([film], language=language))
    no_experts = Words(language)["no_human"]  # it says that no experts' agreement is known
    assert no_experts in page
    assert "expert" not in page.replace(no_experts, "")
    for export_format in ("vtt", "csv"):
        assert "expert" not in export(film, export_format)


def band_by_hand(film, rows):
    """Return the .1 and .9 quantiles, over the draws of the calibration, of the rows' mean probability."""
    draws = np.array(film.model().calibration.draws)
    weights = (rows["end_s"] - rows["start_s"]).to_numpy()
    means = []
    for slope, intercept in draws:
        p = 1 / (1 + np.exp(-(slope * rows["logit"].to_numpy() + intercept)))
        means.append(np.average(p, weights=weights))
    low, high = np.quantile(means, [0.1, 0.9])
    return low, high


def test_the_band_of_a_passage_or_minute_is_that_of_its_mean():
    """A band is the middle 80 % of a probability over all calibrations that fit (draws).

    That of a passage or a minute is of the mean of its rows, and not the mean of its rows' bands;
    `band_by_hand` computes it. The film has six minutes, of which each second is a row that is judged.
    """
    film = film_of_seconds(judged_in_minutes=[60] * 6)
    rows = film.rows()
    passages = list(film.segments().itertuples())
    assert passages

    for passage in passages:
        is_inside = (rows["start_s"] >= passage.start_s) & (rows["end_s"] <= passage.end_s)
        expected = band_by_hand(film, rows[is_inside])
        assert (passage.p_low, passage.p_high) == pytest.approx(expected)

    for minute in view_of(film).minutes:
        is_inside = (rows["start_s"] >= minute.start_s) & (rows["end_s"] <= minute.start_s + 60)
        expected = band_by_hand(film, rows[is_inside])
        assert (minute.p_low, minute.p_high) == pytest.approx(expected)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_concept_below_its_threshold_is_called_not_seen_and_never_absent(language):
    """What a model doesn't find may be there all the same: the page says "not seen, 0.12".

    The concept Look is below its threshold somewhere in the film.
    """
    film = ten_minute_film()
    (look,) = [concept for concept in film.model().concepts if concept.name == "Look"]
    assert film.rows()["Look_p"].min() < look.threshold_p
    not_seen, _the_probability = Words(language)["not_seen"].split(",")

    page = film_page([film], language=language)

    assert not_seen in page
    assert "absent" not in text_of(page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_accessible_name_of_a_films_figure_explains_curve_and_band_as_its_legend_does(language):
    """A figure of 100 to 160 s, in which a passage lies, has a legend, and a name that is read to the blind.

    Both have the level, the model's title, that the band is one of 80 %, and the threshold: each stands in
    the figure twice or more.
    """
    film = ten_minute_film()
    view = view_of(film, language)
    threshold = view.words.number(film.model().threshold_p)

    figure = film_figure(view, start_s=100.0, end_s=160.0)

    level, percentage_of_band = view.positive, "80"
    for text in (level, film.model().title, percentage_of_band, threshold):
        assert figure.count(text) >= 2


def test_a_row_that_reaches_4_ms_into_the_next_minute_does_not_flag_that_minute():
    """A film has rows of a second. The first of its two minutes is unlike training, the second is judged.

    Row 59 is the last one of the first minute. It is made to end 4 ms after it, as the last shot of a minute
    may. That is too little for the second minute to be called unlike training, too; only the 4 ms are missing
    from its judged seconds.
    """
    film = film_of_seconds(judged_in_minutes=[0, 60])
    film.table.loc[59, "end_s"] = 60.004
    film.table.loc[60, "start_s"] = 60.004

    first, second = view_of(film).minutes

    assert first.flags == "unlike"
    assert second.flags == ""
    assert second.judged_s == pytest.approx(59.996)
