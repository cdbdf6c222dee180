"""Claims: no number of a sentence but from a claim, and each equal to what the raw data give."""

import ast
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from scipy.optimize import brentq

import obygaze_film
from obygaze_film.claims import (
    LANGUAGES,
    FilmClaim,
    Words,
    document,
    film_claims,
    group_claims,
    of_film,
    phrases,
    rate_claims,
)
from obygaze_film.claims import (
    kinds as claim_kinds,
)
from obygaze_film.claims.kinds import (
    AGREE_BY_CHANCE,
    AGREE_LESS,
    ALL_JUDGED,
    ALL_NOTHING,
    ALL_UNLIKE,
    ALL_UNREAD,
    NEAR_CHANCE,
    UNDEFINED,
)
from obygaze_film.claims.of_film import passage, reaching_passages
from obygaze_film.claims.of_groups import group_share
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.exchange import export
from obygaze_film.film_groups import FilmComparison
from obygaze_film.film_time import MIN_SAID_S
from obygaze_film.judged_rate import FilmRates
from obygaze_film.kappa_interval import kappa_interval
from obygaze_film.page import film_page
from obygaze_film.positive import Meaning, Positive
from obygaze_film.schema import CorrectedRate, JudgesAgreement
from obygaze_film.segments import MIN_S, reasons
from obygaze_models.prediction import mean_probability
from tests.film.page.invented import fake_scored_film, with_model
from tests.film.saying import first_sentence, heading_of

SURE = Positive((Meaning("S", "Sure", ""),), is_concept=False, task_title="")

ROOM = Path(obygaze_film.__file__).parent


# --- where sentences come from
# ---------------------------------------------------------------------------
COMPUTING = (
    "schema",
    "segments",
    "film_time",
    "timeline",
    "score",
    "comparison",
    "judged_rate",
    "film_groups",
)
"""Modules that claims are made from."""


@pytest.mark.parametrize("name", COMPUTING)
def test_modules_that_compute_import_no_claims_or_pages(name):
    """Only pages, exports, reports and commands may print claims; what they are computed from may not.

    So a module that computes, such as `segments`, has no import of `obygaze_film.claims` or
    `obygaze_film.page`, but for one that only type checkers read.
    """
    tree = ast.parse((ROOM / f"{name}.py").read_text(encoding="utf-8"))
    for_type_checkers = set()
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for_type_checkers |= set(node.body)
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node not in for_type_checkers:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}

    of_claims_or_pages = [name for name in imported if re.match(r"obygaze_film\.(claims|page)\b", name)]
    assert of_claims_or_pages == []


NUMBER_METHODS = (
    "number|numbers|signed|difference|points|points_text|probability|band|spoken|share|shares|shares_of_whole"
    "|apart|duration|durations"
)
"""Methods of `Words` that write numbers of claims."""

WRITES_NUMBER = re.compile(
    "|".join(
        [
            r"\{[^{}\"\n]*:[^{}\"\n]*\.\d+[a-zA-Z%]\}",  # {value:.2f}
            r"\{[\w.]+:\{",  # {value:{spec}}
            r"\{round\(|\b(str|repr)\(round",
            r"\{[\w.]*(claim\w*\.number|\.share|\.kappa)\}",
            r"\bformat\(\w+, [\"']|\bformat_float",  # format(value, ".2f")
            r"%\.\d+[eEfFgG]",  # "%.2f" % value
            rf"\b(words|Words\(.*?\)|w|english)\.({NUMBER_METHODS})\b",
            r"\bgetattr\(words",
        ]
    )
)
"""Source text that writes a number with decimals, as a percentage, or by a method of `Words`."""

MAY_FORMAT = {
    "commands/film_open": "megabytes of the cache",
    "evaluation": "seconds of marks that lie where nothing can be judged",
    "film_groups": "names of groups by a number of a table",
    "exchange/table": "cells of a table",
    "exchange/eaf": "ends of a vocabulary's bins",
    "page/charts": "places in a drawing",
    "windows_to_judge": "cells of a table to fill in",
    "workspace/rules": "ends of a window, in a key",
    "workspace/server": "the start of a stream",
    "workspace/tables": "cells of a table",
}
"""Modules that write decimals, and of what: none of them is the number of a claim."""


@pytest.mark.parametrize(
    "line",
    [
        "f'{share:.0%} of the film'",
        "words.say('x', p=words.probability(p))",
        "f'{value:.2f}'",
        "f'{round(100 * claim.number)} % of the film'",
        "f'{value:.3g}'",
        "f'{value:{spec}}'",
        "f'{claim.number} of the film'",
        "f'{rate.share} of the film'",
        "format(value, '.2f')",
        "'%.2f of the film' % value",
        "'{:.2%} of the film'.format(value)",
        "' '.join([str(round(value, 2)), 'of the film'])",
        "Words('en').share(value)",
        "write = view.words.share",
        "getattr(words, 'share')(value)",
        "np.format_float_positional(value, 2)",
        "view.words.durations(1.0, 2.0)",
    ],
)
def test_a_number_in_a_sentence_is_noticed_however_it_is_written(line):
    """A pattern, `WRITES_NUMBER`, finds source text that writes a number with decimals or as a percentage.

    Another test searches all modules by it. It must find every way to write a number, or that proves nothing.
    """
    assert WRITES_NUMBER.search(line)


def test_only_claims_and_the_listed_modules_write_decimals():
    """A claim is a number with its conditions: every number in a sentence must come from a claim.

    So of all modules of the package only those in `claims` write decimals, and some that write none of a
    claim, as cells of a table (`MAY_FORMAT` lists them). `WRITES_NUMBER` finds source text that does so.
    """
    modules_that_write = set()
    for path in ROOM.rglob("*.py"):
        is_of_claims = path.parent.name == "claims"
        if not is_of_claims and WRITES_NUMBER.search(path.read_text(encoding="utf-8")):
            modules_that_write.add(path.relative_to(ROOM).with_suffix("").as_posix())

    assert modules_that_write == MAY_FORMAT.keys()


@pytest.mark.parametrize("name", ["assets/notes", "page/assets/film"])
def test_no_text_of_notes_or_pages_formats_numbers(name):
    """A field with a format, as {start:.1f}, may hold a time as it was typed, and no other number."""
    for language in LANGUAGES:
        texts = tomllib.loads((ROOM / f"{name}.{language}.toml").read_text(encoding="utf-8"))
        for text in texts.values():
            fields_with_format = set(re.findall(r"\{(\w+):[^}]*\}", text))
            assert fields_with_format <= {"start", "end", "whole"}, text


@pytest.mark.parametrize(("language", "written"), [("en", "+0.000"), ("fr", "+0,000")])
def test_a_difference_that_rounds_to_0_is_written_with_a_plus_even_if_it_was_below_0(language, written):
    """A sentence writes the difference of two numbers with a sign; -0.0004 and 0.0004 both round to 0.000.

    Two numbers that look alike must not differ in their sign. All tables write 0 with a plus, too.
    """
    words = Words(language)
    assert words.difference(-0.0004, None) == written
    assert words.difference(0.0004, None) == written


def test_a_claim_says_which_part_of_a_new_film_consists_of_windows_that_the_model_was_trained_on():
    """90 of the film's 900 s, such as a trailer, are also in a film that the model was trained on.

    These rows have the flag `trained_on`, and a claim says that they are a tenth of the film.
    """
    film = with_model(fake_scored_film(n_rows=60, duration_s=900.0), flags={"trained_on": 90.0})
    (flagged,) = [claim for claim in film_claims(film) if claim.KIND == "flagged time"]
    assert flagged.what == "trained_on"
    assert flagged.number == pytest.approx(0.1)


def test_no_claim_counts_flagged_windows_of_a_film_that_the_model_was_trained_on():
    """The title of such a film says that the model knows it, so that no part of it needs to be named."""
    film = with_model(fake_scored_film(n_rows=60, duration_s=900.0), flags={"trained_on": 90.0})
    trained_on_it = with_model(film, is_trained_on=True)
    assert not [claim for claim in film_claims(trained_on_it) if claim.KIND == "flagged time"]


def test_no_script_of_a_page_rounds_a_probability():
    """Scripts get probabilities as texts: rounded a second time they might differ from the sentence.

    A script that rounds writes `p.toFixed(2)`, `passage.p.toFixed(2)` or `p?.toFixed(2)`.
    """
    for path in (ROOM / "page" / "assets").glob("*.js"):
        script = path.read_text(encoding="utf-8")
        assert re.findall(r"[\w.?]*\bp\??\.toFixed", script) == [], path.name


CALL_OF_NUMBER_METHOD = rf"w\.({NUMBER_METHODS}|seconds)\("
"""A method of `Words` that writes a number, in a template: `w.share(`."""


@pytest.mark.parametrize(
    "breach",
    [
        rf"w\.say\([^{{}}]*{CALL_OF_NUMBER_METHOD}",
        rf"~\s*{CALL_OF_NUMBER_METHOD}",
        rf"{CALL_OF_NUMBER_METHOD}[^)]*\)\s*~",
        r"(:\.\d|%\.\d|\d%\").*format",
    ],
    ids=["filled into a text", "joined after a text", "joined before a text", "formatted with decimals"],
)
def test_no_template_writes_the_number_of_a_claim_into_a_text(breach):
    """Sentences with numbers come from claims alone, which say when, of whom and under which conditions.

    So a page's template may have a number in a cell by itself, as `w.share(p)` writes it, but may make no
    text around it. A breach is a pattern of how a template would: `w.say("x", share=w.share(p))` fills the
    number into a text, `~` joins it to one, and "%.2f" formats it.
    """
    for template in (ROOM / "page" / "assets").glob("*.j2"):
        assert not re.search(breach, template.read_text(encoding="utf-8")), template.name


def concrete_kinds():
    """Return the classes of claims, but for the two that only others derive from."""
    classes = [kind for kind in vars(claim_kinds).values() if isinstance(kind, type)]
    return [
        kind
        for kind in classes
        if issubclass(kind, FilmClaim) and kind not in (FilmClaim, claim_kinds.ModelClaim)
    ]


def test_each_kind_of_claim_has_one_function_and_a_name_of_its_own():
    """`phrases.SENTENCES` gives of each class of claims the function that writes its sentence."""
    classes = concrete_kinds()
    assert set(phrases.SENTENCES) == set(classes)
    functions = set(phrases.SENTENCES.values())
    assert len(functions) == len(classes)
    names = {kind.KIND for kind in classes}
    assert len(names) == len(classes)


def test_each_kind_of_claim_is_in_the_table_of_the_docs():
    """The documentation for programmers lists every kind of claim, so that none is undocumented."""
    page = Path(__file__).parents[2] / "docs" / "film-programmers.md"
    _, from_table_on = page.read_text(encoding="utf-8").split("| claim | number |")
    table, *_ = from_table_on.split("\n\n")
    _, *rows = table.splitlines()
    in_docs = set()
    for row in rows:
        first_cell = row.split("|")[1]  # the row begins with a bar
        # "agreement of a pair, of a film" names two kinds; the second has the first's beginning.
        kinds_in_cell = first_cell.replace(", of ", ", agreement of ").split(",")
        in_docs |= {name.strip() for name in kinds_in_cell}

    assert {kind.KIND for kind in concrete_kinds()} <= in_docs


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_has_a_json_form_and_a_sentence(language):
    """All that is claimed of an invented film can be read by programs, which know the kind and the number.

    People read a sentence, which is not empty.
    """
    film = fake_scored_film(n_rows=60, duration_s=600.0)
    for claim in film_claims(film):
        as_json = document(claim)
        assert as_json["claim"] == claim.KIND
        assert as_json["number"] == claim.number
        assert phrases.sentence(claim, Words(language))


# --- numbers of films
# ---------------------------------------------------------------------------
@st.composite
def films(draw):
    """Draw a film of one model: its unlike and black parts, the weights of concepts, and the threshold."""
    unlike_share = draw(st.floats(0, 1))
    black_share = draw(st.floats(0, 0.5))
    film = fake_scored_film(
        n_rows=draw(st.integers(12, 40)),
        duration_s=draw(st.sampled_from([47.0, 600.0, 5400.0])),
        seed=draw(st.integers(0, 50)),
        unlike_parts=((0.0, unlike_share),) if unlike_share else (),
    )
    rng = np.random.default_rng(draw(st.integers(0, 50)))
    n_concepts = len(film.model().concepts)
    weights = draw(st.lists(st.floats(-2, 2), min_size=n_concepts, max_size=n_concepts))
    is_black = rng.random(len(film.table)) < black_share
    film = with_black_rows(with_weights(film, weights), is_black)
    film = with_probabilities_of_logits(film)
    usual_values = [draw(st.floats(-0.5, 0.5)) for _ in range(n_concepts)]
    film = with_usual_values(film, usual_values, weights)
    return with_model(film, threshold_p=draw(st.floats(0.05, 0.95)))


def with_weights(film, weights):
    """Let each concept add its weight times its value to the logit of a row; the rest is the base."""
    table = film.table.copy()
    has_p = table["p"].notna()
    base_where_unlike = -2.1  # that of every other row of an invented film
    table["logit"] = table["base_contribution"].fillna(base_where_unlike)
    for concept, weight in zip(film.model().concepts, weights, strict=True):
        added = weight * table[f"{concept.name}_value"]
        table["logit"] += added
        table[f"{concept.name}_contribution"] = np.where(has_p, added, np.nan)
    return replace(film, table=table)


def with_black_rows(film, is_black):
    """Add the flag black to these rows."""
    table = film.table.copy()
    table.loc[is_black, "flags"] = [f"{flags};black".strip(";") for flags in table.loc[is_black, "flags"]]
    return replace(film, table=table)


def with_probabilities_of_logits(film):
    """Compute the probabilities from the logits; rows that had none and black rows have none."""
    table = film.table.copy()
    has_p = table["p"].notna() & ~table["flags"].str.contains("black")
    draws = np.array(film.model().calibration.draws)
    p = np.where(has_p, mean_probability(draws, table["logit"].to_numpy()), np.nan)
    table["p"] = p
    # Any band around p that lies within 0 and 1.
    table["p_low"] = p * 0.9
    table["p_high"] = 1 - (1 - p) * 0.9
    return replace(film, table=table)


def with_usual_values(film, usual_values, weights):
    """Count contributions from each concept's usual value, at which it adds nothing.

    What the concept adds at that value goes to the base, so that the sum is still the logit.
    """
    table = film.table.copy()
    concepts = []
    for concept, usual, weight in zip(film.model().concepts, usual_values, weights, strict=True):
        added_at_usual = weight * usual
        table[f"{concept.name}_contribution"] -= added_at_usual
        table["base_contribution"] += added_at_usual
        concepts.append(changed(concept, usual=usual))
    return with_model(replace(film, table=table), concepts=concepts)


def claims_of_kind(film, kind):
    """Return the film's claims of one class."""
    return [claim for claim in film_claims(film) if isinstance(claim, kind)]


def numbers_in(text, words):
    """Return the numbers of a sentence as written, without signs and percent: `0.2`, in French `0,2`."""
    return re.findall(rf"\d+(?:\{words['decimal']}\d+)?", text)


def is_nothing(rows):
    """Tell of each row whether it is black or credits: then the film has no content there."""
    return rows["flags"].str.contains("black|credits").to_numpy()


def is_judged(rows):
    """Tell of each row whether a model gives it a probability, and it has content."""
    return rows["p"].notna().to_numpy() & ~is_nothing(rows)


def seconds_of(rows):
    """Return the length of each row in seconds."""
    return (rows["end_s"] - rows["start_s"]).to_numpy()


def is_inside(rows, start_s, end_s):
    """Tell of each row whether it lies within a span."""
    return ((rows["start_s"] >= start_s) & (rows["end_s"] <= end_s)).to_numpy()


def marked_passages_of(film):
    """Return start and end, in seconds, of each passage that reaches the threshold."""
    marked = film.segments().query("reaches == 1")
    return list(zip(marked["start_s"], marked["end_s"], strict=True))


class SecondsOfFilm(NamedTuple):
    """Seconds of a film's rows: judged, with content but not judged, and without content (black, credits)."""

    judged: float
    unjudged: float
    nothing: float


def seconds_by_hand(film):
    """Add up the lengths of the rows that are judged, of those that are not, and of those without content."""
    rows = film.rows()
    seconds = seconds_of(rows)
    is_unjudged = ~is_judged(rows) & ~is_nothing(rows)
    return SecondsOfFilm(
        judged=float(seconds[is_judged(rows)].sum()),
        unjudged=float(seconds[is_unjudged].sum()),
        nothing=float(seconds[is_nothing(rows)].sum()),
    )


@given(films(), st.sampled_from(LANGUAGES))
def test_judged_unjudged_and_empty_seconds_add_up_to_the_film(film, language):
    """Each second of a film is judged by the model, unlike its training clips, or empty (black, credits).

    The claim on the judged time has the sums of the film's rows, which are added up by hand here, and its
    sentence writes them.
    """
    words = Words(language)
    seconds = seconds_by_hand(film)
    assert seconds.judged + seconds.unjudged + seconds.nothing == pytest.approx(film.record.duration_s)

    (claim,) = claims_of_kind(film, claim_kinds.JudgedTime)

    assert claim.judged_s == pytest.approx(seconds.judged, abs=1e-6)
    assert claim.unlike_s == pytest.approx(seconds.unjudged, abs=1e-6)
    assert claim.nothing_s == pytest.approx(seconds.nothing, abs=1e-6)
    sentence = phrases.sentence(claim, words)
    for duration in words.durations(seconds.judged, seconds.unjudged, seconds.nothing):
        assert duration in sentence


@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_is_of_judged_time_if_over_a_fifth_is_not_judged(film, language):
    """The first sentence on a film says how much of it the model marks; if nothing is judged there is none.

    If over a fifth of what is neither black nor credits is not judged, as it is unlike the training clips,
    this is said to be "of these minutes", those that were judged, and not of the film.
    """
    of_these_minutes = Words(language)["sentence_of_these"]
    seconds = seconds_by_hand(film)
    seconds_of_content = seconds.judged + seconds.unjudged

    sentence = first_sentence(film, language=language)

    if seconds.judged == 0:
        assert sentence == ""
    else:
        is_over_a_fifth_unjudged = seconds.unjudged > seconds_of_content / 5
        assert (of_these_minutes in sentence) == is_over_a_fifth_unjudged


def reaching_seconds(film):
    """Tell the length of each row that is judged and reaches the threshold, and 0 of others."""
    rows = film.rows()
    reaches = is_judged(rows) & (rows["p"] >= film.model().threshold_p)
    return np.where(reaches, seconds_of(rows), 0.0)


def seconds_in_passages(film, seconds_of_rows):
    """Add up the seconds of the judged rows that lie in passages."""
    rows = film.rows()
    total_s = 0.0
    for start_s, end_s in marked_passages_of(film):
        is_in_passage = is_judged(rows) & is_inside(rows, start_s, end_s)
        total_s += seconds_of_rows[is_in_passage].sum()
    return total_s


MIN_WRITTEN_S = 0.5
"""Less time would be written as zero seconds, and is not written."""


def first_numbers_by_hand(film, words):
    """Write the numbers of the first sentence, computed from the rows; without those of concepts."""
    seconds = seconds_by_hand(film)
    n_passages = len(marked_passages_of(film))
    marked_s = seconds_in_passages(film, seconds_of(film.rows()))
    called_s = seconds_in_passages(film, reaching_seconds(film))
    judged, marked, nothing, called = words.durations(seconds.judged, marked_s, seconds.nothing, called_s)
    numbers = [judged]
    if seconds.unjudged + seconds.nothing >= MIN_WRITTEN_S:
        judged_share, *_ = words.shares_of_whole([*seconds])
        numbers.append(judged_share)
    if seconds.nothing >= MIN_WRITTEN_S:
        numbers.append(nothing)
    if n_passages:
        numbers.append(marked)
    else:
        # What reaches the threshold lies in places too short for a passage.
        too_short_s = reaching_seconds(film).sum()
        if too_short_s >= MIN_SAID_S:
            numbers.append(words.duration(too_short_s))
            numbers.append(words.seconds(MIN_S))
    if called != marked:
        numbers.append(called)
    if n_passages > 1:
        numbers.append(str(n_passages))
    return numbers


TEXTS_OF_CONCEPTS = (
    *("mostly", "mostly_1"),
    *("mostly_half", "mostly_half_1"),
    *("mostly_more", "mostly_more_1"),
)
"""Keys of the texts on the concepts of passages: of most of the time, half of it or more, several or one."""


def without_concepts(sentence, claim, words):
    """Cut the first sentence before the text on the concepts, which comes last."""
    if not claim.concepts:
        return sentence
    for key in TEXTS_OF_CONCEPTS:
        beginning, *_ = words[key].split("{")
        if beginning in sentence:
            before_concepts, *_ = sentence.split(beginning)
            return before_concepts
    raise AssertionError(sentence)


@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_on_a_film_has_no_numbers_but_those_computed_from_its_rows(film, language):
    """The sentence is such as "In 8 min of 10 min (80%) ... 2 min, in 3 passages": 8, 10, 80, 2 and 3.

    `first_numbers_by_hand` computes the numbers from the rows. The end of the sentence, which names the
    concepts of the passages, is cut off before: another test is on it.
    """
    words = Words(language)
    sentence = first_sentence(film, language=language)
    is_nothing_judged = sentence == ""
    if is_nothing_judged:
        return

    (claim,) = claims_of_kind(film, claim_kinds.MarkedPassages)
    sentence_but_for_concepts = without_concepts(sentence, claim, words)
    numbers_by_hand = " ".join(first_numbers_by_hand(film, words))

    written = numbers_in(sentence_but_for_concepts, words)
    expected = numbers_in(numbers_by_hand, words)
    assert sorted(written) == sorted(expected)


# --- numbers of passages and their reasons
# ---------------------------------------------------------------------------
MIN_CHANGE = 0.01
"""A reason is told from one percent on by which a concept moves the probability of a passage."""

ROUNDING = 2e-4
"""Contributions and probabilities are kept to four decimals: so near to the least, it may be told or not."""


class PassageByHand:
    """A passage as computed from the film's rows: means over its judged rows, weighed by their seconds.

    Attributes
    ----------
    claim
        The program's claim on the passage, which the test compares with what is computed here.
    rows
        The passage's judged rows.
    p
        Its probability.
    """

    def __init__(self, film, claim):
        rows = film.rows()
        rows = rows[is_inside(rows, claim.time.start_s, claim.time.end_s)]
        self.claim = claim
        self.rows = rows[is_judged(rows)]
        self.draws = np.array(film.model().calibration.draws)
        self.p = self.mean_over_time(mean_probability(self.draws, self.rows["logit"].to_numpy()))

    def mean_over_time(self, values):
        """Average a number of each row, weighed by the row's seconds."""
        return np.average(values, weights=seconds_of(self.rows))

    def change_of_p_by(self, concept):
        """Return p minus the p that the passage would have if the concept added nothing to the logit."""
        logit_without = self.rows["logit"] - self.rows[f"{concept}_contribution"]
        return self.p - self.mean_over_time(mean_probability(self.draws, logit_without.to_numpy()))

    def has_reason_surely(self, concept):
        """Tell whether p would change by .01 or more without the concept, even if that is rounded."""
        return abs(self.change_of_p_by(concept)) > MIN_CHANGE + ROUNDING


def passages_by_hand(film):
    """Return the film's passages as computed from its rows, each with the program's claim on it."""
    return [PassageByHand(film, claim) for claim in claims_of_kind(film, claim_kinds.Passage)]


def concepts_by_name(film):
    return {concept.name: concept for concept in film.model().concepts}


def text_key_of_side(change, contribution):
    """Return the key of the text of a reason: for the passage, against it, or neither ("why_both").

    `change` is that of the probability, `contribution` the one to the logit, which the reason's bar shows.
    Where their signs differ, the reason is on neither side.
    """
    if change * contribution < 0:
        return "why_both"
    return "why_for" if change > 0 else "why_against"


@given(films(), st.sampled_from(LANGUAGES))
def test_a_passage_has_the_numbers_of_its_judged_rows(film, language):
    """A passage's probability is the mean of its judged rows, weighed by their seconds.

    Its length is computed before its ends are rounded: a passage from 0.6 to 4.4 s is 3.8 s long, written 4,
    although its ends are written 1 and 4.
    """
    words = Words(language)
    for passage_by_hand in passages_by_hand(film):
        claim = passage_by_hand.claim
        length_s = claim.time.end_s - claim.time.start_s
        written_length, _written_judged_time = words.durations(length_s, claim.judged_s)

        assert claim.number == pytest.approx(passage_by_hand.p)
        assert words.probability(passage_by_hand.p) in phrases.passage_p(claim, words)
        assert claim.time.seconds == pytest.approx(length_s)
        assert written_length in phrases.passage_length(claim, words)


@given(films())
def test_a_reason_of_a_passage_has_what_its_concept_adds_in_the_judged_rows(film):
    """A claim on a passage has reasons: concepts, each with two numbers, kept to four decimals.

    `contribution` is what the concept adds to the logit, on average over the passage's judged rows. `number`
    is by how much the passage's probability would change if the concept added nothing. The test computes both
    again from the rows.
    """
    kept_to = 1e-4
    for passage_by_hand in passages_by_hand(film):
        claim = passage_by_hand.claim
        for reason in claim.reasons:
            concept = reason.what
            contribution_in_rows = passage_by_hand.rows[f"{concept}_contribution"]
            mean_contribution = passage_by_hand.mean_over_time(contribution_in_rows)
            change_of_p = passage_by_hand.change_of_p_by(concept)
            assert reason.contribution == pytest.approx(mean_contribution, abs=kept_to)
            assert reason.number == pytest.approx(change_of_p, abs=kept_to)


class ReasonByHand:
    """A reason for a passage, compared with the usual value and the usual probability of its concept.

    The means are computed from the passage's rows.
    """

    def __init__(self, passage_by_hand, reason, concept):
        values = passage_by_hand.rows[f"{concept.name}_value"]
        self.value_is_above_usual = passage_by_hand.mean_over_time(values) > concept.usual
        self.rows_are_on_both_sides = values.min() < concept.usual < values.max()
        p_is_above_usual = reason.p > concept.usual_p
        self.p_is_usual = abs(reason.p - concept.usual_p) <= 1e-4  # it is kept to four decimals
        self.value_and_p_are_on_two_sides = self.value_is_above_usual != p_is_above_usual
        added_to_logit = passage_by_hand.mean_over_time(passage_by_hand.rows[f"{concept.name}_contribution"])
        added_to_p = passage_by_hand.change_of_p_by(concept.name)
        self.logit_and_p_have_two_signs = (added_to_logit > 0) != (added_to_p > 0)


@given(films())
def test_a_reason_says_whether_there_is_more_or_less_of_its_concept_than_usual(film):
    """As in "more Body": the concept's mean value in the passage is above the one usual in training.

    A reason is "mixed" if some of the passage's rows are above the usual value and some below, and means over
    them contradict each other: the value is above the usual one and the concept's probability below, or what
    the concept adds to the logit has another sign than what it adds to the probability.
    """
    concepts = concepts_by_name(film)
    for passage_by_hand in passages_by_hand(film):
        for reason in passage_by_hand.claim.reasons:
            by_hand = ReasonByHand(passage_by_hand, reason, concepts[reason.what])
            if reason.amount == "mixed":
                assert by_hand.rows_are_on_both_sides
                assert by_hand.value_and_p_are_on_two_sides or by_hand.logit_and_p_have_two_signs
            else:
                assert reason.amount == ("more" if by_hand.value_is_above_usual else "less")
                if by_hand.rows_are_on_both_sides and not by_hand.p_is_usual:
                    assert not by_hand.value_and_p_are_on_two_sides


def text_before_reasons(text_key, words):
    """Return a text of `Words` up to the place of its reasons: "For it: " of "For it: {reasons}."."""
    return words.say(text_key, reasons="|").split("|")[0]


@given(films(), st.sampled_from(LANGUAGES))
def test_each_reason_of_a_percent_or_more_is_said_with_its_side_and_amount(film, language):
    """As in "For it: more Body": the side is that the concept speaks for the passage, the amount is "more".

    A concept is a reason if a passage's probability would change by .01 or more without it. Changes that may
    be .01 only by rounding are not looked at. The sentence on this reason begins with its side; amount and
    concept stand in it, and in the sentence on all reasons of the passage.
    """
    words = Words(language)
    for passage_by_hand in passages_by_hand(film):
        reasons_of_passage = passage_by_hand.claim.reasons
        reason_by_concept = {reason.what: reason for reason in reasons_of_passage}
        sentence_on_all_reasons = phrases.reasons_sentence(reasons_of_passage, words)
        for concept in film.model().concepts:
            if passage_by_hand.has_reason_surely(concept.name):
                reason = reason_by_concept[concept.name]
                sentence = phrases.sentence(reason, words)
                change_of_p = passage_by_hand.change_of_p_by(concept.name)
                key_of_side = text_key_of_side(change_of_p, contribution=round(reason.contribution, 4))
                amount_and_concept = words.say(f"why_{reason.amount}", concept=reason.what)
                assert sentence.startswith(text_before_reasons(key_of_side, words))
                assert amount_and_concept in sentence
                assert amount_and_concept in sentence_on_all_reasons


@given(films(), st.sampled_from(LANGUAGES))
def test_a_reason_of_less_than_a_percent_does_not_name_its_concept(film, language):
    """Without the concept a passage's probability would change by less than .01, which is noise to a reader.

    `ROUNDING`: numbers are kept to four decimals, and one just below .01 may be named or not.
    """
    words = Words(language)
    for passage_by_hand in passages_by_hand(film):
        for reason in passage_by_hand.claim.reasons:
            change_of_p = passage_by_hand.change_of_p_by(reason.what)
            if abs(change_of_p) < MIN_CHANGE - ROUNDING:
                assert words.translated(reason.what) not in phrases.sentence(reason, words)


@given(films(), st.sampled_from(LANGUAGES))
def test_a_reason_says_if_the_model_finds_its_concept_no_better_than_by_chance(film, language):
    """A reason is a concept without which a passage's probability would change by .01 or more.

    Some concepts of the model are found no better than by chance (`is_near_chance`): then the reason has this
    as a condition, and its sentence says so. Changes that may be .01 only by rounding are not looked at.
    """
    words = Words(language)
    found_by_chance = {concept.name: concept.is_near_chance for concept in film.model().concepts}
    for passage_by_hand in passages_by_hand(film):
        for reason in passage_by_hand.claim.reasons:
            if passage_by_hand.has_reason_surely(reason.what):
                is_doubtful = found_by_chance[reason.what]
                assert reason.has(NEAR_CHANCE) == is_doubtful
                assert (words["why_near_chance"] in phrases.sentence(reason, words)) == is_doubtful


def test_a_sentence_that_names_one_concept_names_the_heaviest():
    """Body, Look and Clothing are for a passage, in this order, and Activity is against it.

    On each side one is named (`most`); of Look and Clothing it is said that there are two more.
    """
    film = with_passage(
        added_to_logit={"Body": 2.0, "Look": 1.0, "Clothing": 0.5, "Activity": -1.0},
        seen_with_p={"Body": 0.9, "Look": 0.9, "Clothing": 0.9, "Activity": 0.9},
    )
    (claim,) = [claim for claim in claims_of_kind(film, claim_kinds.Passage) if claim.reasons]

    sentence = phrases.reasons_sentence(claim.reasons, Words("en"), maximum=1)

    assert "Body" in sentence
    assert Words("en").counted("more_concepts", 2) in sentence
    assert "Activity" in sentence
    assert "Look" not in sentence


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refused_share_names_the_unlike_part_of_the_content(language):
    """The first half of a film is unlike the training clips, so that the model expects no share of it.

    The refusal says how much is unlike: a part of the content, which is all but the credits at the end. As a
    part of the whole film it would be less.
    """
    words = Words(language)
    film = fake_scored_film(n_rows=400, duration_s=600.0, unlike_parts=((0.0, 0.5),))
    rows = film.rows()
    seconds = rows["end_s"] - rows["start_s"]
    unlike_s = seconds[rows["flags"] == "unlike"].sum()
    unlike_part_of_content = unlike_s / seconds[rows["flags"] != "credits"].sum()
    unlike_part_of_film = unlike_s / seconds.sum()
    assert words.share(unlike_part_of_content) != words.share(unlike_part_of_film)

    (refused_share,) = claims_of_kind(film, claim_kinds.ExpectedShare)

    assert refused_share.has(claim_kinds.LITTLE_JUDGED)
    assert refused_share.unlike == pytest.approx(unlike_part_of_content)
    assert words.share(unlike_part_of_content) in phrases.sentence(refused_share, words)


def mean_movement_of_camera(*values_of_windows):
    """Claim the mean of `camera`, a variable of how a film is made, over windows of 8 seconds."""
    film = fake_scored_film(n_rows=60, duration_s=600.0)
    starts = 8.0 * np.arange(len(values_of_windows))
    variables = pd.DataFrame({"start_s": starts, "end_s": starts + 8.0, "camera": values_of_windows})
    film = replace(film, variables=variables)
    return of_film.staging_mean(film, film.model(), "camera", digits=2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_mean_of_staging_says_how_many_windows_it_is_of(language):
    """The movement of the camera is .1 and .3 in two windows, and unknown (NaN) in three others or in none.

    The mean is .2. The sentence on it says that it is of 2 of 5 windows; if all are known it has the mean
    alone.
    """
    words = Words(language)
    mean = words.number(0.2)

    of_two_of_five = mean_movement_of_camera(0.1, 0.3, np.nan, np.nan, np.nan)
    of_two_of_two = mean_movement_of_camera(0.1, 0.3)

    assert of_two_of_five.number == 0.2
    assert of_two_of_five.n_known == 2
    assert of_two_of_five.n_windows == 5
    assert numbers_in(phrases.sentence(of_two_of_five, words), words) == [mean, "2", "5"]
    assert numbers_in(phrases.sentence(of_two_of_two, words), words) == [mean]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_citation_of_a_place_below_the_threshold_says_so(language):
    """Passages are called 1, 2, ...; places below the threshold that are listed after them w1, w2, ..."""
    words = Words(language)
    film = fake_scored_film(n_rows=60, duration_s=600.0)
    claims = claims_of_kind(film, claim_kinds.Passage)
    are_below = [claim.name.startswith("w") for claim in claims]
    assert set(are_below) == {True, False}  # the film has both

    for claim, is_below in zip(claims, are_below, strict=True):
        citation = phrases.citation_sentence(claim, positive="S", model="m", windows=None, words=words)
        assert (words["below"] in citation) == is_below


# --- numbers of judges
# ---------------------------------------------------------------------------
@st.composite
def calls_of_two(draw):
    """Draw whether each of two judges called each of 10 to 60 windows S.

    The second repeats the first's call with a drawn chance from 0 to 1, and else turns it round: they may
    agree on all windows, on none, or on any number between.
    """
    n = draw(st.integers(10, 60))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    positive_share = draw(st.floats(0.05, 0.95))
    chance_of_agreement = draw(st.floats(0, 1))
    by_first = rng.random(n) < positive_share
    agrees = rng.random(n) < chance_of_agreement
    by_second = np.where(agrees, by_first, ~by_first)
    return by_first, by_second


def kappa_of(one, other):
    """Cohen's kappa by its definition; NaN where both say the same of all windows."""
    observed = (one == other).mean()
    chance = one.mean() * other.mean() + (~one).mean() * (~other).mean()
    return (observed - chance) / (1 - chance) if chance < 1 else np.nan


class ClaimsOfTwo(NamedTuple):
    """What `film report` claims of the windows that two people judged."""

    share: claim_kinds.JudgedShare
    agreement: claim_kinds.PairKappa


def agreement_of_two(by_ab, by_cd):
    """Record how far AB and CD agree; kappa and its interval are None where they are undefined."""
    kappa, low, high = [None if np.isnan(value) else value for value in kappa_interval(by_ab, by_cd)]
    n_agreed = int((by_ab == by_cd).sum())
    return JudgesAgreement(["AB", "CD"], len(by_ab), n_agreed, kappa, low, high)


def claims_of_two(by_ab, by_cd):
    """Claim the share that judges AB and CD called S, and how far they agree, as `film report` does."""
    agreement = agreement_of_two(by_ab, by_cd)
    share = float((by_ab.mean() + by_cd.mean()) / 2)
    rate = CorrectedRate(
        model="m",
        value=share,
        low=min(0.1, share),  # no test reads the bounds: any that hold the share will do
        high=max(0.9, share),
        level=0.95,
        method="wilson",
        n=len(by_ab),
        n_positive_by_all=int((by_ab & by_cd).sum()),
        n_rows=99,  # more than were judged
        worth=None,
        expected=None,
        content_s=99.0,
        annotators=["AB", "CD"],
        positives=[int(by_ab.sum()), int(by_cd.sum())],
        agreement=[agreement],
        positive="S",
    )
    share_claim, agreement_claim = rate_claims(FilmRates((rate,), (agreement,)))
    return ClaimsOfTwo(share_claim, agreement_claim)


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_agreement_of_two_judges_has_counts_and_kappa(calls, language):
    """AB and CD call windows positive or negative; a sentence says how many windows both call the same.

    It also gives Cohen's kappa, which is 1 for full agreement, 0 for what chance gives, and undefined if both
    call all windows the same. The note on the share of both has it too.
    """
    words = Words(language)
    by_ab, by_cd = calls
    n_windows = len(by_ab)
    n_alike = int((by_ab == by_cd).sum())
    kappa = kappa_of(by_ab, by_cd)
    written_kappa = words["undefined"] if np.isnan(kappa) else words.number(kappa)

    share, agreement = claims_of_two(by_ab, by_cd)
    sentence = phrases.sentence(agreement, words)
    note_on_share = phrases.judged_share_note(share, [agreement], words)

    numbers = numbers_in(sentence, words)
    assert str(n_alike) in numbers
    assert str(n_windows) in numbers
    assert words.share(n_alike / n_windows) in sentence
    assert written_kappa in sentence
    assert sentence in note_on_share


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_share_and_agreement_say_if_kappa_may_be_chance(calls, language):
    """A share of two judges who agree no better than by chance means little: two sentences must say so.

    These are on the share and on kappa, which is 0 for an agreement by chance. It is in doubt if kappa is
    undefined, if its interval lies below 0, or if the interval holds 0.
    """
    words = Words(language)
    by_ab, by_cd = calls
    interval = kappa_interval(by_ab, by_cd)
    is_in_doubt = {
        UNDEFINED: np.isnan(kappa_of(by_ab, by_cd)),
        AGREE_LESS: interval.high < 0,
        AGREE_BY_CHANCE: interval.low <= 0 <= interval.high,
    }

    share, agreement = claims_of_two(by_ab, by_cd)

    for doubt, is_expected in is_in_doubt.items():
        text_on_share = words[phrases.PANEL_DOUBTS[doubt]]
        text_on_agreement = words[phrases.PAIR_DOUBTS[doubt]]
        assert share.has(doubt) == is_expected
        assert agreement.has(doubt) == is_expected
        assert (text_on_share in phrases.sentence(share, words)) == is_expected
        assert (text_on_agreement in phrases.sentence(agreement, words)) == is_expected


# --- counts of passages, and concepts named for them
# ---------------------------------------------------------------------------
@given(films())
def test_passages_are_counted_at_both_edges_of_the_band(film):
    """A probability has a band from p_low to p_high.

    A page says how many passages there are, and how many there would be if each probability were at the
    lower, or upper, edge of its band. This must be what is counted in a film that has the edge in place of
    the probability. The two counts stand in place of an interval.
    """
    for claim in claims_of_kind(film, claim_kinds.MarkedPassages):
        counts = {"p": claim.number, "p_low": claim.at_low_edge, "p_high": claim.at_high_edge}
        for column, count in counts.items():
            film_by_column = replace(film, table=film.table.assign(p=film.table[column]))
            assert count == len(marked_passages_of(film_by_column))
        assert claim.interval is None


LOGIT_OF_PASSAGE = 0.5


def with_passage(*, added_to_logit, seen_with_p):
    """Plant a film of 30 rows of a second each, with one passage, from 10 to 20 s.

    The rows of the passage are alike but for the concepts. `added_to_logit` has by concept what it adds in
    the passage (more than 0 speaks for it), `seen_with_p` its probability (it is seen from .5 on); each is
    one number for all ten seconds or a list of ten. Other concepts add nothing and are seen nowhere.
    """
    film = fake_scored_film(n_rows=30, duration_s=30.0, unlike_parts=())
    model = film.model()
    passage_rows = slice(10, 20)
    logit = np.full(30, -9.0)  # far from violent
    logit[passage_rows] = LOGIT_OF_PASSAGE
    p = mean_probability(np.array(model.calibration.draws), logit)
    table = film.table.assign(
        start_s=np.arange(30.0), end_s=np.arange(1.0, 31.0), flags="", logit=logit, p=p, p_low=p, p_high=p
    )
    for concept in model.concepts:
        added = np.zeros(30)
        added[passage_rows] = added_to_logit.get(concept.name, 0.0)
        table[f"{concept.name}_contribution"] = added
        concept_p = np.zeros(30)
        concept_p[passage_rows] = seen_with_p.get(concept.name, 0.0)
        table[f"{concept.name}_p"] = concept_p
    concepts = [changed(concept, usual=0.0, usual_p=0.2, threshold_p=0.5) for concept in model.concepts]
    just_below_passage = float(p[10]) - 0.01
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=just_below_passage)


def concepts_mostly_seen(film):
    """Name the concepts that the sentence on a film's only passage says are mostly seen in it."""
    claim = reaching_passages(film, film.model(), film.segments())
    assert claim.number == 1
    return [concept.name for concept in claim.concepts]


@pytest.mark.parametrize(
    ("body_adds", "p_of_body", "is_named"),
    [
        (1.0, [0.6] * 6 + [0.02] * 4, True),  # the mean, .37, is below the threshold
        (1.0, [0.98] * 4 + [0.4] * 6, False),  # the mean, .63, is above the threshold
        ([1.0] * 4 + [-1.0] * 6, 0.9, False),
        ([0.3] * 6 + [-2.0] * 4, 0.9, False),
    ],
    ids=[
        "seen in six of ten seconds",
        "seen in four of ten seconds",
        "speaks for the passage in four of ten seconds",
        "lowers the mean probability",
    ],
)
def test_a_concept_is_named_if_it_is_seen_and_speaks_for_most_of_a_passage(body_adds, p_of_body, is_named):
    """A passage has ten seconds. A concept is seen in a second in which its probability is .5 or more.

    It speaks for the passage in a second in which it adds to the logit.
    """
    film = with_passage(added_to_logit={"Body": body_adds}, seen_with_p={"Body": p_of_body})
    expected = ["Body"] if is_named else []
    assert concepts_mostly_seen(film) == expected


def logit_to_add_in_four_seconds(*, for_mean_change_of_p, added_in_six):
    """Find what Look must add to the logit in four of a passage's ten seconds for this mean change of p.

    In the other six it adds `added_in_six`.
    """
    draws = np.array(with_passage(added_to_logit={}, seen_with_p={}).model().calibration.draws)

    def change_of_p(added):
        logits = np.array([LOGIT_OF_PASSAGE, LOGIT_OF_PASSAGE - added])
        p_with_look, p_without_look = mean_probability(draws, logits)
        return p_with_look - p_without_look

    def excess(added):
        return 0.6 * change_of_p(added_in_six) + 0.4 * change_of_p(added) - for_mean_change_of_p

    return brentq(excess, -1.0, added_in_six)


def test_a_change_of_p_that_is_a_reason_only_if_rounded_is_one_in_table_claim_and_sentence():
    """A concept is a reason from a change of .01 on. Look changes a passage's p by .00997.

    Tables round that to .0100, with which Look is a reason; so it must be one in the claim on the passage,
    too, and in the sentence on all passages.
    """
    added_in_four = logit_to_add_in_four_seconds(for_mean_change_of_p=0.00997, added_in_six=0.3)
    look_adds = [0.3] * 6 + [added_in_four] * 4
    film = with_passage(added_to_logit={"Look": look_adds}, seen_with_p={"Look": 0.9})
    segment = film.segments().iloc[0]

    (look_in_table,) = [reason for reason in reasons(segment) if reason.concept == "Look"]
    reasons_in_claim = [reason.what for reason in passage(film.model(), segment).reasons if reason.moves]

    assert round(look_in_table.change, 4) == 0.01
    assert "Look" in reasons_in_claim
    assert concepts_mostly_seen(film) == ["Look"]


class ShareAndChange(NamedTuple):
    """Of a concept: the share of the marked time in which it is seen and for it, and the mean change of p."""

    share: float
    mean_change: float

    @property
    def should_be_named(self):
        # The mean is compared as it stands in a table, to four decimals.
        return self.share >= 0.5 and round(self.mean_change, 4) >= MIN_CHANGE

    @property
    def is_at_a_bound(self):
        """Tell whether the last digits of a sum decide: .00995 is what rounds to .0100."""
        return abs(self.share - 0.5) < 1e-9 or abs(self.mean_change - 0.00995) < 1e-9


def shares_and_changes_by_concept(film):
    """Compute from the rows of the marked passages, by concept, what decides whether it is named."""
    rows = film.rows()
    is_in_passage = np.zeros(len(rows), bool)
    for start_s, end_s in marked_passages_of(film):
        is_in_passage |= is_inside(rows, start_s, end_s)
    rows = rows[is_in_passage & is_judged(rows)]
    seconds = seconds_of(rows)
    draws = np.array(film.model().calibration.draws)
    by_concept = {}
    for concept in film.model().concepts:
        logit_without = rows["logit"] - rows[f"{concept.name}_contribution"]
        change = rows["p"].to_numpy() - mean_probability(draws, logit_without.to_numpy())
        is_seen = (rows[f"{concept.name}_p"] >= concept.threshold_p).to_numpy()
        speaks_for_film = change >= MIN_CHANGE
        share = seconds[is_seen & speaks_for_film].sum() / seconds.sum()
        mean_change = np.average(change, weights=seconds)
        by_concept[concept.name] = ShareAndChange(share, mean_change)
    return by_concept


@given(films())
def test_a_concept_is_named_if_it_is_seen_and_matters_half_the_time(film):
    """The claim on all marked passages of a film names the concepts that speak for most of the marked time.

    Such a concept is seen and raises the probability by .01 or more in half of the marked time, and its mean
    change is .01 or more, too. Both are computed from the rows. A concept of which one is just at its bound
    is not looked at, as there the last digit of a sum decides.
    """
    claim = reaching_passages(film, film.model(), film.segments())
    has_passages = claim is not None and claim.number > 0
    if not has_passages:
        return

    named = {concept.name for concept in claim.concepts}

    for name, share_and_change in shares_and_changes_by_concept(film).items():
        if not share_and_change.is_at_a_bound:
            assert (name in named) == share_and_change.should_be_named


def test_concepts_are_named_by_what_they_add_while_seen():
    """Body is seen in six of ten seconds and adds 1 in each: 6 in all. Look adds .5 in all ten: 5."""
    film = with_passage(
        added_to_logit={"Look": 0.5, "Body": 1.0},
        seen_with_p={"Look": 0.9, "Body": [0.9] * 6 + [0.1] * 4},
    )
    assert concepts_mostly_seen(film) == ["Body", "Look"]


def test_concepts_that_add_as_much_are_named_in_the_codebooks_order():
    """In the codebook Type of shot comes before Look, and this before Body. Look adds less: it is last."""
    film = with_passage(
        added_to_logit={"Body": 1.0, "Look": 0.5, "Type of shot": 1.0},
        seen_with_p={"Body": 0.9, "Look": 0.9, "Type of shot": 0.9},
    )
    assert concepts_mostly_seen(film) == ["Type of shot", "Body", "Look"]


# --- why nothing is predicted
# ---------------------------------------------------------------------------


def without_probability(flags):
    """Plant a film of 30 rows, none with a probability; `flags` is one for all rows, or a list of 30."""
    film = fake_scored_film(n_rows=30, duration_s=600.0)
    no_p = dict.fromkeys(("p", "p_low", "p_high"), np.nan)
    rate = changed(film.model().rate, value=None, counted_s=0.0)
    return with_model(replace(film, table=film.table.assign(flags=flags, **no_p)), rate=rate)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("black", ALL_NOTHING),
        ("missing", ALL_UNREAD),
        ("unlike", ALL_UNLIKE),
        (["black"] * 15 + ["missing"] * 15, ALL_UNREAD),
        (["black"] * 15 + ["missing"] * 14 + ["unlike"], ALL_UNLIKE),
    ],
    ids=["black", "missing", "unlike", "black and missing", "black, missing and one unlike"],
)
def test_title_and_share_have_the_reason_why_nothing_is_predicted(flags, reason):
    """Of several reasons the one is given that says most on the model: it met clips unlike its training."""
    film = without_probability(flags)

    (title,) = claims_of_kind(film, claim_kinds.Title)
    (share,) = claims_of_kind(film, claim_kinds.ExpectedShare)

    assert title.conditions == (reason,)
    assert share.conditions == (claim_kinds.REFUSED, reason)


@pytest.mark.parametrize(
    ("flags", "reason"), [("black", ALL_NOTHING), ("missing", ALL_UNREAD), ("unlike", ALL_UNLIKE)]
)
def test_page_and_export_give_one_reason_why_nothing_is_predicted(flags, reason):
    """Every row of a film is black, could not be read ("missing"), or is unlike training.

    The page gives this one reason three times: in the warning, the list of passages and the figure of their
    number. Captions (WebVTT) give it too.
    """
    words = Words("en")
    film = without_probability(flags)
    why = phrases.no_prediction_phrase(reason, words)
    other_reasons = {ALL_NOTHING, ALL_UNREAD, ALL_UNLIKE} - {reason}

    page = film_page([film])
    captions = export(film, "vtt").replace("\n", " ")

    assert heading_of(film) in page
    assert page.count(why) == 3
    assert why in captions
    for other in other_reasons:
        assert phrases.no_prediction_phrase(other, words) not in page


def test_the_sentence_on_unjudged_time_does_not_call_a_film_unlike_training_if_the_model_is_uncalibrated():
    """A model without calibration gives no probability at all, to whatever film: nothing of it is judged.

    Elsewhere time is not judged as it is too unlike the training clips, and the sentence gives that reason;
    here it must not.
    """
    film = fake_scored_film(n_rows=30, duration_s=600.0, unlike_parts=())
    film = replace(film, table=film.table.assign(p=np.nan))
    film = with_model(film, calibration=None, threshold_p=None)
    (judged_time,) = claims_of_kind(film, claim_kinds.JudgedTime)
    for language in LANGUAGES:
        sentence = phrases.unjudged_sentence(judged_time, Words(language))
        assert reason_why_unlike_is_unjudged(language) not in sentence


def reason_why_unlike_is_unjudged(language):
    """Return the sentence on what is too unlike to be judged from its colon on: before it are numbers."""
    return Words(language)["sure_unjudged"].split(" : " if language == "fr" else ": ")[1]


@pytest.mark.parametrize(("n_models", "is_named"), [(1, False), (2, True)])
def test_of_several_models_a_sentence_names_the_one_that_marks(n_models, is_named):
    """With one model there is nothing to confuse it with, and its name is left out."""
    film = fake_scored_film(n_rows=60, duration_s=600.0)
    model = film.model()
    models = [model, changed(model, key="second")][:n_models]
    film = replace(film, record=changed(film.record, models=models))
    (claim,) = claims_of_kind(film, claim_kinds.MarkedPassages)

    assert claim.is_one_of_several == is_named
    assert (model.key in phrases.sentence(claim, Words("en"))) == is_named


# --- shares of judged windows and of groups of films
# ---------------------------------------------------------------------------
ALL_25_WINDOWS = {
    "model": "m", "value": 0.24, "level": 0.95, "n": 25, "n_positive_by_all": 6, "n_rows": 25,
    "worth": None, "expected": None, "annotators": ["AB"], "positives": [6], "content_s": 90.0,
    "positive": "S",
}  # fmt: skip
"""AB judged all 25 windows, and called 6 of them S: 0.24."""


def share_of_all_25_windows():
    """Claim 0.24: all windows of the film (90 s of content) were judged, and 6 of 25 called S."""
    return judged_share(CorrectedRate(low=0.24, high=0.24, method="census", **ALL_25_WINDOWS))


def share_estimated_from_25_of_more_windows():
    """Claim 0.24 as the estimate from 25 windows drawn of a longer film, with an interval of .1 to .4."""
    return judged_share(CorrectedRate(low=0.1, high=0.4, method="difference", **ALL_25_WINDOWS))


def test_only_a_share_that_is_estimated_from_some_windows_has_an_interval():
    """AB judged 25 windows and called six S: they are all windows of a film of 90 s, or some of a longer one.

    Where all windows are judged nothing is estimated, and so nothing is uncertain.
    """
    counted = share_of_all_25_windows()
    estimated = share_estimated_from_25_of_more_windows()

    assert counted.interval is None
    assert counted.has(ALL_JUDGED)
    assert counted.time == claim_kinds.ClaimTime(part="content", seconds=90.0)
    assert estimated.interval is not None
    assert not estimated.has(ALL_JUDGED)


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentence_and_note_on_a_counted_share_have_no_interval(language):
    """6 of 25 windows are positive, .24. The share is counted, so that it stands once, without "95 %".

    A note begins with the share; an interval in it would be written with a dash, as 10–40%.
    """
    words = Words(language)
    counted = share_of_all_25_windows()

    sentence = phrases.sentence(counted, words)
    note = phrases.judged_share_note(counted, [share_estimated_from_25_of_more_windows()], words)
    first_sentence_of_note, *_ = note.split(".")

    assert sentence.count("24") == 1
    assert "95" not in sentence
    assert "–" not in first_sentence_of_note


GROUPS_OF_DECADES = pd.DataFrame(
    {
        "group": ["1950s", "1960s", "1970s"],
        "n_films": [9, 8, 3],
        "n_judged": [6, 5, 1],
        "judge_names": [("AB",), ("AB",), ("AB",)],
        "n_windows": [60, 50, 10],
        "n_unsure": [0, 2, 0],  # windows of which AB was not sure
        "has_unsure": [False, True, False],
        "has_unread": [False, False, False],
        "value": [0.304, 0.995, np.nan],  # of the 1970s there is no share
        "low": [0.201, 0.9, np.nan],
        "high": [0.418, 0.9999, np.nan],
        "worth": [70.0, 50.0, np.nan],
        "expected": [0.2, 0.3, np.nan],
        "n_expected": [9, 8, 0],
        "is_mixed": [False, False, False],
        "reason": ["", "", "1 of 3 films judged"],
        "note": ["", "", ""],
    }
)
"""Groups of films as `film compare` makes them."""


def claims_of_groups(groups):
    """Claim what a comparison of these groups shows; it has no films and no differences."""
    comparison = FilmComparison(
        films=(), groups=groups, changes=pd.DataFrame(), notes=(), by="decade", positive=SURE, model="m"
    )
    return group_claims(comparison)


def test_the_sentence_on_groups_has_their_shares_and_says_that_unsure_windows_are_left_out():
    """Shares: of the 1950s .304 [.201, .418], of the 1960s .995 [.9, .9999], of the 1970s none.

    Only the 1960s have windows of which the judge was not sure.
    """
    fifties, sixties, seventies = claims_of_groups(GROUPS_OF_DECADES)

    sentence = phrases.groups_sentence([fifties, sixties, seventies], Words("en"))

    assert "30% [20%, 42%]" in sentence
    assert ">99% [90%, >99%]" in sentence
    assert "70s" not in sentence
    assert not fifties.has(claim_kinds.NOT_SURE)
    assert sixties.has(claim_kinds.NOT_SURE)
    assert not seventies.has(claim_kinds.NOT_SURE)
    assert Words("en")["unsure_left_out"] in sentence


def test_the_sentence_on_groups_says_that_several_judges_are_averaged_over_those_who_were_sure():
    """AB and CD judged films of three decades. In each window those of them count who were sure of it.

    A window of which only AB was sure counts as AB judged it. One of which neither was sure is left out; that
    is said, as the films of the 1960s have such windows (`has_unsure`).
    """
    judged_by_two = GROUPS_OF_DECADES.assign(judge_names=[("AB", "CD")] * 3)
    sentence = phrases.groups_sentence(claims_of_groups(judged_by_two), Words("en"))
    assert "without windows of which none of its judges was sure" in sentence
    assert "window by window, over those who were sure of it" in sentence


def with_condition(claim, condition):
    """Return the claim with one more condition."""
    return replace(claim, conditions=(*claim.conditions, condition))


def test_the_sentence_on_groups_names_all_judges_of_their_films():
    """AB and CD judged the films of the 1950s, AB alone those of the 1960s and 1970s.

    So the shares are not of one panel (the condition `OTHER_JUDGES`), and the sentence says so.
    """
    groups = GROUPS_OF_DECADES.assign(judge_names=[("AB", "CD"), ("AB",), ("AB",)])
    claims = [with_condition(claim, claim_kinds.OTHER_JUDGES) for claim in claims_of_groups(groups)]
    sentence = phrases.groups_sentence(claims, Words("en"))
    assert "(in all AB and CD; not every film has the same judges)" in sentence


def test_a_group_without_a_share_says_why():
    """One of three films of the 1970s is judged, which is too few."""
    *_, seventies = claims_of_groups(GROUPS_OF_DECADES)
    assert seventies.number is None
    assert phrases.sentence(seventies, Words("en")) == "1970s: 1 of 3 films judged"


@pytest.mark.parametrize(
    ("judges", "verb"),
    [(("AB",), "marquerait"), (("Doe, Jane",), "marquerait"), (("AB", "CD"), "marqueraient")],
)
def test_the_french_verb_is_singular_of_one_judge_and_plural_of_two(judges, verb):
    """As in "AB marquerait comme S (Sûr) 30 % des ..."."""
    groups = GROUPS_OF_DECADES.head(1).assign(judge_names=[judges])
    sentence = phrases.groups_sentence(claims_of_groups(groups), Words("fr"))
    assert f" {verb} comme" in sentence


@pytest.mark.parametrize(
    ("cells", "is_concept", "conditions"),
    [
        ({}, False, ()),
        ({"value": np.nan}, False, (claim_kinds.REFUSED,)),
        ({"n_unsure": 1}, False, (claim_kinds.NOT_SURE,)),
        ({"has_unsure": True}, False, (claim_kinds.NOT_SURE,)),
        ({"has_unread": True}, False, (claim_kinds.PARTLY_READ,)),
        ({"is_mixed": True}, False, (claim_kinds.OTHER_JUDGES,)),
        ({}, True, (claim_kinds.OF_CONCEPT,)),
    ],
)
def test_the_share_of_a_group_has_the_conditions_of_its_row_and_no_others(cells, is_concept, conditions):
    """A reader of the claims as data learns from the conditions what the number is of, and if there is one.

    The row of the 1950s has a share, by one judge who was sure of every window.
    """
    row = {**GROUPS_OF_DECADES.iloc[0].to_dict(), **cells}

    share = group_share(row, replace(SURE, is_concept=is_concept))

    assert share.conditions == conditions
    assert (share.number is None) == (claim_kinds.REFUSED in conditions)
