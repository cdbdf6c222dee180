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


def test_modules_that_compute_import_no_claims_or_pages():
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

TEMPLATE_WITH_DECIMALS = re.compile(r"\{\w*:[^}]*(\.\d|[eEfFgG%]\})")
"""A template of `str.format` with a field of decimals, as `'{:.2%} of the film'`."""

NAMES_OF_WORDS = {"words", "english", "w"}
"""Names that modules give to an object of `Words`; templates call it `w`."""


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
    """Whether the name of an expression says that it is a number of a claim: `rate.share`, `row["kappa"]`.

    `number` says so only of an object that is called a claim: `claim.number`, not `row.number`.
    """
    if is_cell(node):
        return node.slice.value in CLAIM_NUMBERS
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    name = last_name(node)
    is_field_of_claim = isinstance(node, ast.Attribute) and "claim" in last_name(node.value)
    if is_field_of_claim and name == "number":
        return True
    return name in CLAIM_NUMBERS


def makes_text(call):
    """Whether a call fills a text with values, or makes a text of one."""
    return last_name(call.func) in {"say", "counted", "message", "counted_message", "format", "str", "repr"}


def makes_text_of_number(call):
    """Whether a call makes a text of a rounded number or of the number of a claim."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return makes_text(call) and any(rounds(value) or is_claim_number(value) for value in values)


def format_of(field):
    """Return the format of an f-string's field, as `.2f`; a part that is itself a field becomes `{}`."""
    if field.format_spec is None:
        return ""
    parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in field.format_spec.values]
    return "".join(parts)


def field_writes_number(field):
    """Whether a field of an f-string has decimals, or a value that is rounded or the number of a claim."""
    has_decimals = DECIMAL_FORMAT.search(format_of(field)) is not None
    return has_decimals or rounds(field.value) or is_claim_number(field.value)


def function_writes_number(call):
    """Whether a call of a function, as `format(value, ".2f")`, writes a rounded number or one of a claim."""
    name = call.func.id
    if name in {"format", "rounded"}:
        return True
    if name == "getattr" and last_name(call.args[0]) in {"words", "Words"}:  # a method of Words by its name
        return True
    return makes_text_of_number(call)


def method_writes_number(call):
    """Whether a call of a method, as `words.share(value)`, writes a rounded number or one of a claim."""
    name, owner = call.func.attr, call.func.value
    if name in NUMBER_METHODS and name != "difference":  # sets and tables have a `difference` too
        return last_name(owner) not in OWNERS_OF_NUMBERS
    if name.startswith("format_float"):  # NumPy's functions
        return True
    if name == "format" and TEMPLATE_WITH_DECIMALS.search(ast.unparse(owner)):
        return True
    return makes_text_of_number(call)


def writes_number(node):
    """Whether a node writes a number with decimals, as a percentage, or by a method of `Words`."""
    if isinstance(node, ast.FormattedValue):
        return field_writes_number(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # "%.2f" % value
        is_template = isinstance(node.left, ast.Constant)
        return is_template and PERCENT_FORMAT.search(str(node.left.value)) is not None
    if isinstance(node, ast.Attribute):  # a method of Words, called or bound to another name
        return node.attr in NUMBER_METHODS and last_name(node.value).lower() in NAMES_OF_WORDS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return function_writes_number(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return method_writes_number(node)
    return False


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


def names_of_numbers(scope):
    """Return the names in a function that are bound to a rounded number or to the number of a claim.

    A name that is bound to another such name counts too: b of `a = rate.share; b = a`.
    """
    bindings = [*bound_in(scope)]
    names = {name for name, value in bindings if rounds(value) or is_claim_number(value)}
    while True:
        aliases = {name for name, value in bindings if isinstance(value, ast.Name) and value.id in names}
        if aliases <= names:
            return names
        names |= aliases


def rename_numbers_to_share(scope):
    """Rename, in the tree itself, each name in a function that holds a claim's number to `share`.

    `is_claim_number` knows numbers by their names, and so it finds these, too.
    """
    names = names_of_numbers(scope)
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            node.id = "share"


def number_writing_code(path):
    """Return the expressions of a module that write a rounded number or the number of a claim.

    A number is followed through the local names that functions give it.
    """
    nodes = run_time_nodes(path)
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            rename_numbers_to_share(node)
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
    """A claim is a number with its conditions; sentences take numbers from claims only.

    `number_writing_code` must find every other way to write a number, or the next tests prove nothing.
    """
    breach = tmp_path / "breach.py"
    breach.write_text(line)
    assert number_writing_code(breach)


@pytest.mark.long
def test_only_claims_and_the_listed_modules_write_decimals():
    """Every number in a sentence must come from a claim.

    `MAY_FORMAT` lists the modules with other decimals.
    """
    writing = {name for name, path in MODULES.items() if number_writing_code(path)}
    claims = {name for name in MODULES if name.startswith("obygaze_film.claims")}
    assert writing - claims == MAY_FORMAT.keys()


def test_listed_modules_use_words_for_seconds_only():
    """The modules in `MAY_FORMAT` write decimals, but not of claims.

    Those are written by methods of `Words`.
    """
    for name in MAY_FORMAT:
        calls_of_words = [code for code in number_writing_code(MODULES[name]) if "words." in code]
        assert all("words.seconds" in code for code in calls_of_words), name


@pytest.mark.parametrize("name", ["assets/notes", "page/assets/film"])
def test_no_text_of_notes_or_pages_formats_numbers(name):
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


def templates_of_pages():
    """Give the name and the text of each template of a page."""
    for path in (ROOM / "page" / "assets").glob("*.j2"):
        yield path.name, path.read_text(encoding="utf-8")


CALL_OF_NUMBER_METHOD = rf"w\.({'|'.join(NUMBER_METHODS)})\("
"""A method of `Words` that writes a number, in a template: `w.share(`."""


def test_no_template_fills_the_number_of_a_claim_into_a_text():
    """A cell may hold `w.share(p)` alone, but `w.say("x", share=w.share(p))` may not stand anywhere."""
    call_of_say = r"w\.say\(.*?\)\s*(?:}}|%})"
    for name, template in templates_of_pages():
        for arguments in re.findall(call_of_say, template):
            assert not re.search(CALL_OF_NUMBER_METHOD, arguments), (name, arguments)


def test_no_template_joins_the_number_of_a_claim_to_a_text():
    """As in `w.share(p) ~ " of the film"`; `~` joins texts in Jinja."""
    number_after_text = rf"~\s*{CALL_OF_NUMBER_METHOD}"
    number_before_text = rf"{CALL_OF_NUMBER_METHOD}[^)]*\)\s*~"
    for name, template in templates_of_pages():
        assert not re.search(number_after_text, template), name
        assert not re.search(number_before_text, template), name


def test_no_template_formats_decimals():
    """As in `"{:.2f}".format(p)` or `"%.2f"|format(p)`."""
    decimal_format = r"(:\.\d|%\.\d|\d%\").*format"
    for name, template in templates_of_pages():
        assert not re.search(decimal_format, template), name


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
    """Draw a film of one model: its unlike and black parts, the weights of concepts, and the threshold."""
    unlike_share = draw(st.floats(0, 1))
    black_share = draw(st.floats(0, 0.5))
    film = invented_film(
        n_rows=draw(st.integers(12, 60)),
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
    """Each second of a film is judged, not judged (unlike the training clips), or empty (black, credits).

    The claim has the same three sums as the rows, and its sentence writes them.
    """
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


def test_a_share_that_is_all_or_nothing_but_for_rounding_is_written_so():
    """Sums of decimals miss 0 and 1 by their last digit."""
    words = Words("en")
    almost_all, almost_nothing = 1 - 2**-53, 2**-53
    assert (words.share(almost_all), words.share(almost_nothing)) == ("100%", "0%")
    assert words.shares_of_whole([almost_all, almost_nothing]) == ["100%", "0%"]
    assert (words.share(0.9999), words.share(0.0001)) == (">99%", "<1%")


@given(films(), st.sampled_from(LANGUAGES))
def test_written_shares_of_the_time_add_up_to_100_percent(film, language):
    """Rounded one by one, three shares may add up to 99 or 101 %, which readers take for an error."""
    words = Words(language)
    shares = words.shares_of_whole(seconds_by_hand(film))
    (claim,) = claims_of_kind(film, kinds.JudgedTime)
    said = phrases.sentence(claim, words)

    assert all(share in said for share in shares)
    if not any(re.search("[<>]", share) for share in shares):  # "<1%" is no number to add
        assert sum(int(found) for share in shares for found in re.findall(r"\d+", share)) == 100


@given(films(), st.sampled_from(LANGUAGES))
def test_a_film_has_a_first_sentence_if_any_of_it_is_judged(film, language):
    """The first sentence is on the passages that the model marks. Where it judges nothing there is none."""
    judged_s, _, _ = seconds_by_hand(film)
    assert bool(first_sentence(film, language=language)) == (judged_s > 0)


@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_is_of_judged_time_if_much_is_not_judged(film, language):
    """If over a fifth of a film is not judged, the sentence says "of these minutes", and not "of the film".

    The fifth is of what has content: what is black or credits does not count.
    """
    judged_s, unlike_s, _ = seconds_by_hand(film)
    sentence = first_sentence(film, language=language)
    if sentence:
        is_much_unjudged = unlike_s > (judged_s + unlike_s) / 5
        assert (Words(language)["sentence_of_these"] in sentence) == is_much_unjudged


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


LEAST_WRITTEN_S = 0.5
"""Less time would be written as zero seconds, and is not written."""


def first_numbers_by_hand(film, words):
    """Write the numbers of the first sentence, computed from the rows; without those of concepts."""
    seconds = seconds_by_hand(film)
    n_passages = len(marked_passages_of(film))
    marked_s = seconds_in_passages(film, seconds_of(film.rows()))
    called_s = seconds_in_passages(film, reaching_seconds(film))
    judged, marked, nothing, called = words.durations(seconds.judged, marked_s, seconds.nothing, called_s)
    numbers = [judged]
    if seconds.unjudged + seconds.nothing >= LEAST_WRITTEN_S:
        judged_share, *_ = words.shares_of_whole([*seconds])
        numbers.append(judged_share)
    if seconds.nothing >= LEAST_WRITTEN_S:
        numbers.append(nothing)
    if n_passages:
        numbers.append(marked)
    else:
        # What reaches the threshold lies in places too short for a passage.
        too_short_s = reaching_seconds(film).sum()
        if too_short_s > 0:
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
def test_the_first_sentence_has_these_numbers_and_no_others(film, language):
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
        """Return p minus the p that the passage would have if the concept added nothing to the logit."""
        logit_without = self.rows["logit"] - self.rows[f"{concept}_contribution"]
        return self.p - self.mean(mean_probability(self.draws, logit_without.to_numpy()))


def raw_passages(film):
    """Return the film's passages as computed from its rows."""
    return [RawPassage(film, claim) for claim in claims_of_kind(film, kinds.Passage)]


def concepts_by_name(film):
    return {concept.name: concept for concept in film.model().concepts}


def side_of(change, contribution):
    """Return the key of the text of a reason: for the passage, against it, or neither ("why_both").

    `change` is that of the probability, `contribution` the one to the logit, which the reason's bar shows.
    Where their signs differ, the reason is on neither side.
    """
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
def test_a_reason_has_its_contribution_and_its_change_of_the_probability(film):
    """A concept adds to the logit of a passage; taking it away changes the probability. A reason has both."""
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            added = raw.mean(raw.rows[f"{reason.what}_contribution"])
            assert reason.contribution == pytest.approx(added, abs=1e-4)
            change = reason.number
            assert change == pytest.approx(raw.change(reason.what), abs=1e-4)


class ReasonByHand:
    """A reason for a passage, compared with the usual value and the usual probability of its concept."""

    def __init__(self, raw, reason, concept):
        values = raw.rows[f"{concept.name}_value"]
        self.value_is_above_usual = raw.mean(values) > concept.usual
        self.p_is_above_usual = reason.p > concept.usual_p
        self.p_is_usual = abs(reason.p - concept.usual_p) <= 1e-4  # it is kept to four decimals
        self.rows_are_on_both_sides = values.min() < concept.usual < values.max()
        self.adds_to_logit = raw.mean(raw.rows[f"{concept.name}_contribution"]) > 0
        self.raises_p = raw.change(concept.name) > 0


def reasons_by_hand(film, amounts):
    """Give the reasons of the film's passages that have one of these amounts, each with its recomputation."""
    concepts = concepts_by_name(film)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            if reason.amount in amounts:
                yield reason, ReasonByHand(raw, reason, concepts[reason.what])


@given(films())
def test_a_reason_says_more_if_its_concept_is_above_the_usual_value(film):
    """As in "more Body": the concept's mean value in the passage is above the one usual in training."""
    for reason, by_hand in reasons_by_hand(film, {"more", "less"}):
        assert reason.amount == ("more" if by_hand.value_is_above_usual else "less")


@given(films())
def test_more_and_less_hold_of_the_probability_too(film):
    """If the passage's rows lie on both sides of the usual value, two means could disagree.

    "More" or "less" is said only if the mean value and the concept's mean probability are on one side.
    """
    for _, by_hand in reasons_by_hand(film, {"more", "less"}):
        if by_hand.rows_are_on_both_sides and not by_hand.p_is_usual:
            assert by_hand.p_is_above_usual == by_hand.value_is_above_usual


@given(films())
def test_a_reason_is_mixed_if_two_means_disagree(film):
    """Rows lie on both sides of the usual value, and so two means may point to different sides.

    Those are the means of value and probability, or of what is added to the logit and to the probability.
    """
    for _, by_hand in reasons_by_hand(film, {"mixed"}):
        assert by_hand.rows_are_on_both_sides
        value_and_p_disagree = by_hand.value_is_above_usual != by_hand.p_is_above_usual
        logit_and_p_disagree = by_hand.adds_to_logit != by_hand.raises_p
        assert value_and_p_disagree or logit_and_p_disagree


@given(films())
def test_a_reason_is_more_less_or_mixed(film):
    """Of a concept there is more than usual, less than usual, or in part more and in part less."""
    for raw in raw_passages(film):
        assert {reason.amount for reason in raw.claim.reasons} <= {"more", "less", "mixed"}


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
def test_a_concept_with_a_change_below_a_percent_is_not_named(film, language):
    """So small a change would be noise to a reader."""
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
def test_a_reason_says_if_its_concept_is_found_by_chance(film, language):
    """Some concepts the model finds no better than by chance.

    A reason by such a one is said with this warning.
    """
    words, concepts = Words(language), concepts_by_name(film)
    for raw in raw_passages(film):
        for reason in raw.claim.reasons:
            if reason_is_said(raw, reason):
                is_near_chance = concepts[reason.what].is_near_chance
                assert reason.has(NEAR_CHANCE) == is_near_chance
                assert (words["why_near_chance"] in phrases.sentence(reason, words)) == is_near_chance


@given(films(), st.sampled_from(LANGUAGES))
def test_every_concept_with_a_change_of_a_percent_is_named(film, language):
    """No reason of weight is left out of the sentence, on either side."""
    words = Words(language)
    for raw in raw_passages(film):
        reasons = {reason.what: reason for reason in raw.claim.reasons}
        sentence = phrases.reasons_sentence(raw.claim.reasons, words)
        for concept in film.model().concepts:
            if abs(raw.change(concept.name)) > LEAST_CHANGE + ROUNDING:
                reason = reasons[concept.name]
                assert words.say(f"why_{reason.amount}", concept=reason.what) in sentence


def reasons_by_side(claim):
    """Return the reasons of a passage that move its probability, by the side that they are on."""
    by_side = {"why_for": [], "why_against": [], "why_both": []}
    for reason in claim.reasons:
        if reason.moves:
            # To four decimals, as tables keep them: a tiny number may lose its sign.
            side = side_of(round(reason.number, 4), round(reason.contribution, 4))
            by_side[side].append(reason)
    return by_side


@given(films(), st.sampled_from(LANGUAGES))
def test_a_sentence_with_one_concept_a_side_counts_the_others(film, language):
    """As in "For it: more Body; and 2 others. Against it: less Look."."""
    words = Words(language)
    for raw in raw_passages(film):
        sentence = phrases.reasons_sentence(raw.claim.reasons, words, most=1)
        for side_reasons in reasons_by_side(raw.claim).values():
            if not side_reasons:
                continue
            heaviest = max(side_reasons, key=lambda reason: round(abs(reason.number), 4))
            assert words.say(f"why_{heaviest.amount}", concept=heaviest.what) in sentence
            n_others = len(side_reasons) - 1
            if n_others:
                assert words.counted("more_concepts", n_others) in sentence


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
def test_a_concept_is_seen_if_its_mean_probability_reaches_its_threshold(film):
    """The claim lists the concepts seen in a passage, and their reasons are marked as present."""
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
def test_a_refused_share_names_the_unlike_part_of_the_content(unlike_share, language):
    """No share is expected of a film that is in large part unlike the training clips.

    The refusal says how much of what is neither credits nor black is unlike, and not of the whole film.
    """
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
def test_a_mean_of_staging_says_how_many_windows_it_is_of(language):
    """A variable of staging, here the camera, is known in two of five windows: the sentence says 2 of 5.

    Where all have a value it says the mean alone.
    """
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

    share: kinds.JudgedShare
    agreement: kinds.PairKappa


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
def test_a_share_of_two_judges_is_the_mean_of_theirs(calls, language):
    """The sentence also says how many windows each called positive, and of how many."""
    by_ab, by_cd = calls
    words = Words(language)
    sentence = phrases.sentence(claims_of_two(by_ab, by_cd).share, words)
    assert words.share((by_ab.mean() + by_cd.mean()) / 2) in sentence
    assert {str(by_ab.sum()), str(by_cd.sum()), str(len(by_ab))} <= set(numbers_in(sentence, words))


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_agreement_of_two_judges_has_counts_and_kappa(calls, language):
    """The sentence says how many windows both call the same, and Cohen's kappa: 0 is agreement by chance."""
    one, other = calls
    words, kappa = Words(language), kappa_of(one, other)
    said = phrases.sentence(claims_of_two(one, other).agreement, words)
    assert {str((one == other).sum()), str(len(one))} <= set(numbers_in(said, words))
    assert words.share((one == other).mean()) in said
    assert (words["undefined"] if np.isnan(kappa) else words.number(kappa)) in said


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_share_and_agreement_say_if_kappa_may_be_chance(calls, language):
    """A share of judges who agree no better than by chance means little, so that both sentences say so.

    There are three doubts: kappa is undefined, its interval lies below 0, or the interval holds 0.
    """
    words, kappa = Words(language), kappa_interval(*calls)
    share, agreement = claims_of_two(*calls)
    doubts = {
        UNDEFINED: np.isnan(kappa_of(*calls)),
        AGREE_LESS: kappa.high < 0,
        AGREE_BY_CHANCE: kappa.low <= 0 <= kappa.high,
    }
    for doubt, is_expected in doubts.items():
        assert share.has(doubt) == is_expected
        doubt_of_share = words[phrases.PANEL_DOUBTS[doubt]]
        assert (doubt_of_share in phrases.sentence(share, words)) == is_expected

        assert agreement.has(doubt) == is_expected
        doubt_of_agreement = words[phrases.PAIR_DOUBTS[doubt]]
        assert (doubt_of_agreement in phrases.sentence(agreement, words)) == is_expected


@given(calls_of_two(), st.sampled_from(LANGUAGES))
def test_the_note_on_a_share_of_two_judges_says_how_far_they_agree(calls, language):
    words = Words(language)
    share, agreement = claims_of_two(*calls)
    assert phrases.sentence(agreement, words) in phrases.judged_share_note(share, [agreement], words)


# --- counts of passages, and concepts named for them
# ---------------------------------------------------------------------------
@given(films())
def test_passages_are_counted_at_both_edges_of_the_band(film):
    """The probability has a band from p_low to p_high, and passages are counted by each of the three.

    The two counts at its edges stand in place of an interval.
    """
    for claim in claims_of_kind(film, kinds.MarkedPassages):
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
    film = invented_film(n_rows=30, duration_s=30.0, unlike_parts=())
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


def test_a_concept_is_named_by_the_time_in_which_it_is_seen():
    """A concept is named if it is seen in half of the time or more, whatever its mean probability is.

    Body is seen in four seconds of ten, with a mean over the threshold; Look in six, with one below it.
    """
    p_of_body, p_of_look = np.repeat([0.98, 0.4], [4, 6]), np.repeat([0.6, 0.02], [6, 4])
    assert p_of_body.mean() > 0.5 > p_of_look.mean()
    film = with_passage(
        added_to_logit={"Body": 1.0, "Look": 1.0}, seen_with_p={"Body": p_of_body, "Look": p_of_look}
    )
    assert concepts_mostly_seen(film) == ["Look"]


def test_a_concept_must_speak_for_half_of_a_passage_to_be_named():
    """Look is seen in all ten seconds, but raises the probability in four of them only."""
    look_adds = np.repeat([1.0, -1.0], [4, 6])
    film = with_passage(added_to_logit={"Look": look_adds}, seen_with_p={"Look": 0.9})
    assert concepts_mostly_seen(film) == []


def test_a_concept_that_lowers_the_mean_probability_is_not_named():
    """Look adds a little in six of ten seconds, and takes away much in the other four."""
    look_adds = np.repeat([0.3, -2.0], [6, 4])
    film = with_passage(
        added_to_logit={"Look": look_adds, "Body": 1.0}, seen_with_p={"Look": 0.9, "Body": 0.9}
    )
    assert concepts_mostly_seen(film) == ["Body"]


def added_in_four_seconds_for_change(wanted_change, *, added_in_six):
    """Find what Look must add to the logit in four of a passage's ten seconds for this mean change of p.

    In the other six it adds `added_in_six`. By bisection: the more it adds, the larger the mean change.
    """
    draws = np.array(with_passage(added_to_logit={}, seen_with_p={}).model().calibration.draws)

    def change_of_p(added):
        logits = np.array([LOGIT_OF_PASSAGE, LOGIT_OF_PASSAGE - added])
        p_with_look, p_without_look = mean_probability(draws, logits)
        return p_with_look - p_without_look

    too_little, enough = -1.0, added_in_six
    for _ in range(60):
        middle = (too_little + enough) / 2
        mean_change = 0.6 * change_of_p(added_in_six) + 0.4 * change_of_p(middle)
        if mean_change > wanted_change:
            enough = middle
        else:
            too_little = middle
    return too_little


def test_a_change_is_rounded_alike_in_sentence_and_reasons():
    """Look changes the probability by .00997: tables round it to .0100, from which on it is a reason."""
    added_in_four = added_in_four_seconds_for_change(0.00997, added_in_six=0.3)
    look_adds = [0.3] * 6 + [added_in_four] * 4
    film = with_passage(added_to_logit={"Look": look_adds}, seen_with_p={"Look": 0.9})
    segment = film.segments().iloc[0]
    # In the table of passages
    (look,) = [reason for reason in reasons(segment) if reason.concept == "Look"]
    assert round(look.change, 4) == 0.01

    # In the claim on the passage
    moving = [reason.what for reason in passage(film.model(), segment).reasons if reason.moves]
    assert "Look" in moving
    # In the sentence on all passages
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
        speaks_for_film = change >= LEAST_CHANGE
        share = seconds[is_seen & speaks_for_film].sum() / seconds.sum()
        mean_change = np.average(change, weights=seconds)
        by_concept[concept.name] = ShareAndChange(share, mean_change)
    return by_concept


@given(films())
def test_a_concept_is_named_if_it_is_seen_and_matters_half_the_time(film):
    """Both must hold.

    It is seen and raises the probability in half of the marked time, and its mean change is .01 or more.
    """
    claim = reaching_passages(film, film.model(), film.segments())
    if claim is None or not claim.number:
        return
    named = {concept.name for concept in claim.concepts}
    for name, share_and_change in shares_and_changes(film).items():
        if not share_and_change.is_at_a_bound:
            assert (name in named) == share_and_change.is_named


def test_concepts_are_named_by_what_they_add_while_seen():
    """Body is seen in six seconds and adds more in them than Look does in all ten."""
    film = with_passage(
        added_to_logit={"Look": 0.5, "Body": 1.0},
        seen_with_p={"Look": 0.9, "Body": np.repeat([0.9, 0.1], [6, 4])},
    )
    assert concepts_mostly_seen(film) == ["Body", "Look"]


def test_concepts_that_add_as_much_are_named_in_the_codebooks_order():
    """The first and the third concept add 1 each, and the second adds .5: it is named last."""
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
    """All rows of the film are black, credits, unread or unlike training.

    Title and share give the same reason.
    """
    film = without_probability(flag_of_all_rows)
    (title,) = claims_of_kind(film, kinds.Title)
    assert title.conditions == (reason,)
    (share,) = claims_of_kind(film, kinds.ExpectedShare)
    assert share.conditions == (kinds.REFUSED, reason)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("flag", "reason"), WHY_NOTHING.items())
def test_a_page_gives_one_reason_why_nothing_is_predicted(flag, reason, language):
    """Three places of a page say why: the warning, the list of passages and the figure of their number."""
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
    """Of several reasons the one is given that says most on the model: it met clips unlike its training."""
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
    """No passage was looked for: 0 would say that there are none."""
    film = invented_film(unlike_parts=((0.0, 1.0),))
    assert reaching_passages(film, film.model(), film.segments()) is None
    assert claims_of_kind(film, kinds.MarkedPassages) == []


@pytest.mark.parametrize(("n_models", "is_named"), [(1, False), (2, True)])
def test_of_several_models_a_sentence_names_the_one_that_marks(n_models, is_named):
    """With one model there is nothing to confuse it with, and its name is left out."""
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
    """Where all windows are judged nothing is estimated, and so nothing is uncertain."""
    counted = share_of_all_25_windows()
    assert counted.interval is None
    assert counted.has(ALL_JUDGED)
    assert counted.time == kinds.ClaimTime(part="content", seconds=90.0)


def test_a_share_that_is_estimated_from_some_windows_has_an_interval():
    """25 windows of a longer film are judged, so that the share is uncertain."""
    estimated = share_estimated_from_25_of_more_windows()
    assert estimated.interval is not None
    assert not estimated.has(ALL_JUDGED)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_on_a_counted_share_has_no_interval(language):
    """6 of 25 windows are positive, .24. The share is counted, so that it stands once, without "95 %"."""
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


def test_the_sentence_on_groups_has_their_shares():
    """The 1970s have no share, and so are not in the sentence."""
    sentence = phrases.groups_sentence(claims_of_groups(GROUPS_OF_DECADES), Words("en"))
    assert "30% [20%, 42%]" in sentence  # of the 1950s: .304 [.201, .418]
    assert ">99% [90%, >99%]" in sentence  # of the 1960s: .995 [.9, .9999]
    assert "70s" not in sentence


def test_the_sentence_on_groups_says_that_unsure_windows_are_left_out():
    """Of the three decades only the 1960s have windows of which the judge was not sure."""
    claims = claims_of_groups(GROUPS_OF_DECADES)
    fifties, sixties, seventies = claims
    assert sixties.has(kinds.NOT_SURE)
    assert not fifties.has(kinds.NOT_SURE)
    assert not seventies.has(kinds.NOT_SURE)
    assert Words("en")["unsure_left_out"] in phrases.groups_sentence(claims, Words("en"))


def test_a_share_of_several_judges_is_the_mean_of_those_who_were_sure():
    """A window of which AB is sure and CD is not counts as AB judged it.

    One of which none is sure is left out.
    """
    groups = GROUPS_OF_DECADES.assign(judges="AB, CD")
    sentence = phrases.groups_sentence(claims_of_groups(groups), Words("en"))
    assert "without windows of which none of its judges was sure" in sentence
    assert "window by window, over those who were sure of it" in sentence


def with_condition(claim, condition):
    """Return the claim with one more condition."""
    return replace(claim, conditions=(*claim.conditions, condition))


def test_the_sentence_on_groups_names_all_judges_of_their_films():
    """AB and CD judged the 1950s, AB alone the others: the shares are not of one panel."""
    groups = GROUPS_OF_DECADES.assign(judges=["AB, CD", "AB", "AB"])
    claims = [with_condition(claim, kinds.OTHER_JUDGES) for claim in claims_of_groups(groups)]
    sentence = phrases.groups_sentence(claims, Words("en"))
    assert "(in all AB and CD; not every film has the same judges)" in sentence


def test_a_group_without_a_share_says_why():
    """One of three films of the 1970s is judged, which is too few."""
    *_, seventies = claims_of_groups(GROUPS_OF_DECADES)
    assert seventies.number is None
    assert phrases.sentence(seventies, Words("en")) == "1970s: 1 of 3 films judged"


@pytest.mark.parametrize(("judges", "verb"), [("AB", "marquerait"), ("AB, CD", "marqueraient")])
def test_the_french_verb_is_singular_of_one_judge_and_plural_of_two(judges, verb):
    """As in "AB marquerait comme S (Sûr) 30 % des ..."."""
    groups = GROUPS_OF_DECADES.head(1).assign(judges=judges)
    sentence = phrases.groups_sentence(claims_of_groups(groups), Words("fr"))
    assert f" {verb} comme" in sentence
