"""Claims: no number of a sentence but from a claim, and each equal to what the raw data give."""

import ast
import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
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
from obygaze_film.claims.of_film import passage, reaching_passages
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.exchange import export
from obygaze_film.film_groups import FilmComparison
from obygaze_film.judged_rate import FilmRates
from obygaze_film.kappa_interval import kappa_interval
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
    "obygaze_film.evaluation": "seconds of marks that lie where nothing can be judged",
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


@pytest.mark.long
def test_only_claims_and_the_listed_modules_write_decimals():
    writing = {name for name, path in MODULES.items() if number_writing_code(path)}
    claims = {name for name in MODULES if name.startswith("obygaze_film.claims")}
    assert writing - claims == MAY_FORMAT.keys()


def test_modules_that_may_write_decimals_call_no_method_of_words_but_seconds():
    for name in MAY_FORMAT:
        calls_of_words = [code for code in number_writing_code(MODULES[name]) if "words." in code]
        assert all("words.seconds" in code for code in calls_of_words), name


@pytest.mark.parametrize("name", ["assets/notes", "page/assets/film"])
def test_no_text_of_notes_or_pages_writes_decimals_of_its_own(name):
    """A field with a format, as {start:.1f}, may hold a time as it was typed, and no other number."""
    for language in LANGUAGES:
        texts = tomllib.loads((ROOM / f"{name}.{language}.toml").read_text(encoding="utf-8"))
        for text in texts.values():
            fields_with_format = set(re.findall(r"\{(\w+):[^}]*\}", text))
            assert fields_with_format <= {"start", "end", "whole"}, text


def test_no_script_of_a_page_rounds_a_probability():
    """Scripts get probabilities as texts: rounded a second time they might differ from the sentence.

    A script that rounds writes `p.toFixed(2)`, `passage.p.toFixed(2)` or `p?.toFixed(2)`.
    """
    for path in (ROOM / "page" / "assets").glob("*.js"):
        script = path.read_text(encoding="utf-8")
        assert re.findall(r"[\w.?]*\bp\??\.toFixed", script) == [], path.name


def test_no_template_writes_the_number_of_a_claim_into_a_text():
    """A cell may hold a number alone; `w.say` and texts joined by `~` may not hold one."""
    number_method = rf"w\.({'|'.join(NUMBER_METHODS)})\("
    say = r"w\.say\(.*?\)\s*(?:}}|%})"
    decimal_format = r"(:\.\d|%\.\d|\d%\").*format"
    joined_number = rf"~\s*{number_method}|{number_method}[^)]*\)\s*~"
    for path in (ROOM / "page" / "assets").glob("*.j2"):
        template = path.read_text(encoding="utf-8")
        for arguments in re.findall(say, template):
            assert not re.search(number_method, arguments), (path.name, arguments)
        assert not re.search(decimal_format, template), path.name
        assert not re.search(joined_number, template), path.name


def concrete_kinds():
    """Return the classes of claims, but for the two that only others derive from."""
    classes = [kind for kind in vars(kinds).values() if isinstance(kind, type)]
    return [
        kind for kind in classes if issubclass(kind, FilmClaim) and kind not in (FilmClaim, kinds.ModelClaim)
    ]


def test_each_kind_of_claim_has_one_function_and_a_name_of_its_own():
    """`phrases.SENTENCES` gives of each class of claims the function that writes its sentence."""
    classes = concrete_kinds()
    assert set(phrases.SENTENCES) == set(classes)
    functions = set(phrases.SENTENCES.values())
    assert len(functions) == len(classes)
    names = {kind.KIND for kind in classes}
    assert len(names) == len(classes)


def test_each_kind_of_claim_has_the_common_fields():
    common = {"who", "what", "time", "number", "interval", "conditions"}
    for kind in concrete_kinds():
        assert common <= {field.name for field in fields(kind)}, kind.KIND


def test_each_kind_of_claim_is_in_the_table_of_the_docs():
    page = Path(__file__).parents[2] / "docs" / "film-programmers.md"
    table = page.read_text(encoding="utf-8").split("| claim | number |")[1].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines()[1:]]
    in_docs = {
        name.strip() for cell in first_cells for name in cell.replace(", of ", ", agreement of ").split(",")
    }
    assert {kind.KIND for kind in concrete_kinds()} <= in_docs


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_of_a_film_can_be_written_as_json_and_as_a_sentence(language):
    film = invented_film(n_rows=60, duration_s=600.0)
    for claim in film_claims(film):
        as_json = document(claim)
        assert as_json["claim"] == claim.KIND
        assert as_json["number"] == claim.number
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
        unlike_parts=((0.0, unlike_share),) if unlike_share else (),
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


def seconds_by_hand(film):
    """Seconds of a film that are judged, that are not though they have content, and black or credits."""
    rows = film.rows()
    is_unjudged = ~is_judged(rows) & ~is_nothing(rows)
    return [float(seconds_of(rows)[mask].sum()) for mask in (is_judged(rows), is_unjudged, is_nothing(rows))]


@given(films(), st.sampled_from(LANGUAGES))
def test_judged_unjudged_and_empty_seconds_are_those_of_the_rows_and_add_up(film, language):
    words = Words(language)
    judged_s, unjudged_s, nothing_s = seconds_by_hand(film)
    (claim,) = claims_of_kind(film, kinds.JudgedTime)
    assert claim.judged_s == pytest.approx(judged_s, abs=1e-6)
    assert claim.unlike_s == pytest.approx(unjudged_s, abs=1e-6)
    assert claim.nothing_s == pytest.approx(nothing_s, abs=1e-6)
    assert judged_s + unjudged_s + nothing_s == pytest.approx(film.record.duration_s)
    sentence = phrases.sentence(claim, words)
    for duration in words.durations(judged_s, unjudged_s, nothing_s):
        assert duration in sentence


@given(films(), st.sampled_from(LANGUAGES))
def test_the_shares_of_the_time_add_up_to_100_percent_as_they_are_written(film, language):
    words = Words(language)
    shares = words.shares_of_whole(seconds_by_hand(film))
    (claim,) = claims_of_kind(film, kinds.JudgedTime)
    said = phrases.sentence(claim, words)
    assert all(share in said for share in shares)
    if not any(re.search("[<>]", share) for share in shares):  # "<1%" is no number to add
        assert sum(int(found) for share in shares for found in re.findall(r"\d+", share)) == 100


@given(films(), st.sampled_from(LANGUAGES))
def test_a_film_has_a_first_sentence_where_any_of_it_is_judged(film, language):
    judged_s, _, _ = seconds_by_hand(film)
    assert bool(first_sentence(film, language=language)) == (judged_s > 0)


@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_speaks_of_the_judged_time_alone_where_over_a_fifth_is_not_judged(film, language):
    """The fifth is of what has content: what is black or credits does not count."""
    judged_s, unlike_s, _ = seconds_by_hand(film)
    sentence = first_sentence(film, language=language)
    if sentence:
        is_much_unjudged = unlike_s > (judged_s + unlike_s) / 5
        assert (Words(language)["sentence_of_these"] in sentence) == is_much_unjudged


def first_numbers_by_hand(film, words):
    """Write the numbers of the first sentence, computed from the rows; without those of concepts."""
    rows = film.rows()
    seconds = seconds_of(rows)
    judged_s, unlike_s, nothing_s = seconds_by_hand(film)
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


def without_concepts(sentence, claim, words):
    """Cut the first sentence before the concepts, which come last."""
    if not claim.concepts:
        return sentence
    keys = [f"mostly{amount}{number}" for amount in ("", "_half", "_more") for number in ("", "_1")]
    starts = [sentence.find(words[key].split("{")[0]) for key in keys]  # -1 of a text that is not in it
    return sentence[: max(starts)]


@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_has_the_numbers_of_time_and_passages_and_no_others(film, language):
    """As in "In 8 min of 10 min (80%) ... 2 min, in 3 passages": each is computed from the rows again."""
    words = Words(language)
    sentence = first_sentence(film, language=language)
    if not sentence:
        return
    (claim,) = claims_of_kind(film, kinds.MarkedPassages)
    numbers = numbers_in(without_concepts(sentence, claim, words), words)
    expected = numbers_in(" ".join(first_numbers_by_hand(film, words)), words)
    assert sorted(numbers) == sorted(expected)


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


@given(films(), st.sampled_from(LANGUAGES))
def test_a_passage_has_the_mean_probability_of_its_judged_rows(film, language):
    words = Words(language)
    for raw in raw_passages(film):
        assert raw.claim.number == pytest.approx(raw.p)
        assert words.probability(raw.p) in phrases.passage_p(raw.claim, words)


@given(films())
def test_a_reason_has_what_its_concept_adds_to_the_logit_and_changes_of_the_probability(film):
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            added = raw.mean(raw.rows[f"{reason.what}_contribution"])
            assert reason.contribution == pytest.approx(added, abs=1e-4)
            change = reason.number
            assert change == pytest.approx(raw.change(reason.what), abs=1e-4)


@given(films())
def test_the_amount_of_a_reason_is_more_less_or_mixed(film):
    """Means over a passage of the concept's value and of its probability are compared with the usual ones.

    more, less: the mean value is over or under the usual value. Where single rows lie on both sides of it,
    the mean probability lies on the same side as the mean value.
    mixed: single rows lie on both sides, and two means disagree: of the value and of the probability, or
    of what the concept adds to the logit and changes of the passage's probability.
    """
    concepts = concepts_by_name(film)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            concept, values = concepts[reason.what], raw.rows[f"{reason.what}_value"]
            is_more = raw.mean(values) > concept.usual
            p_is_more = reason.p > concept.usual_p
            is_p_usual = abs(reason.p - concept.usual_p) <= 1e-4  # it is kept to four decimals
            on_both_sides = values.min() < concept.usual < values.max()
            if reason.amount == "mixed":
                adds = raw.mean(raw.rows[f"{reason.what}_contribution"]) > 0
                raises = raw.change(reason.what) > 0
                assert on_both_sides
                assert is_more != p_is_more or adds != raises
            else:
                assert reason.amount == ("more" if is_more else "less")
                if on_both_sides and not is_p_usual:
                    assert is_more == p_is_more


def reason_is_said(raw, reason):
    """Tell whether a reason's sentence names its concept; None where rounding decides."""
    size = abs(raw.change(reason.what))
    if abs(size - LEAST_CHANGE) <= ROUNDING:
        return None
    return size > LEAST_CHANGE


def beginning_of(text_key, words):
    """Return a text of `Words` up to the place of its reasons: "For it: " of "For it: {reasons}."."""
    return words.say(text_key, reasons="|").split("|")[0]


@given(films(), st.sampled_from(LANGUAGES))
def test_a_concept_that_changes_the_probability_by_less_than_a_percent_is_not_named(film, language):
    words = Words(language)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            if reason_is_said(raw, reason) is False:
                assert words.translated(reason.what) not in phrases.sentence(reason, words)


@given(films(), st.sampled_from(LANGUAGES))
def test_a_reason_is_said_with_its_side_and_its_amount(film, language):
    """As in "For it: more Body": the side is for, the amount more."""
    words = Words(language)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            if reason_is_said(raw, reason):
                sentence = phrases.sentence(reason, words)
                side = side_of(raw.change(reason.what), round(reason.contribution, 4))
                assert sentence.startswith(beginning_of(side, words))
                assert words.say(f"why_{reason.amount}", concept=reason.what) in sentence


@given(films(), st.sampled_from(LANGUAGES))
def test_a_reason_says_that_its_concept_was_found_no_better_than_by_chance(film, language):
    words, concepts = Words(language), concepts_by_name(film)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            if reason_is_said(raw, reason):
                is_near_chance = concepts[reason.what].is_near_chance
                assert reason.has(NEAR_CHANCE) == is_near_chance
                assert (words["why_near_chance"] in phrases.sentence(reason, words)) == is_near_chance


@given(films(), st.sampled_from(LANGUAGES))
def test_every_concept_that_changes_the_probability_by_a_percent_is_named(film, language):
    words = Words(language)
    for raw in raw_passages(film):
        reasons = {reason.what: reason for reason in raw.claim.reasons}
        sentence = phrases.reasons_sentence(raw.claim.reasons, words)
        for concept in film.model().concepts:
            if abs(raw.change(concept.name)) > LEAST_CHANGE + ROUNDING:
                reason = reasons[concept.name]
                assert words.say(f"why_{reason.amount}", concept=reason.what) in sentence


@given(films(), st.sampled_from(LANGUAGES))
def test_a_sentence_that_names_one_concept_of_each_side_counts_the_others(film, language):
    """As in "For it: more Body; and 2 others. Against it: less Look."."""
    words = Words(language)
    for raw in raw_passages(film):
        by_side = {"why_for": [], "why_against": [], "why_both": []}
        for reason in raw.claim.reasons:
            if reason.moves:
                by_side[side_of(round(reason.number, 4), round(reason.contribution, 4))].append(reason)
        sentence = phrases.reasons_sentence(raw.claim.reasons, words, most=1)
        for side in by_side.values():
            if side:
                heaviest = max(side, key=lambda reason: round(abs(reason.number), 4))
                assert words.say(f"why_{heaviest.amount}", concept=heaviest.what) in sentence
            if len(side) > 1:
                assert words.counted("more_concepts", len(side) - 1) in sentence


def test_a_sentence_that_names_one_concept_names_the_heaviest():
    """Planted: Body, Look and Clothing are for a passage, in this order, and Activity is against it."""
    film = with_passage(
        added_to_logit={"Body": 2.0, "Look": 1.0, "Clothing": 0.5, "Activity": -1.0},
        seen_with_p=dict.fromkeys(("Body", "Look", "Clothing", "Activity"), 0.9),
    )
    (claim,) = [claim for claim in claims_of_kind(film, kinds.Passage) if claim.reasons]
    sentence = phrases.reasons_sentence(claim.reasons, Words("en"), most=1)
    assert "Body" in sentence
    assert Words("en").counted("more_concepts", 2) in sentence  # Look and Clothing
    assert "Activity" in sentence
    assert "Look" not in sentence


@given(films())
def test_a_concept_is_seen_in_a_passage_where_its_mean_probability_reaches_its_threshold(film):
    for raw in raw_passages(film):
        reasons = {reason.what: reason for reason in raw.claim.reasons}
        for concept in film.model().concepts:
            is_seen = raw.mean(raw.rows[f"{concept.name}_p"]) >= concept.threshold_p
            assert (concept.name in raw.claim.present) == is_seen
            if is_seen:
                assert reasons[concept.name].is_present


@given(films(), st.sampled_from(LANGUAGES))
def test_a_passages_length_is_computed_from_its_unrounded_ends(film, language):
    """A passage from 0.6 to 4.4 s is shown as one from 1 to 4 s, and is 4 s long, not 3."""
    words = Words(language)
    for claim in claims_of_kind(film, kinds.Passage):
        length_s = claim.time.end_s - claim.time.start_s
        assert claim.time.seconds == pytest.approx(length_s)
        written_length, _ = words.durations(length_s, claim.judged_s)
        assert written_length in phrases.passage_length(claim, words)


@pytest.mark.parametrize("unlike_share", [0.25, 0.5, 0.8])
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_expected_share_is_refused_with_the_unlike_part_of_the_films_content(unlike_share, language):
    """The refusal names how much of what is neither credits nor black is unlike, not of the whole film."""
    film = invented_film(n_rows=400, duration_s=600.0, unlike_parts=((0.0, unlike_share),))
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
    """Passages are called 1, 2, ...; places below the threshold that are listed after them w1, w2, ..."""
    film, words = invented_film(n_rows=60, duration_s=600.0), Words(language)
    claims = claims_of_kind(film, kinds.Passage)
    assert {claim.name.startswith("w") for claim in claims} == {True, False}
    for claim in claims:
        citation = phrases.citation_sentence(claim, positive="S", model="m", windows=None, words=words)
        assert (words["below"] in citation) == claim.name.startswith("w")


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


class ClaimsOfTwo(NamedTuple):
    """What `film report` claims of the windows that two people judged."""

    share: kinds.JudgedShare
    agreement: kinds.PairKappa


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
    return ClaimsOfTwo(share, agreement)


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_a_share_of_two_judges_is_the_mean_of_theirs_with_the_counts_of_both(calls, language):
    by_ab, by_cd = calls
    words = Words(language)
    sentence = phrases.sentence(claims_of_two(by_ab, by_cd).share, words)
    assert words.share((by_ab.mean() + by_cd.mean()) / 2) in sentence
    assert {str(by_ab.sum()), str(by_cd.sum()), str(len(by_ab))} <= set(numbers_in(sentence, words))


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_agreement_of_two_judges_has_their_counts_and_their_kappa(calls, language):
    one, other = calls
    words, kappa = Words(language), kappa_of(one, other)
    said = phrases.sentence(claims_of_two(one, other).agreement, words)
    assert {str((one == other).sum()), str(len(one))} <= set(numbers_in(said, words))
    assert words.share((one == other).mean()) in said
    assert (words["undefined"] if np.isnan(kappa) else words.number(kappa)) in said


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_share_and_agreement_of_two_judges_say_when_kappa_is_not_surely_above_0(calls, language):
    """It is undefined, surely below 0, or 0 may be true: of a share and of the agreement in words of each."""
    words, kappa = Words(language), kappa_interval(*calls)
    share, agreement = claims_of_two(*calls)
    doubts = {
        UNDEFINED: np.isnan(kappa_of(*calls)),
        AGREE_LESS: kappa.high < 0,
        AGREE_BY_CHANCE: kappa.low <= 0 <= kappa.high,
    }
    for doubt, holds in doubts.items():
        assert share.has(doubt) == holds
        assert (words[phrases.PANEL_DOUBTS[doubt]] in phrases.sentence(share, words)) == holds
        assert agreement.has(doubt) == holds
        assert (words[phrases.PAIR_DOUBTS[doubt]] in phrases.sentence(agreement, words)) == holds


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_pages_note_on_a_share_of_two_judges_has_the_sentence_on_their_agreement(calls, language):
    words = Words(language)
    share, agreement = claims_of_two(*calls)
    assert phrases.sentence(agreement, words) in phrases.judged_share_note(share, [agreement], words)


# --- counts of passages, and concepts named for them
# ---------------------------------------------------------------------------
@given(films())
def test_passages_are_counted_by_the_probability_and_by_both_edges_of_its_band(film):
    """The band is p_low to p_high; the count has no interval of its own, for these counts stand beside it."""
    for claim in claims_of_kind(film, kinds.MarkedPassages):
        counts = {"p": claim.number, "p_low": claim.at_low_edge, "p_high": claim.at_high_edge}
        for column, count in counts.items():
            by_this_column = replace(film, table=film.table.assign(p=film.table[column]))
            assert count == len(marked_passages_of(by_this_column))
        assert claim.interval is None


def with_passage(*, added_to_logit, seen_with_p):
    """Plant a passage of ten seconds, a row each, alike but for what concepts add and how likely they are.

    Both have, of each concept, one number for all ten seconds or a list of ten. A concept is seen from .5 on,
    and speaks for the passage where it adds something positive. Others add nothing and are seen nowhere.
    """
    film = invented_film(n_rows=30, duration_s=30.0, unlike_parts=())
    model = film.model()
    table = film.table.assign(start_s=np.arange(30.0), end_s=np.arange(1.0, 31.0), flags="", logit=-9.0)
    for concept in model.concepts:
        added, likely = np.zeros(30), np.zeros(30)
        added[10:20] = added_to_logit.get(concept.name, 0.0)
        likely[10:20] = seen_with_p.get(concept.name, 0.0)
        table[f"{concept.name}_contribution"], table[f"{concept.name}_p"] = added, likely
    table.loc[10:19, "logit"] = 0.5
    p = mean_probability(np.array(model.calibration.draws), table["logit"].to_numpy())
    table["p"], table["p_low"], table["p_high"] = p, p, p
    concepts = [changed(concept, usual=0.0, usual_p=0.2, threshold_p=0.5) for concept in model.concepts]
    just_below = float(p[10]) - 0.01
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=just_below)


def concepts_mostly_seen(film):
    """Name the concepts that the sentence on a film's only passage says are mostly seen in it."""
    claim = reaching_passages(film, film.model(), film.segments())
    assert claim.number == 1
    return [concept.name for concept in claim.concepts]


def test_a_concept_is_named_for_the_time_in_which_it_is_seen_not_for_its_mean_probability():
    """Body is seen in four seconds of ten, with a mean over the threshold; Look in six, with one below it."""
    p_of_body, p_of_look = np.repeat([0.98, 0.4], [4, 6]), np.repeat([0.6, 0.02], [6, 4])
    assert p_of_body.mean() > 0.5 > p_of_look.mean()
    film = with_passage(
        added_to_logit={"Body": 1.0, "Look": 1.0}, seen_with_p={"Body": p_of_body, "Look": p_of_look}
    )
    assert concepts_mostly_seen(film) == ["Look"]


def test_a_concept_that_is_seen_all_along_but_speaks_for_a_passage_in_less_than_half_is_not_named():
    look_adds = np.repeat([1.0, -1.0], [4, 6])
    film = with_passage(added_to_logit={"Look": look_adds}, seen_with_p={"Look": 0.9})
    assert concepts_mostly_seen(film) == []


def test_a_concept_that_lowers_the_mean_probability_is_not_named_though_it_raises_it_mostly():
    """Look adds a little in six of ten seconds, and takes away much in the other four."""
    look_adds = np.repeat([0.3, -2.0], [6, 4])
    film = with_passage(
        added_to_logit={"Look": look_adds, "Body": 1.0}, seen_with_p={"Look": 0.9, "Body": 0.9}
    )
    assert concepts_mostly_seen(film) == ["Body"]


def taken_away_for_a_change_of(wanted_change, *, added):
    """Find what Look must add in four seconds so that, with `added` in six, it changes p by `wanted_change`.

    By bisection: the more it adds, the more it changes the mean probability of the ten seconds.
    """
    draws = np.array(with_passage(added_to_logit={}, seen_with_p={}).model().calibration.draws)

    def change_of(logit_added):
        with_look, without = mean_probability(draws, np.array([0.5, 0.5 - logit_added]))
        return with_look - without

    too_low, high_enough = -1.0, added
    for _ in range(60):
        middle = (too_low + high_enough) / 2
        if 0.6 * change_of(added) + 0.4 * change_of(middle) > wanted_change:
            high_enough = middle
        else:
            too_low = middle
    return too_low


def test_a_change_of_almost_a_percent_is_rounded_to_one_in_the_sentence_as_in_the_reasons():
    """Look changes the probability by .00997: tables round it to .0100, from which on it is a reason."""
    look_adds = np.repeat([0.3, taken_away_for_a_change_of(0.00997, added=0.3)], [6, 4])
    film = with_passage(added_to_logit={"Look": look_adds}, seen_with_p={"Look": 0.9})
    segment = film.segments().iloc[0]
    (look,) = [reason for reason in reasons(segment) if reason.concept == "Look"]
    assert round(look.change, 4) == 0.01
    assert "Look" in [reason.what for reason in passage(film.model(), segment).reasons if reason.moves]
    assert concepts_mostly_seen(film) == ["Look"]


class ShareAndChange(NamedTuple):
    """Of a concept: the share of the marked time in which it is seen and for it, and the mean change of p."""

    share: float
    mean_change: float

    @property
    def is_named(self):
        # The mean is compared as it stands in a table, to four decimals.
        return self.share >= 0.5 and round(self.mean_change, 4) >= LEAST_CHANGE

    @property
    def is_at_a_bound(self):
        """Tell whether the last digits of a sum decide: .00995 is what rounds to .0100."""
        return abs(self.share - 0.5) < 1e-9 or abs(self.mean_change - 0.00995) < 1e-9


def shares_and_changes(film):
    """Compute of each concept, from the rows of the marked passages, by what it is named or not."""
    rows = film.rows()
    is_marked = np.zeros(len(rows), bool)
    for start_s, end_s in marked_passages_of(film):
        is_marked |= is_inside(rows, start_s, end_s)
    rows = rows[is_marked & is_judged(rows)]
    seconds = seconds_of(rows)
    draws = np.array(film.model().calibration.draws)
    computed = {}
    for concept in film.model().concepts:
        logit_without = rows["logit"] - rows[f"{concept.name}_contribution"]
        change = rows["p"].to_numpy() - mean_probability(draws, logit_without.to_numpy())
        is_seen = (rows[f"{concept.name}_p"] >= concept.threshold_p).to_numpy()
        share = seconds[is_seen & (change >= LEAST_CHANGE)].sum() / seconds.sum()
        computed[concept.name] = ShareAndChange(share, np.average(change, weights=seconds))
    return computed


@given(films())
def test_concepts_are_named_that_are_seen_and_for_a_film_in_half_of_its_marked_time_and_no_others(film):
    claim = reaching_passages(film, film.model(), film.segments())
    if claim is None or not claim.number:
        return
    named = {concept.name for concept in claim.concepts}
    for name, computed in shares_and_changes(film).items():
        if not computed.is_at_a_bound:
            assert (name in named) == computed.is_named


def test_concepts_are_named_in_the_order_of_what_they_add_while_they_are_seen():
    """Body is seen in six seconds and adds more in them than Look does in all ten."""
    film = with_passage(
        added_to_logit={"Look": 0.5, "Body": 1.0},
        seen_with_p={"Look": 0.9, "Body": np.repeat([0.9, 0.1], [6, 4])},
    )
    assert concepts_mostly_seen(film) == ["Body", "Look"]


def test_concepts_that_add_as_much_are_named_in_the_codebooks_order():
    first, second, third = [name for name, *_ in CONCEPTS][:3]
    film = with_passage(
        added_to_logit={first: 1.0, second: 0.5, third: 1.0},
        seen_with_p={first: 0.9, second: 0.9, third: 0.9},
    )
    assert concepts_mostly_seen(film) == [first, third, second]


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


@pytest.mark.parametrize(("flag_of_all_rows", "reason"), WHY_NOTHING.items())
def test_title_and_share_have_the_reason_why_nothing_is_predicted(flag_of_all_rows, reason):
    film = without_probability(flag_of_all_rows)
    (title,) = claims_of_kind(film, kinds.Title)
    assert title.conditions == (reason,)
    (share,) = claims_of_kind(film, kinds.ExpectedShare)
    assert share.conditions == (kinds.REFUSED, reason)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("flag", "reason"), WHY_NOTHING.items())
def test_a_page_gives_the_same_reason_in_all_places_that_say_why_nothing_is_predicted(flag, reason, language):
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


def test_a_film_scored_without_calibration_is_not_said_to_be_unlike_training():
    """Such a model gives no probability at all, which is no sign that the film differs from its clips."""
    film = invented_film(n_rows=30, duration_s=600.0, unlike_parts=())
    film = replace(film, table=film.table.assign(p=np.nan))
    film = with_model(film, calibration=None, threshold_p=None)
    (judged_time,) = claims_of_kind(film, kinds.JudgedTime)
    for language in LANGUAGES:
        sentence = phrases.unjudged_sentence(judged_time, Words(language))
        assert reason_why_unlike_is_unjudged(language) not in sentence


def reason_why_unlike_is_unjudged(language):
    """Return the sentence on what is too unlike to be judged from its colon on: before it are numbers."""
    return Words(language)["sure_unjudged"].split(" : " if language == "fr" else ": ")[1]


def test_a_film_of_which_nothing_is_judged_has_no_count_of_passages():
    film = invented_film(unlike_parts=((0.0, 1.0),))
    assert reaching_passages(film, film.model(), film.segments()) is None
    assert claims_of_kind(film, kinds.MarkedPassages) == []


@pytest.mark.parametrize(("n_models", "is_named"), [(1, False), (2, True)])
def test_of_several_models_a_sentence_names_the_one_that_marks(n_models, is_named):
    film = invented_film(n_rows=60, duration_s=600.0)
    model = film.model()
    models = [model, changed(model, key="second")][:n_models]
    film = replace(film, record=changed(film.record, models=models))
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


def share_of_all_25_windows():
    """Claim 0.24: all windows of the film (90 s of content) were judged, and 6 of 25 called S."""
    return judged_share(CorrectedRate(low=0.24, high=0.24, method="census", **ALL_25_WINDOWS))


def share_estimated_from_25_of_more_windows():
    """Claim 0.24 as the estimate from 25 windows drawn of a longer film, with an interval of .1 to .4."""
    return judged_share(CorrectedRate(low=0.1, high=0.4, method="difference", **ALL_25_WINDOWS))


def test_a_share_that_is_counted_over_all_windows_has_no_interval():
    counted = share_of_all_25_windows()
    assert counted.interval is None
    assert counted.has(ALL_JUDGED)
    assert counted.time == kinds.ClaimTime(part="content", seconds=90.0)


def test_a_share_that_is_estimated_from_some_windows_has_an_interval():
    estimated = share_estimated_from_25_of_more_windows()
    assert estimated.interval is not None
    assert not estimated.has(ALL_JUDGED)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_a_counted_share_has_24_percent_once_and_no_95_percent_interval(language):
    words = Words(language)
    sentence = phrases.sentence(share_of_all_25_windows(), words)
    assert sentence.count("24") == 1
    assert "95" not in sentence
    assert phrases.sentence(share_estimated_from_25_of_more_windows(), words).count("24") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_note_of_a_page_on_a_counted_share_begins_without_an_interval(language):
    """An interval is written with a dash, as 10–40%; what else was judged follows in later sentences."""
    other_claims = [share_estimated_from_25_of_more_windows()]
    note = phrases.judged_share_note(share_of_all_25_windows(), other_claims, Words(language))
    first_sentence_of_note = note.split(".")[0]
    assert "–" not in first_sentence_of_note


GROUPS_OF_DECADES = pd.DataFrame(
    {
        "group": ["1950s", "1960s", "1970s"],
        "n_films": [9, 8, 3],
        "n_judged": [6, 5, 1],
        "judges": ["AB", "AB", "AB"],
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


def test_the_sentence_on_groups_has_the_numbers_of_those_that_have_a_share():
    sentence = phrases.groups_sentence(claims_of_groups(GROUPS_OF_DECADES), Words("en"))
    assert "30% [20%, 42%]" in sentence  # of the 1950s: .304 [.201, .418]
    assert ">99% [90%, >99%]" in sentence  # of the 1960s: .995 [.9, .9999]
    assert "70s" not in sentence


def test_the_sentence_on_groups_says_that_unsure_windows_are_left_out():
    claims = claims_of_groups(GROUPS_OF_DECADES)
    fifties, sixties, seventies = claims
    assert sixties.has(kinds.NOT_SURE)
    assert not fifties.has(kinds.NOT_SURE)
    assert not seventies.has(kinds.NOT_SURE)
    assert Words("en")["unsure_left_out"] in phrases.groups_sentence(claims, Words("en"))


def test_the_sentence_on_groups_of_several_judges_averages_those_who_were_sure_of_each_window():
    groups = GROUPS_OF_DECADES.assign(judges="AB, CD")
    sentence = phrases.groups_sentence(claims_of_groups(groups), Words("en"))
    assert "without windows of which none of its judges was sure" in sentence
    assert "window by window, over those who were sure of it" in sentence


def test_the_sentence_on_groups_of_other_judges_in_films_and_groups_names_them_all():
    groups = GROUPS_OF_DECADES.assign(judges=["AB, CD", "AB", "AB"])
    claims = [
        replace(claim, conditions=(*claim.conditions, kinds.OTHER_JUDGES))
        for claim in claims_of_groups(groups)
    ]
    sentence = phrases.groups_sentence(claims, Words("en"))
    assert "(in all AB and CD; not every film has the same judges)" in sentence


def test_a_group_without_a_share_says_why():
    *_, seventies = claims_of_groups(GROUPS_OF_DECADES)
    assert seventies.number is None
    assert phrases.sentence(seventies, Words("en")) == "1970s: 1 of 3 films judged"


@pytest.mark.parametrize(("judges", "verb"), [("AB", "marquerait"), ("AB, CD", "marqueraient")])
def test_the_french_verb_is_singular_of_one_judge_and_plural_of_two(judges, verb):
    """As in "AB marquerait comme S (Sûr) 30 % des ..."."""
    groups = GROUPS_OF_DECADES.head(1).assign(judges=judges)
    sentence = phrases.groups_sentence(claims_of_groups(groups), Words("fr"))
    assert f" {verb} comme" in sentence
