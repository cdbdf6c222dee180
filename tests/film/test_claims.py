"""Claims: no number of a sentence but from a claim, and each equal to what the raw data give."""

import ast
import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

import obygaze_film
from obygaze_film.claims import (
    LANGUAGES,
    FilmClaim,
    Words,
    document,
    film_claims,
    group_claims,
    kinds,
    of_film,
    phrases,
    rate_claims,
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
from obygaze_film.claims.of_film import counted_passages, passage
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.exchange import export
from obygaze_film.film_groups import FilmComparison
from obygaze_film.judged_rate import FilmRates, kappa_interval
from obygaze_film.page import film_page
from obygaze_film.positive import Meaning, Positive
from obygaze_film.schema import CorrectedRate, JudgesAgreement
from obygaze_film.segments import MIN_S, reasons
from obygaze_models.prediction import mean_probability
from tests.film.page.invented import CONCEPTS, invented_film, with_model
from tests.film.saying import first_sentence

SURE = Positive((Meaning("S", "Sure", ""),), is_concept=False, task_title="")

ROOM = Path(obygaze_film.__file__).parent

MODULES = {
    ".".join(path.relative_to(ROOM.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOM.rglob("*.py")
}


# --- where sentences come from
# ---------------------------------------------------------------------------
def run_time_nodes(path):
    """Return the nodes of a module's syntax tree but for what stands under `if TYPE_CHECKING`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    type_checkers_nodes = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                type_checkers_nodes |= {id(inner) for inner in ast.walk(statement)}
    return [node for node in ast.walk(tree) if id(node) not in type_checkers_nodes]


def imports_of(path, modules):
    """Name those of `modules` that a module imports at run time, inside functions too."""
    found = set()
    for node in run_time_nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full_name = f"{node.module}.{alias.name}"
                found.add(full_name if full_name in modules else node.module)
    return found & modules.keys()


def test_modules_that_record_and_compute_import_neither_claims_nor_pages():
    """Only pages, exports, reports and commands may print claims; what they are computed from may not."""
    names = (
        "schema",
        "segments",
        "film_time",
        "timeline",
        "score",
        "comparison",
        "judged_rate",
        "film_groups",
    )
    packages_of_sentences = ("obygaze_film.claims", "obygaze_film.page")
    for name in names:
        imported = imports_of(MODULES[f"obygaze_film.{name}"], MODULES)
        assert not [module for module in imported if module.startswith(packages_of_sentences)], name


NUMBER_METHODS = (
    *("number", "numbers", "signed", "difference", "points", "points_text", "probability", "band", "spoken"),
    *("share", "shares", "shares_of_whole", "apart", "duration", "durations", "seconds"),
)
"""Methods of `Words` that write numbers of claims."""

OWNERS_OF_NUMBERS = {
    "calibration",  # Calibration.probability and band
    "fitted",
    "row",  # TableRow.number
    "time",  # FilmTime.share
}
"""Objects whose methods of the same names return numbers and no texts."""

CLAIM_NUMBERS = {
    "share",
    "shares",
    "p",
    "p_low",
    "p_high",
    "expected",
    "kappa",
    "usual_p",
    "contribution",
    "worth",
}
"""Attributes and columns that hold numbers of claims."""

MAY_FORMAT = {
    "obygaze_film.commands.film_lines": "the length of the windows",
    "obygaze_film.commands.film_open": "megabytes of the cache",
    "obygaze_film.film_groups": "names of groups by a number of a table",
    "obygaze_film.segments": "cells of segments.csv",
    "obygaze_film.exchange.table": "cells of a table",
    "obygaze_film.exchange.eaf": "ends of a vocabulary's bins",
    "obygaze_film.exchange.tiers": "the probability of a row, alone",
    "obygaze_film.page.charts": "places in a drawing",
    "obygaze_film.page.view": "the length of the windows, and of the least minute",
    "obygaze_film.windows_to_judge": "cells of a table to fill in",
    "obygaze_film.workspace.rules": "ends of a window, in a key",
    "obygaze_film.workspace.server": "the start of a stream",
    "obygaze_film.workspace.tables": "cells of a table",
}
"""Modules that write decimals, and of what: none of them is the number of a claim."""

DECIMAL_FORMAT = re.compile(r"\.\d+[a-zA-Z%]|[eEfFG%]$|\{")
"""Formats of an f-string's field: decimals (`.2f`), `%`, or one that is itself a field (`{spec}`)."""

PERCENT_FORMAT = re.compile(r"%[-+ #0-9.]*[eEfFgGdi]")
"""A field of the operator `%`, as in `'%.2f of the film' % value`."""


def last_name(node):
    """Return the last name of an expression: `share` of `words.share`, `row` of `view.row[0]`."""
    return ast.unparse(node).split(".")[-1].split("[")[0]


def rounds(node):
    """Whether an expression rounds a number, or makes a share of one."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and last_name(inner.func) in {"round", "rounded", "around", "rint"}:
            return True
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult | ast.Div):
            factors = {ast.unparse(factor) for factor in (inner.left, inner.right)}
            if factors & {"100", "100.0"}:
                return True
    return False


def is_cell(node):
    """Whether an expression takes a cell by its name, as `row["share"]` does."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def is_claim_number(node):
    """Whether an expression is a number that claims hold, by its name."""
    name = node.slice.value if is_cell(node) else last_name(node)
    if isinstance(node, ast.Attribute) and "claim" in last_name(node.value):
        return name == "number" or name in CLAIM_NUMBERS
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and name in CLAIM_NUMBERS


def makes_text(call):
    """Whether a call fills a text with values, or makes a text of one."""
    return last_name(call.func) in {"say", "counted", "message", "counted_message", "format", "str", "repr"}


def makes_text_of_number(call):
    """Whether a call makes a text of a rounded number or of the number of a claim."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return makes_text(call) and any(rounds(value) or is_claim_number(value) for value in values)


def field_writes_number(field):
    """Whether a field of an f-string is written with decimals, rounded, or the number of a claim."""
    spec_parts = [] if field.format_spec is None else field.format_spec.values
    spec = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in spec_parts)
    return bool(DECIMAL_FORMAT.search(spec)) or rounds(field.value) or is_claim_number(field.value)


def function_writes_number(call):
    """Whether a call of a function writes such a number."""
    is_method_of_words = call.func.id == "getattr" and last_name(call.args[0]) in {"words", "Words"}
    return call.func.id in {"format", "rounded"} or is_method_of_words or makes_text_of_number(call)


def method_writes_number(call):
    """Whether a call of a method writes such a number."""
    name, owner = call.func.attr, call.func.value
    if name in NUMBER_METHODS and name != "difference":  # sets and tables have a `difference` too
        return last_name(owner) not in OWNERS_OF_NUMBERS
    has_decimals = re.search(r"\{\w*:[^}]*(\.\d|[eEfFgG%]\})", ast.unparse(owner))
    is_written = name.startswith("format_float") or (name == "format" and has_decimals)
    return bool(is_written) or makes_text_of_number(call)


def writes_number(node):
    """Whether a node writes a number with decimals, as a percentage, or by a method of `Words`."""
    is_written = False
    if isinstance(node, ast.FormattedValue):
        is_written = field_writes_number(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        is_written = isinstance(node.left, ast.Constant) and PERCENT_FORMAT.search(str(node.left.value))
    elif isinstance(node, ast.Attribute):
        is_written = node.attr in NUMBER_METHODS and last_name(node.value).lower() in {
            "words",
            "english",
            "w",
        }
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_written = function_writes_number(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_written = method_writes_number(node)
    return bool(is_written)


def bound_in(scope):
    """Give the pairs of a name and what is bound to it within a function or module."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from zip_bound(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield from zip_bound(node.target, node.value)


def zip_bound(target, value):
    """Give each name of a target with its value: also of `a, b = c, d`."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from zip_bound(one, other)


def call_by_their_number(scope):
    """Call each name in a scope `share` that is bound to such a number, or to another name of one."""
    names = set()
    bound = [*bound_in(scope)]
    while True:
        found = {name for name, value in bound if rounds(value) or is_claim_number(value)}
        found |= {name for name, value in bound if isinstance(value, ast.Name) and value.id in names}
        if found <= names:
            break
        names |= found
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            node.id = "share"


def number_writing_code(path):
    """Return the expressions of a module that write such a number, by whatever name it goes there."""
    nodes = run_time_nodes(path)
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            call_by_their_number(node)
    return [ast.unparse(node) for node in nodes if writes_number(node)]


BREACHES = (
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
    "'{} of the film'.format(round(value, 2))",
    "' '.join([str(round(value, 2)), 'of the film'])",
    "Words('en').share(value)",
    "write = view.words.share",
    "w = view.words; w.share(value)",
    "getattr(words, 'share')(value)",
    "rounded(value, 2)",
    "np.format_float_positional(value, 2)",
    "message('x', share=row['share'])",
    "view.words.durations(1.0, 2.0)",
    "def f(claim):\n    text = claim.number\n    return f'{text} of the film'",
    "def f(rate):\n    first = rate.share\n    second = first\n    return message('x', it=second)",
    "def f(a):\n    low, high = round(a, 2), a\n    return f'from {low}'",
    "def f(row):\n    if (found := row['kappa']):\n        return str(found)",
)
"""Ways to write a number into a sentence that must be noticed."""


@pytest.mark.parametrize("line", BREACHES)
def test_a_number_in_a_sentence_is_noticed_however_it_is_written(tmp_path, line):
    breach = tmp_path / "breach.py"
    breach.write_text(line)
    assert number_writing_code(breach)


def test_only_claims_and_the_listed_modules_write_decimals():
    code_of = {name: number_writing_code(path) for name, path in MODULES.items()}
    of_claims = {name for name in MODULES if name.startswith("obygaze_film.claims")}
    assert {name for name, code in code_of.items() if code} - of_claims == MAY_FORMAT.keys()


def test_of_the_methods_of_words_the_listed_modules_call_only_that_of_seconds():
    for name in MAY_FORMAT:
        of_words = [code for code in number_writing_code(MODULES[name]) if "words." in code]
        assert all("words.seconds" in code for code in of_words), name


@pytest.mark.parametrize("name", ["assets/notes", "page/assets/film"])
def test_no_text_of_notes_or_pages_writes_decimals_of_its_own(name):
    """Times of spans in messages are as they were typed; every other number is written by `Words`."""
    for language in LANGUAGES:
        for text in tomllib.loads((ROOM / f"{name}.{language}.toml").read_text(encoding="utf-8")).values():
            places = re.findall(r"\{(\w+):([^}]*)\}", text)
            assert {place for place, _ in places} <= {"start", "end", "whole"}, text


def test_scripts_take_probabilities_of_passages_as_texts():
    """A script that rounds what was rounded before may write another number than the sentence has."""
    for path in (ROOM / "page" / "assets").glob("*.js"):
        rounding = re.findall(r"[\w.?]*\bp\??\.toFixed", path.read_text(encoding="utf-8"))
        assert rounding == [], path.name


def test_no_template_writes_such_a_number_into_a_text():
    """A cell may hold a number alone; `w.say` and texts joined by `~` may not hold one."""
    number_method = rf"w\.({'|'.join(NUMBER_METHODS)})\("
    for path in (ROOM / "page" / "assets").glob("*.j2"):
        text = path.read_text(encoding="utf-8")
        for arguments in re.findall(r"w\.say\(.*?\)\s*(?:}}|%})", text):
            assert not re.search(number_method, arguments), (path.name, arguments)
        assert not re.search(r"(:\.\d|%\.\d|\d%\").*format", text), path.name
        assert not re.search(rf"~\s*{number_method}|{number_method}[^)]*\)\s*~", text), path.name


def concrete_kinds():
    """Return the classes of claims, but for the two that only others derive from."""
    classes = [kind for kind in vars(kinds).values() if isinstance(kind, type)]
    return [
        kind for kind in classes if issubclass(kind, FilmClaim) and kind not in (FilmClaim, kinds.ModelClaim)
    ]


def test_each_kind_of_claim_has_one_function_and_a_name_of_its_own():
    every = concrete_kinds()
    assert set(phrases.SENTENCES) == set(every)
    assert len(set(phrases.SENTENCES.values())) == len({kind.KIND for kind in every}) == len(every)


def test_each_kind_of_claim_has_the_common_fields():
    common = {"who", "what", "time", "number", "interval", "conditions"}
    for kind in concrete_kinds():
        assert common <= {field.name for field in fields(kind)}, kind.KIND


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_of_a_film_is_a_document_and_a_sentence(language):
    film = invented_film(n_rows=60, duration_s=600.0)
    for claim in film_claims(film):
        written = document(claim)
        assert (written["claim"], written["number"]) == (claim.KIND, claim.number)
        assert phrases.sentence(claim, Words(language))


# --- numbers of films
# ---------------------------------------------------------------------------
@st.composite
def films(draw):
    """Draw a film of one model: shares that are unlike training and black, weights of concepts, threshold."""
    unlike_share = draw(st.floats(0, 1))
    black_share = draw(st.floats(0, 0.5))
    film = invented_film(
        n_rows=draw(st.integers(12, 60)),
        duration_s=draw(st.sampled_from([47.0, 600.0, 5400.0])),
        seed=draw(st.integers(0, 50)),
        unlike=((0.0, unlike_share),) if unlike_share else (),
    )
    table = film.table.copy()
    rng = np.random.default_rng(draw(st.integers(0, 50)))
    names = [concept.name for concept in film.model().concepts]
    weights = draw(st.lists(st.floats(-2, 2), min_size=len(names), max_size=len(names)))
    # The logit of a row is the base and what each concept adds: its weight times its value.
    table["logit"] = table["base_contribution"].fillna(-2.1)
    for name, weight in zip(names, weights, strict=True):
        added = weight * table[f"{name}_value"]
        table["logit"] += added
        table[f"{name}_contribution"] = np.where(table["p"].isna(), np.nan, added)
    is_black = rng.random(len(table)) < black_share
    table.loc[is_black, "flags"] = [f"{flags};black".strip(";") for flags in table.loc[is_black, "flags"]]
    has_p = table["p"].notna() & ~is_black
    draws = np.array(film.model().calibration.draws)
    p = np.where(has_p, mean_probability(draws, table["logit"].to_numpy()), np.nan)
    table["p"], table["p_low"], table["p_high"] = p, p * 0.9, 1 - (1 - p) * 0.9
    # A contribution is counted from the concept's usual value, at which it adds nothing: what it adds at
    # that value goes to the base, so that base and contributions still add up to the logit.
    concepts = [changed(concept, usual=draw(st.floats(-0.5, 0.5))) for concept in film.model().concepts]
    for concept, weight in zip(concepts, weights, strict=True):
        added_at_usual = weight * concept.usual
        table[f"{concept.name}_contribution"] -= added_at_usual
        table["base_contribution"] += added_at_usual
    threshold_p = draw(st.floats(0.05, 0.95))
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=threshold_p)


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
    return (rows["end_s"] - rows["start_s"]).to_numpy()


def is_inside(rows, start_s, end_s):
    """Tell of each row whether it lies within a span."""
    return ((rows["start_s"] >= start_s) & (rows["end_s"] <= end_s)).to_numpy()


def marked_passages_of(film):
    """Return start and end, in seconds, of each passage that reaches the threshold."""
    marked = film.segments().query("reaches == 1")
    return list(zip(marked["start_s"], marked["end_s"], strict=True))


def parts_by_hand(film):
    """Seconds of a film that are judged, that are not though they have content, and black or credits."""
    rows = film.rows()
    is_unjudged = ~is_judged(rows) & ~is_nothing(rows)
    return [float(seconds_of(rows)[mask].sum()) for mask in (is_judged(rows), is_unjudged, is_nothing(rows))]


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_the_parts_of_the_time_are_those_of_the_rows_and_add_up(film, language):
    words, parts = Words(language), parts_by_hand(film)
    (claim,) = claims_of_kind(film, kinds.JudgedTime)
    assert [claim.judged_s, claim.unlike_s, claim.nothing_s] == pytest.approx(parts, abs=1e-6)
    assert sum(parts) == pytest.approx(film.record.duration_s)
    said = phrases.sentence(claim, words)
    assert all(duration in said for duration in words.durations(*parts))


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_the_shares_of_the_time_add_up_to_100_percent_as_they_are_written(film, language):
    words = Words(language)
    shares = words.shares_of_whole(parts_by_hand(film))
    (claim,) = claims_of_kind(film, kinds.JudgedTime)
    said = phrases.sentence(claim, words)
    assert all(share in said for share in shares)
    if not any(re.search("[<>]", share) for share in shares):  # "<1%" is no number to add
        assert sum(int(found) for share in shares for found in re.findall(r"\d+", share)) == 100


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_a_film_has_a_first_sentence_where_any_of_it_is_judged(film, language):
    judged_s, _, _ = parts_by_hand(film)
    assert bool(first_sentence(film, language=language)) == (judged_s > 0)


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_speaks_of_the_judged_time_alone_where_a_fifth_is_not_judged(film, language):
    """The fifth is of what has content: what is black or credits does not count."""
    judged_s, unlike_s, _ = parts_by_hand(film)
    sentence = first_sentence(film, language=language)
    if sentence:
        is_much_unjudged = unlike_s > 0.2 * (judged_s + unlike_s)
        assert (Words(language)["sentence_of_these"] in sentence) == is_much_unjudged


def first_numbers_by_hand(film, words):
    """Write what the first sentence tells of time and passages, from the rows; without concepts."""
    rows = film.rows()
    seconds = seconds_of(rows)
    judged_s, unlike_s, nothing_s = parts_by_hand(film)
    passages = marked_passages_of(film)
    marked_s = called_s = 0.0  # seconds of passages, and those of them whose rows reach the threshold
    for start_s, end_s in passages:
        is_marked = is_judged(rows) & is_inside(rows, start_s, end_s)
        marked_s += seconds[is_marked].sum()
        called_s += seconds[is_marked & (rows["p"] >= film.model().threshold_p)].sum()
    judged, marked, nothing, called = words.durations(judged_s, marked_s, nothing_s, called_s)
    expected = [judged]
    # Less than half a second would be written as zero.
    if unlike_s + nothing_s >= 0.5:
        expected.append(words.shares_of_whole([judged_s, unlike_s, nothing_s])[0])
    if nothing_s >= 0.5:
        expected.append(nothing)
    if passages:
        expected.append(marked)
    else:
        # What reaches the threshold in places too short for a passage, and how long a passage is at least.
        reaches = is_judged(rows) & (rows["p"] >= film.model().threshold_p)
        too_short_s = seconds[reaches].sum()
        if too_short_s > 0:
            expected += [words.duration(too_short_s), words.seconds(MIN_S)]
    if called != marked:
        expected.append(called)
    if len(passages) > 1:
        expected.append(str(len(passages)))
    return expected


def before_its_concepts(sentence, claim, words):
    """Cut the first sentence before the concepts, which come last; whole where it names none."""
    if not claim.concepts:
        return sentence
    keys = [f"mostly{amount}{number}" for amount in ("", "_half", "_more") for number in ("", "_1")]
    starts = [sentence.find(words[key].split("{")[0]) for key in keys]  # -1 of a text that is not in it
    return sentence[: max(starts)]


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_has_the_numbers_of_time_and_passages_and_no_others(film, language):
    words = Words(language)
    sentence = first_sentence(film, language=language)
    if not sentence:
        return
    (claim,) = claims_of_kind(film, kinds.MarkedPassages)
    told = numbers_in(before_its_concepts(sentence, claim, words), words)
    by_hand = [number for text in first_numbers_by_hand(film, words) for number in numbers_in(text, words)]
    assert sorted(told) == sorted(by_hand)


# --- numbers of passages and their reasons
# ---------------------------------------------------------------------------
LEAST_CHANGE = 0.01
"""A reason is told from one percent on by which a concept moves the probability of a passage."""

ROUNDING = 2e-4
"""Contributions and probabilities are kept to four decimals: so near to the least, it may be told or not."""


class RawPassage:
    """A passage as computed from the film's rows: means over its judged rows, weighed by their seconds."""

    def __init__(self, film, claim):
        rows = film.rows()
        rows = rows[is_inside(rows, claim.time.start_s, claim.time.end_s)]
        self.claim = claim
        self.rows = rows[is_judged(rows)]
        self.draws = np.array(film.model().calibration.draws)
        self.p = self.mean(mean_probability(self.draws, self.rows["logit"].to_numpy()))

    def mean(self, values):
        return np.average(values, weights=seconds_of(self.rows))

    def change(self, concept):
        """By how much a concept moves the probability: with it, less without what it adds to the logit."""
        without = self.rows["logit"] - self.rows[f"{concept}_contribution"]
        return self.p - self.mean(mean_probability(self.draws, without.to_numpy()))


def raw_passages(film):
    return [RawPassage(film, claim) for claim in claims_of_kind(film, kinds.Passage)]


def concepts_by_name(film):
    return {concept.name: concept for concept in film.model().concepts}


def side_of(change, contribution):
    """The text of the side that a reason is on: of neither where the sign of its bar says otherwise."""
    if change * contribution < 0:
        return "why_both"
    return "why_for" if change > 0 else "why_against"


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_a_passage_has_the_mean_probability_of_its_judged_rows(film, language):
    words = Words(language)
    for raw in raw_passages(film):
        assert raw.claim.number == pytest.approx(raw.p)
        assert words.probability(raw.p) in phrases.passage_p(raw.claim, words)


@settings(max_examples=40, deadline=None)
@given(films())
def test_a_reason_has_what_its_concept_adds_and_by_how_much_it_moves_the_probability(film):
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            contribution = raw.mean(raw.rows[f"{reason.what}_contribution"])
            assert reason.contribution == pytest.approx(contribution, abs=1e-4)
            assert reason.number == pytest.approx(raw.change(reason.what), abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(films())
def test_a_reason_is_more_or_less_than_usual_or_mixed_where_its_rows_lie_on_both_sides(film):
    usual = concepts_by_name(film)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            concept, values = usual[reason.what], raw.rows[f"{reason.what}_value"]
            is_more = raw.mean(values) > concept.usual
            p_is_more = reason.p > concept.usual_p
            on_both_sides = values.min() < concept.usual < values.max()
            if reason.amount == "mixed":
                adds = raw.mean(raw.rows[f"{reason.what}_contribution"]) > 0
                assert on_both_sides
                assert is_more != p_is_more or adds != (raw.change(reason.what) > 0)
                continue
            assert reason.amount == ("more" if is_more else "less")
            if on_both_sides and abs(reason.p - concept.usual_p) > 1e-4:
                assert is_more == p_is_more


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_a_reason_is_told_with_its_side_and_amount_where_it_moves_the_probability(film, language):
    words, usual = Words(language), concepts_by_name(film)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            said, change = phrases.sentence(reason, words), raw.change(reason.what)
            if abs(change) < LEAST_CHANGE - ROUNDING:
                assert words.again(reason.what) not in said
            elif abs(change) > LEAST_CHANGE + ROUNDING:
                side = side_of(change, round(reason.contribution, 4))
                assert said.startswith(words.say(side, reasons="|").split("|")[0])
                assert words.say(f"why_{reason.amount}", concept=reason.what) in said
                assert reason.has(NEAR_CHANCE) == usual[reason.what].is_near_chance
                assert (words["why_near_chance"] in said) == reason.has(NEAR_CHANCE)


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_each_concept_that_moves_the_probability_is_told_or_counted_where_one_is_told(film, language):
    words = Words(language)
    for raw in raw_passages(film):
        reasons = {reason.what: reason for reason in raw.claim.reasons}
        for concept in film.model().concepts:
            change = raw.change(concept.name)
            if abs(change) <= LEAST_CHANGE + ROUNDING:
                continue
            reason = reasons[concept.name]
            phrase = words.say(f"why_{reason.amount}", concept=reason.what)
            assert phrase in phrases.reasons_sentence(raw.claim.reasons, words)
            side = side_of(change, reason.contribution)
            of_side = [
                other
                for other in raw.claim.reasons
                if other.moves and side_of(other.number, other.contribution) == side
            ]
            others = words.counted("more_concepts", len(of_side) - 1)
            with_one = phrases.reasons_sentence(raw.claim.reasons, words, most=1)
            assert phrase in with_one or others in with_one
            assert phrase not in with_one or others in with_one or len(of_side) == 1


@settings(max_examples=40, deadline=None)
@given(films())
def test_a_concept_is_seen_in_a_passage_where_its_mean_probability_reaches_its_threshold(film):
    for raw in raw_passages(film):
        reasons = {reason.what: reason for reason in raw.claim.reasons}
        for concept in film.model().concepts:
            is_seen = raw.mean(raw.rows[f"{concept.name}_p"]) >= concept.threshold_p
            assert (concept.name in raw.claim.present) == is_seen
            if is_seen:
                assert reasons[concept.name].is_present


@settings(max_examples=20, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_a_passages_length_is_its_own_whatever_its_ends_are_rounded_to(film, language):
    words = Words(language)
    for claim in claims_of_kind(film, kinds.Passage):
        length = claim.time.end_s - claim.time.start_s
        assert claim.time.seconds == pytest.approx(length)
        said = phrases.passage_length(claim, words)
        assert words.durations(length, claim.judged_s)[0] in said


@pytest.mark.parametrize("unlike_share", [0.25, 0.5, 0.8])
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_expected_share_is_refused_by_the_unlike_part_of_what_has_content(unlike_share, language):
    """The refusal names the share of what is neither credits nor black; of the whole film it is another."""
    film = invented_film(n_rows=400, duration_s=600.0, unlike=((0.0, unlike_share),))
    words, rows = Words(language), film.rows()
    seconds = rows["end_s"] - rows["start_s"]
    unlike_s = seconds[rows["flags"] == "unlike"].sum()
    of_content = unlike_s / seconds[rows["flags"] != "credits"].sum()
    of_film = unlike_s / seconds.sum()
    (claim,) = claims_of_kind(film, kinds.ExpectedShare)
    assert claim.has(kinds.LITTLE_JUDGED)
    assert claim.unlike == pytest.approx(of_content)
    assert words.share(of_content) != words.share(of_film)
    assert words.share(of_content) in phrases.sentence(claim, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_mean_of_staging_says_of_how_many_windows_it_is_where_some_have_no_value(language):
    words = Words(language)
    film = invented_film(n_rows=60, duration_s=600.0)

    def mean_of(*values):
        """Claim the mean of the variable `camera` over windows of 8 seconds with these values."""
        starts = 8.0 * np.arange(len(values))
        variables = pd.DataFrame({"start_s": starts, "end_s": starts + 8.0, "camera": values})
        return of_film.staging_mean(replace(film, variables=variables), film.model(), "camera", digits=2)

    two_of_five = mean_of(0.1, 0.3, np.nan, np.nan, np.nan)
    two_of_two = mean_of(0.1, 0.3)
    assert (two_of_five.number, two_of_five.n_known, two_of_five.n_windows) == (0.2, 2, 5)
    assert numbers_in(phrases.sentence(two_of_five, words), words) == [words.number(0.2), "2", "5"]
    assert numbers_in(phrases.sentence(two_of_two, words), words) == [words.number(0.2)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_citation_of_a_place_below_the_threshold_says_so(language):
    """Names of places below the threshold begin with w, and no others."""
    film, words = invented_film(n_rows=60, duration_s=600.0), Words(language)
    says_below = {
        claim.name: words["below"]
        in phrases.citation_sentence(claim, positive="S", model="m", windows=None, words=words)
        for claim in claims_of_kind(film, kinds.Passage)
    }
    assert any(not name.startswith("w") for name in says_below)
    assert says_below == {name: name.startswith("w") for name in says_below}


# --- numbers of judges
# ---------------------------------------------------------------------------
@st.composite
def calls_of_two(draw):
    """Draw whether each of two judges called each of 10 to 60 windows S.

    They agree as often as it happens: from on fewer windows than by chance to on all.
    """
    n = draw(st.integers(10, 60))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    share, agreement = draw(st.floats(0.05, 0.95)), draw(st.floats(0, 1))
    one = rng.random(n) < share
    other = np.where(rng.random(n) < agreement, one, ~one)
    return one, other


def kappa_of(one, other):
    """Cohen's kappa by its definition; NaN where both say the same of all windows."""
    observed = (one == other).mean()
    chance = one.mean() * other.mean() + (~one).mean() * (~other).mean()
    return (observed - chance) / (1 - chance) if chance < 1 else np.nan


def claims_of_two(one, other):
    """Claim the share that judges AB and CD called S, and how far they agree, as `film report` does."""
    kappa = kappa_interval(one, other)
    known = [None if np.isnan(value) else value for value in kappa]
    pair = JudgesAgreement(["AB", "CD"], len(one), int((one == other).sum()), *known)
    # The bounds of the share are of no interest here: any that hold it.
    value = float((one.mean() + other.mean()) / 2)
    panel = CorrectedRate(
        model="m", value=value, low=min(0.1, value), high=max(0.9, value), level=0.95, method="wilson",
        n=len(one), n_positive_by_all=int((one & other).sum()), n_rows=99, worth=None, expected=None,
        content_s=99.0,
        annotators=["AB", "CD"], positives=[int(one.sum()), int(other.sum())], agreement=[pair], positive="S",
    )  # fmt: skip
    share, agreement = rate_claims(FilmRates((panel,), (pair,)))
    return share, agreement


@settings(max_examples=60, deadline=None)
@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_a_share_of_two_judges_is_the_mean_of_theirs_with_the_counts_of_both(calls, language):
    one, other = calls
    words = Words(language)
    share, _ = claims_of_two(one, other)
    said = phrases.sentence(share, words)
    assert words.share((one.mean() + other.mean()) / 2) in said
    assert {str(one.sum()), str(other.sum()), str(len(one))} <= set(numbers_in(said, words))


@settings(max_examples=60, deadline=None)
@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_agreement_of_two_judges_has_their_counts_and_their_kappa(calls, language):
    one, other = calls
    words, kappa = Words(language), kappa_of(one, other)
    _, agreement = claims_of_two(one, other)
    said = phrases.sentence(agreement, words)
    assert {str((one == other).sum()), str(len(one))} <= set(numbers_in(said, words))
    assert words.share((one == other).mean()) in said
    assert (words["undefined"] if np.isnan(kappa) else words.number(kappa)) in said


@settings(max_examples=60, deadline=None)
@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_share_and_agreement_have_the_same_doubt_by_the_interval_of_kappa(calls, language):
    one, other = calls
    words, kappa = Words(language), kappa_interval(one, other)
    share, agreement = claims_of_two(one, other)
    said_of_share, said_of_pair = phrases.sentence(share, words), phrases.sentence(agreement, words)
    doubts = {
        UNDEFINED: np.isnan(kappa_of(one, other)),
        AGREE_LESS: kappa.high < 0,
        AGREE_BY_CHANCE: kappa.low <= 0 <= kappa.high,
    }
    for doubt, holds in doubts.items():
        assert share.has(doubt) == agreement.has(doubt) == holds
        assert (words[phrases.PANEL_DOUBTS[doubt]] in said_of_share) == holds
        assert (words[phrases.PAIR_DOUBTS[doubt]] in said_of_pair) == holds


@settings(max_examples=60, deadline=None)
@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_pages_note_on_a_share_of_two_judges_has_the_sentence_on_their_agreement(calls, language):
    words = Words(language)
    share, agreement = claims_of_two(*calls)
    assert phrases.sentence(agreement, words) in phrases.judged_share_note(share, [agreement], words)


# --- counts of passages, and concepts named for them
# ---------------------------------------------------------------------------
@settings(max_examples=20, deadline=None)
@given(films())
def test_passages_at_the_edges_of_the_band_are_counted_as_if_the_edge_were_the_probability(film):
    for claim in claims_of_kind(film, kinds.MarkedPassages):
        assert claim.interval is None
        counts = {"p": claim.number, "p_low": claim.at_low_edge, "p_high": claim.at_high_edge}
        for column, count in counts.items():
            as_probability = replace(film, table=film.table.assign(p=film.table[column]))
            assert len(marked_passages_of(as_probability)) == count


def with_passage(contributions, p_of):
    """Plant a passage of ten rows of a second, alike but for what concepts add and how likely they are.

    `contributions` and `p_of` have, of each concept, one number for all ten rows or a list of ten; other
    concepts add nothing and are seen nowhere.
    """
    film = invented_film(n_rows=30, duration_s=30.0, unlike=())
    model = film.model()
    table = film.table.assign(start_s=np.arange(30.0), end_s=np.arange(1.0, 31.0), flags="", logit=-9.0)
    for concept in model.concepts:
        added, likely = np.zeros(30), np.zeros(30)
        added[10:20] = contributions.get(concept.name, 0.0)
        likely[10:20] = p_of.get(concept.name, 0.0)
        table[f"{concept.name}_contribution"], table[f"{concept.name}_p"] = added, likely
    table.loc[10:19, "logit"] = 0.5
    p = mean_probability(np.array(model.calibration.draws), table["logit"].to_numpy())
    table["p"], table["p_low"], table["p_high"] = p, p, p
    concepts = [changed(concept, usual=0.0, usual_p=0.2, threshold_p=0.5) for concept in model.concepts]
    just_below = float(p[10]) - 0.01
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=just_below)


def frequent_concepts(film):
    """Name the concepts that the sentence on a film's only passage says are seen in it."""
    claim = counted_passages(film, film.model(), film.segments())
    assert claim.number == 1
    return [concept.name for concept in claim.concepts]


def test_a_concept_is_named_for_the_time_in_which_it_is_seen_not_for_its_mean_over_a_passage():
    """Body is seen in four seconds of ten, with a mean over the threshold; Look in six, with one below it."""
    body, look = np.repeat([0.98, 0.4], [4, 6]), np.repeat([0.6, 0.02], [6, 4])
    assert body.mean() > 0.5 > look.mean()
    film = with_passage({"Body": 1.0, "Look": 1.0}, {"Body": body, "Look": look})
    assert frequent_concepts(film) == ["Look"]


def test_a_concept_that_is_seen_all_along_but_speaks_for_it_in_less_than_half_is_not_named():
    film = with_passage({"Look": np.repeat([1.0, -1.0], [4, 6])}, {"Look": 0.9})
    assert frequent_concepts(film) == []


def test_a_concept_that_is_for_it_in_most_of_the_time_and_against_it_over_all_of_it_is_not_named():
    """Look adds a little in six of ten seconds, and takes away much in the others."""
    film = with_passage({"Look": np.repeat([0.3, -2.0], [6, 4]), "Body": 1.0}, {"Look": 0.9, "Body": 0.9})
    assert frequent_concepts(film) == ["Body"]


def test_the_sentence_and_the_reasons_of_a_passage_have_one_limit():
    """Over the whole passage Look changes the probability by .00997, which tables have as .0100."""
    draws = np.array(with_passage({}, {}).model().calibration.draws)

    def changes(added):
        return (
            mean_probability(draws, np.array([0.5]))[0] - mean_probability(draws, np.array([0.5 - added]))[0]
        )

    low, high = -1.0, 0.3  # what the rows add in which it is against
    for _ in range(60):
        middle = (low + high) / 2
        is_above = 0.6 * changes(0.3) + 0.4 * changes(middle) > 0.00997
        low, high = (low, middle) if is_above else (middle, high)
    film = with_passage({"Look": np.repeat([0.3, low], [6, 4])}, {"Look": 0.9})
    (change,) = [reason.change for reason in reasons(film.segments().iloc[0]) if reason.concept == "Look"]
    assert change == 0.01
    assert passage(film.model(), film.segments().iloc[0]).reasons
    assert frequent_concepts(film) == ["Look"]


@settings(max_examples=30, deadline=None)
@given(films())
def test_each_concept_that_is_named_is_seen_and_for_it_in_half_of_the_time_and_no_other_is(film):
    model, rows = film.model(), film.rows()
    claim = counted_passages(film, model, film.segments())
    if claim is None or not claim.number:
        return
    is_marked = np.zeros(len(rows), bool)
    for start_s, end_s in marked_passages_of(film):
        is_marked |= is_inside(rows, start_s, end_s)
    rows = rows[is_marked & is_judged(rows)]
    seconds = seconds_of(rows)
    draws, named = np.array(model.calibration.draws), {concept.name for concept in claim.concepts}
    for concept in model.concepts:
        without = rows["logit"] - rows[f"{concept.name}_contribution"]
        change = rows["p"].to_numpy() - mean_probability(draws, without.to_numpy())
        is_seen = (rows[f"{concept.name}_p"] >= concept.threshold_p).to_numpy()
        share = seconds[is_seen & (change >= LEAST_CHANGE)].sum() / seconds.sum()
        mean_change = np.average(change, weights=seconds)
        # So near to a bound, the last digits of a sum decide.
        is_at_bound = abs(share - 0.5) < 1e-9 or abs(mean_change - (LEAST_CHANGE - 0.5e-4)) < 1e-9
        # The mean is decided by as it stands in a table, to four decimals.
        is_named = share >= 0.5 and round(mean_change, 4) >= LEAST_CHANGE
        assert (concept.name in named) == is_named or is_at_bound


def test_concepts_come_by_what_they_add_over_the_time_in_which_they_are_seen():
    """Body is seen in six seconds and adds more in them than Look does in all ten."""
    film = with_passage({"Look": 0.5, "Body": 1.0}, {"Look": 0.9, "Body": np.repeat([0.9, 0.1], [6, 4])})
    assert frequent_concepts(film) == ["Body", "Look"]


def test_concepts_that_add_as_much_come_in_the_codebooks_order():
    first, second, third = [name for name, *_ in CONCEPTS][:3]
    film = with_passage({first: 1.0, second: 0.5, third: 1.0}, dict.fromkeys((first, second, third), 0.9))
    assert frequent_concepts(film) == [first, third, second]


# --- why nothing is predicted
# ---------------------------------------------------------------------------
WHY_NOTHING = {"black": ALL_NOTHING, "credits": ALL_NOTHING, "missing": ALL_UNREAD, "unlike": ALL_UNLIKE}
"""Flag that all rows of a film have -> the reason why nothing of it is predicted."""


def without_probability(flags):
    """Plant a film of 30 rows, none with a probability; `flags` is one for all rows, or a list of 30."""
    film = invented_film(n_rows=30, duration_s=600.0)
    no_p = dict.fromkeys(("p", "p_low", "p_high"), np.nan)
    rate = changed(film.model().rate, value=None, counted_s=0.0)
    return with_model(replace(film, table=film.table.assign(flags=flags, **no_p)), rate=rate)


@pytest.mark.parametrize(("flag", "reason"), WHY_NOTHING.items())
def test_title_and_share_have_the_reason_why_nothing_is_predicted(flag, reason):
    film = without_probability(flag)
    (title,), (share,) = claims_of_kind(film, kinds.Title), claims_of_kind(film, kinds.ExpectedShare)
    assert title.conditions == (reason,)
    assert share.conditions == (kinds.REFUSED, reason)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("flag", "reason"), WHY_NOTHING.items())
def test_a_page_gives_one_reason_why_nothing_is_predicted_wherever_it_gives_one(flag, reason, language):
    film, words = without_probability(flag), Words(language)
    page = film_page([film], language=language)
    said = phrases.no_prediction_phrase(reason, words)
    assert page.count(said) == 3  # the warning, the list of passages and the figure of their number
    (title,) = claims_of_kind(film, kinds.Title)
    assert phrases.sentence(title, words) in page
    for other in set(WHY_NOTHING.values()) - {reason}:
        assert phrases.no_prediction_phrase(other, words) not in page


@pytest.mark.parametrize(("flag", "reason"), WHY_NOTHING.items())
def test_an_export_gives_the_reason_why_nothing_is_predicted(flag, reason):
    captions = export(without_probability(flag), "vtt").replace("\n", " ")
    assert phrases.no_prediction_phrase(reason, Words("en")) in captions


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["black"] * 15 + ["missing"] * 15, ALL_UNREAD),
        (["black"] * 15 + ["missing"] * 14 + ["unlike"], ALL_UNLIKE),
    ],
)
def test_of_several_reasons_unlike_comes_before_unread_and_unread_before_black(flags, reason):
    (title,) = claims_of_kind(without_probability(flags), kinds.Title)
    assert title.conditions == (reason,)


def test_of_a_model_without_calibration_nothing_is_called_unlike():
    film = invented_film(n_rows=30, duration_s=600.0, unlike=())
    film = replace(film, table=film.table.assign(p=np.nan))
    film = with_model(film, calibration=None, threshold_p=None)
    (judged,) = claims_of_kind(film, kinds.JudgedTime)
    for language in LANGUAGES:
        said = phrases.unjudged_sentence(judged, Words(language))
        assert words_of_unlike(language) not in said


def words_of_unlike(language):
    """Return the sentence on what cannot be judged from its colon on: what is before it are numbers."""
    return Words(language)["sure_unjudged"].split(" : " if language == "fr" else ": ")[1]


def test_a_film_of_which_nothing_is_judged_has_no_count_of_passages():
    film = invented_film(unlike=((0.0, 1.0),))
    assert counted_passages(film, film.model(), film.segments()) is None
    assert claims_of_kind(film, kinds.MarkedPassages) == []


def test_of_several_models_a_sentence_names_the_one_that_marks():
    of_one = invented_film(n_rows=60, duration_s=600.0)
    model = of_one.model()
    of_two = replace(of_one, record=changed(of_one.record, models=[model, changed(model, key="second")]))
    for film, is_named in ((of_one, False), (of_two, True)):
        (claim,) = claims_of_kind(film, kinds.MarkedPassages)
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


def counted_over_all_windows():
    """Claim the share of a census, which has no interval: its bounds are the value itself."""
    return judged_share(CorrectedRate(low=0.24, high=0.24, method="census", **ALL_25_WINDOWS))


def estimated_from_a_draw():
    """Claim the same share as if the windows had been drawn from more: it has an interval."""
    return judged_share(CorrectedRate(low=0.1, high=0.4, method="difference", **ALL_25_WINDOWS))


def test_a_share_that_is_counted_over_all_windows_has_no_interval():
    counted, estimated = counted_over_all_windows(), estimated_from_a_draw()
    assert counted.interval is None
    assert estimated.interval is not None
    assert counted.has(ALL_JUDGED)
    assert not estimated.has(ALL_JUDGED)
    assert counted.time == kinds.ClaimTime("content", 90.0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_a_counted_share_has_its_number_once_and_no_level(language):
    words = Words(language)
    said = phrases.sentence(counted_over_all_windows(), words)
    assert said.count("24") == 1
    assert phrases.sentence(estimated_from_a_draw(), words).count("24") == 1
    assert "95" not in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pages_note_on_a_counted_share_begins_without_a_range(language):
    note = phrases.judged_share_note(counted_over_all_windows(), [estimated_from_a_draw()], Words(language))
    first_sentence_of_note = note.split(".")[0]
    assert "–" not in first_sentence_of_note


def claims_of_three_decades():
    """Claim the shares of three groups: of the 1950s, of the 1960s with unsure windows, none of the 1970s."""
    groups = pd.DataFrame(
        {
            "group": ["1950s", "1960s", "1970s"],
            "n_films": [9, 8, 3],
            "n_judged": [6, 5, 1],
            "judges": ["AB", "AB", "AB"],
            "n_windows": [60, 50, 10],
            "n_unsure": [0, 2, 0],
            "value": [0.304, 0.995, np.nan],
            "low": [0.201, 0.9, np.nan],
            "high": [0.418, 0.9999, np.nan],
            "worth": [70.0, 50.0, np.nan],
            "expected": [0.2, 0.3, np.nan],
            "n_expected": [9, 8, 0],
            "reason": ["", "", "1 of 3 films judged"],
        }
    )
    compared = FilmComparison((), groups, pd.DataFrame(), (), by="decade", positive=SURE, model="m")
    return group_claims(compared)


def test_the_sentence_on_groups_has_the_numbers_of_those_that_have_a_share():
    said = phrases.groups_sentence(claims_of_three_decades(), Words("en"))
    assert "30% [20%, 42%]" in said
    assert ">99% [90%, >99%]" in said
    assert "70s" not in said


def test_the_sentence_on_groups_says_that_unsure_windows_are_left_out():
    claims = claims_of_three_decades()
    assert [claim.has(kinds.NOT_SURE) for claim in claims] == [False, True, False]
    assert Words("en")["unsure_left_out"] in phrases.groups_sentence(claims, Words("en"))


def test_a_group_without_a_share_says_why():
    *_, seventies = claims_of_three_decades()
    assert seventies.number is None
    assert phrases.sentence(seventies, Words("en")) == "1970s: 1 of 3 films judged"


@pytest.mark.parametrize(("judges", "verb"), [("AB", "marquerait"), ("AB, CD", "marqueraient")])
def test_what_one_judge_would_mark_is_said_in_the_singular(judges, verb):
    groups = pd.DataFrame(
        {
            "group": ["1950s"], "n_films": [9], "n_judged": [6], "judges": [judges], "n_windows": [60],
            "n_unsure": [0], "value": [0.304], "low": [0.201], "high": [0.418], "worth": [70.0],
            "expected": [0.2], "n_expected": [9], "reason": [""],
        }
    )  # fmt: skip
    compared = FilmComparison((), groups, pd.DataFrame(), (), by="decade", positive=SURE, model="m")
    said = phrases.groups_sentence(group_claims(compared), Words("fr"))
    assert f" {verb} comme" in said
