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
from obygaze_film.claims.of_film import counted_passages
from obygaze_film.claims.of_judgements import judged_share
from obygaze_film.exchange import export
from obygaze_film.film_groups import FilmComparison
from obygaze_film.judged_rate import FilmRates, kappa_interval
from obygaze_film.page import film_page
from obygaze_film.positive import Meaning, Positive
from obygaze_film.schema import CorrectedRate, JudgesAgreement
from obygaze_models.prediction import mean_probability
from tests.film.page.invented import CONCEPTS, invented_film, with_model
from tests.film.saying import first_sentence

SURE = Positive((Meaning("S", "Sure", ""),), is_concept=False, otherwise="")

ROOM = Path(obygaze_film.__file__).parent

MODULES = {
    ".".join(path.relative_to(ROOM.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOM.rglob("*.py")
}


# --- where sentences come from
# ---------------------------------------------------------------------------
def run_time_nodes(path):
    """Give the nodes of a module but for what only type checkers read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for part in node.body:
                typed |= {id(one) for one in ast.walk(part)}
    return [node for node in ast.walk(tree) if id(node) not in typed]


def imports_of(path, modules):
    """Name the modules that a module imports at run time, inside functions too."""
    found = set()
    for node in run_time_nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in modules else node.module)
    return found & modules.keys()


def test_what_is_recorded_and_computed_knows_no_words():
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
    writers = ("obygaze_film.claims", "obygaze_film.page")
    for name in names:
        imported = imports_of(MODULES[f"obygaze_film.{name}"], MODULES)
        assert not [module for module in imported if module.startswith(writers)], name


WRITERS = (
    *("number", "numbers", "signed", "difference", "points", "points_text", "probability", "band", "spoken"),
    *("share", "shares", "shares_of_whole", "apart", "duration", "durations", "seconds"),
)
"""Methods of `Words` that write numbers of claims."""

OTHER_OWNERS = {
    "calibration",  # Calibration.probability and band
    "fitted",
    "row",  # TableRow.number
    "time",  # FilmTime.share
}
"""What has methods of the same names, which return numbers and no texts."""

SHARES = {"share", "shares", "p", "p_low", "p_high", "expected", "kappa", "usual_p", "contribution", "worth"}
"""Names of numbers that claims hold."""

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

DECIMALS = re.compile(r"\.\d+[a-zA-Z%]|[eEfFG%]$|\{")
"""Formats of decimals, shares, and such as are put together while the program runs."""

PERCENT_FORMAT = re.compile(r"%[-+ #0-9.]*[eEfFgGdi]")


def owner_of(node):
    """Name what a method is called of: the last part of its name."""
    return ast.unparse(node).rpartition(".")[2].partition("[")[0]


def rounds(node):
    """Whether an expression rounds a number, or makes a share of one."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and owner_of(one.func) in {"round", "rounded", "around", "rint"}:
            return True
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult | ast.Div):
            factors = {ast.unparse(factor) for factor in (one.left, one.right)}
            if factors & {"100", "100.0"}:
                return True
    return False


def is_share(node):
    """Whether an expression is a number that claims hold, by its name."""
    name = node.slice.value if is_cell(node) else owner_of(node)
    if isinstance(node, ast.Attribute) and "claim" in owner_of(node.value):
        return name == "number" or name in SHARES
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and name in SHARES


def is_cell(node):
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def is_filled(node):
    """Whether a call fills a text with values, or makes a text of one."""
    return owner_of(node.func) in {"say", "counted", "said", "said_counted", "format", "str", "repr"}


def fills_number(call):
    """Whether a call fills a text with such a number, or makes a text of one."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return is_filled(call) and any(rounds(value) or is_share(value) for value in values)


def is_formatted(part):
    """Whether a part of an f-string is written with decimals, rounded, or the number of a claim."""
    parts = [] if part.format_spec is None else part.format_spec.values
    spec = "".join(text.value if isinstance(text, ast.Constant) else "{}" for text in parts)
    return bool(DECIMALS.search(spec)) or rounds(part.value) or is_share(part.value)


def calls_function(call):
    """Whether a call of a function writes such a number."""
    is_of_words = call.func.id == "getattr" and owner_of(call.args[0]) in {"words", "Words"}
    return call.func.id in {"format", "rounded"} or is_of_words or fills_number(call)


def calls_method(call):
    """Whether a call of a method writes such a number."""
    name, owner = call.func.attr, call.func.value
    if name in WRITERS and name != "difference":  # which sets and tables have too
        return owner_of(owner) not in OTHER_OWNERS
    has_decimals = re.search(r"\{\w*:[^}]*(\.\d|[eEfFgG%]\})", ast.unparse(owner))
    is_written = name.startswith("format_float") or (name == "format" and has_decimals)
    return bool(is_written) or fills_number(call)


def writes_number(node):
    """Whether a node writes a number with decimals, as a percentage, or by a method of `Words`."""
    is_written = False
    if isinstance(node, ast.FormattedValue):
        is_written = is_formatted(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        is_written = isinstance(node.left, ast.Constant) and PERCENT_FORMAT.search(str(node.left.value))
    elif isinstance(node, ast.Attribute):
        is_written = node.attr in WRITERS and owner_of(node.value).lower() in {"words", "english", "w"}
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_written = calls_function(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_written = calls_method(node)
    return bool(is_written)


def formatted_in(path):
    """Give the places of a module that write such a number."""
    return [ast.unparse(node) for node in run_time_nodes(path) if writes_number(node)]


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
    "said('x', share=row['share'])",
    "view.words.durations(1.0, 2.0)",
)
"""Ways to write a number into a sentence that must be noticed."""


@pytest.mark.parametrize("line", BREACHES)
def test_a_number_in_a_sentence_is_noticed_however_it_is_written(tmp_path, line):
    breach = tmp_path / "breach.py"
    breach.write_text(line)
    assert formatted_in(breach)


def test_no_other_module_of_films_writes_such_a_number_into_a_sentence():
    found = {name: formatted_in(path) for name, path in MODULES.items()}
    outside = {
        name for name, places in found.items() if places and not name.startswith("obygaze_film.claims")
    }
    assert outside == MAY_FORMAT.keys()
    texts = [place for name in MAY_FORMAT for place in found[name] if "words." in place]
    assert all("words.seconds" in place for place in texts)


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
    """A cell may hold a number alone; `w.say` and joined texts may not."""
    for path in (ROOM / "page" / "assets").glob("*.j2"):
        text = path.read_text(encoding="utf-8")
        for inside in re.findall(r"w\.say\(.*?\)\s*(?:}}|%})", text):
            assert not re.search(rf"w\.({'|'.join(WRITERS)})\(", inside), (path.name, inside)
        assert not re.search(r"(:\.\d|%\.\d|\d%\").*format", text), path.name
        assert not re.search(rf"~\s*w\.({'|'.join(WRITERS)})\(|w\.({'|'.join(WRITERS)})\([^)]*\)\s*~", text)


def test_each_kind_of_claim_has_one_function_and_a_name_of_its_own():
    every = [kind for kind in vars(kinds).values() if isinstance(kind, type) and issubclass(kind, FilmClaim)]
    every = [kind for kind in every if kind not in (FilmClaim, kinds.ModelClaim)]
    assert set(phrases.SENTENCES) == set(every)
    assert len(set(phrases.SENTENCES.values())) == len({kind.KIND for kind in every}) == len(every)
    for kind in every:
        assert {"who", "what", "time", "number", "interval", "conditions"} <= {
            one.name for one in fields(kind)
        }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_of_a_film_is_a_document_and_a_sentence(language):
    film = invented_film(n_rows=60, duration_s=600.0)
    claims = film_claims(film)
    for claim in claims:
        found = document(claim)
        assert (found["claim"], found["number"]) == (claim.KIND, claim.number)
        assert phrases.sentence(claim, Words(language))


# --- numbers of films
# ---------------------------------------------------------------------------
@st.composite
def films(draw):
    """A film of any hatched, black and credited share, whose concepts weigh either way, at any threshold."""
    hatched = draw(st.floats(0, 1))
    black = draw(st.floats(0, 0.5))
    film = invented_film(
        n_rows=draw(st.integers(12, 60)),
        duration_s=draw(st.sampled_from([47.0, 600.0, 5400.0])),
        seed=draw(st.integers(0, 50)),
        unlike=((0.0, hatched),) if hatched else (),
    )
    table = film.table.copy()
    rng = np.random.default_rng(draw(st.integers(0, 50)))
    names = [concept.name for concept in film.model().concepts]
    weights = draw(st.lists(st.floats(-2, 2), min_size=len(names), max_size=len(names)))
    table["logit"] = table["base_contribution"].fillna(-2.1)
    for name, weight in zip(names, weights, strict=True):
        added = weight * table[f"{name}_value"]
        table["logit"] += added
        table[f"{name}_contribution"] = np.where(table["p"].isna(), np.nan, added)
    is_black = rng.random(len(table)) < black
    table.loc[is_black, "flags"] = [f"{flags};black".strip(";") for flags in table.loc[is_black, "flags"]]
    shown = table["p"].notna() & ~is_black
    draws = np.array(film.model().calibration.draws)
    p = np.where(shown, mean_probability(draws, table["logit"].to_numpy()), np.nan)
    table["p"], table["p_low"], table["p_high"] = p, p * 0.9, 1 - (1 - p) * 0.9
    concepts = [changed(one, usual=draw(st.floats(-0.5, 0.5))) for one in film.model().concepts]
    # Where a concept is at its usual value it adds nothing.
    for concept, weight in zip(concepts, weights, strict=True):
        off = weight * concept.usual
        table[f"{concept.name}_contribution"] -= off
        table["base_contribution"] += off
    threshold_p = draw(st.floats(0.05, 0.95))
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=threshold_p)


def numbers_in(text, words):
    """Give the numbers of a sentence as written, the language's point and percent apart."""
    return re.findall(rf"\d+(?:\{words['decimal']}\d+)?", text)


def parts_by_hand(film):
    """Seconds of a film that are judged, that are not though they have content, and black or credits."""
    rows = film.rows()
    seconds = (rows["end_s"] - rows["start_s"]).to_numpy()
    is_nothing = rows["flags"].str.contains("black|credits").to_numpy()
    has_p = rows["p"].notna().to_numpy()
    masks = (has_p & ~is_nothing, ~has_p & ~is_nothing, is_nothing)
    return [float(seconds[mask].sum()) for mask in masks]


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_the_parts_of_the_time_add_up_and_so_do_their_shares(film, language):
    words, parts = Words(language), parts_by_hand(film)
    (claim,) = [one for one in film_claims(film) if isinstance(one, kinds.JudgedTime)]
    assert [claim.judged_s, claim.unlike_s, claim.nothing_s] == pytest.approx(parts, abs=1e-6)
    assert sum(parts) == pytest.approx(film.record.duration_s)
    said, shares = phrases.sentence(claim, words), words.shares_of_whole(parts)
    for text in (*words.durations(*parts), *shares):
        assert text in said
    if not any(re.search("[<>]", share) for share in shares):  # "<1%" is no number to add
        assert sum(int(found) for share in shares for found in re.findall(r"\d+", share)) == 100


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_the_first_sentence_has_the_numbers_of_time_and_passages_and_no_others(film, language):
    words, rows = Words(language), film.rows()
    judged_s, unlike_s, nothing_s = parts_by_hand(film)
    sentence = first_sentence(film, language=language)
    assert bool(sentence) == (judged_s > 0)
    if not sentence:
        return
    seconds = (rows["end_s"] - rows["start_s"]).to_numpy()
    is_judged = rows["p"].notna() & ~rows["flags"].str.contains("black|credits")
    passages = film.segments().query("reaches == 1").to_dict("records")
    marked_s = called_s = 0.0
    for passage in passages:
        is_inside = (rows["start_s"] >= passage["start_s"]) & (rows["end_s"] <= passage["end_s"])
        marked_s += seconds[is_judged & is_inside].sum()
        called_s += seconds[is_judged & is_inside & (rows["p"] >= film.model().threshold_p)].sum()
    judged, marked, nothing, called = words.durations(judged_s, marked_s, nothing_s, called_s)
    expected = [judged]
    if unlike_s + nothing_s >= 0.5:
        expected.append(words.shares_of_whole([judged_s, unlike_s, nothing_s])[0])
    if nothing_s >= 0.5:
        expected.append(nothing)
    if passages:
        expected.append(marked)
    if called != marked:
        expected.append(called)
    if len(passages) > 1:
        expected.append(str(len(passages)))
    # Concepts come last, and in how much of the time each is seen: that is held elsewhere.
    (claim,) = [one for one in film_claims(film) if isinstance(one, kinds.MarkedPassages)]
    keys = [f"mostly{amount}{one}" for amount in ("", "_half", "_more") for one in ("", "_1")]
    of_concepts = max(sentence.find(words[key].split("{")[0]) for key in keys)
    before = sentence[:of_concepts] if claim.concepts else sentence
    given_numbers = [one for text in expected for one in numbers_in(text, words)]
    assert sorted(numbers_in(before, words)) == sorted(given_numbers)
    assert (unlike_s > 0.2 * (judged_s + unlike_s)) == (words["sentence_of_these"] in sentence)


def side_of(change, contribution):
    """The text of the side that a reason is on: of neither where the sign of its bar says otherwise."""
    if change * contribution < 0:
        return "why_both"
    return "why_for" if change > 0 else "why_against"


@settings(max_examples=40, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_each_reason_has_the_direction_and_the_numbers_of_the_raw_rows(film, language):
    words, rows, model = Words(language), film.rows(), film.model()
    draws = np.array(model.calibration.draws)
    usual = {concept.name: concept for concept in model.concepts}
    for claim in film_claims(film):
        if not isinstance(claim, kinds.Passage):
            continue
        inside = rows[(rows["start_s"] >= claim.time.start_s) & (rows["end_s"] <= claim.time.end_s)]
        inside = inside[inside["p"].notna() & ~inside["flags"].str.contains("black|credits")]
        weights = (inside["end_s"] - inside["start_s"]).to_numpy()
        p = np.average(mean_probability(draws, inside["logit"].to_numpy()), weights=weights)
        assert claim.number == pytest.approx(p)
        assert words.probability(p) in phrases.passage_p(claim, words)
        for reason in claim.reasons:
            weighed = np.average(inside[f"{reason.what}_contribution"], weights=weights)
            value = np.average(inside[f"{reason.what}_value"], weights=weights)
            moved = inside["logit"] - inside[f"{reason.what}_contribution"]
            at_usual = np.average(mean_probability(draws, moved.to_numpy()), weights=weights)
            assert reason.contribution == pytest.approx(weighed, abs=1e-4)
            assert reason.number == pytest.approx(p - at_usual, abs=1e-4)
            values, known = inside[f"{reason.what}_value"], usual[reason.what]
            is_more, p_is_more = value > known.usual, reason.p > known.usual_p
            if reason.amount == "mixed":
                assert values.min() < known.usual < values.max()
                assert is_more != p_is_more or (weighed > 0) != (p > at_usual)
            else:
                assert reason.amount == ("more" if is_more else "less")
                if values.min() < known.usual < values.max() and abs(reason.p - known.usual_p) > 1e-4:
                    assert is_more == p_is_more
            said = phrases.sentence(reason, words)
            if abs(p - at_usual) < 0.0098:
                assert words.again(reason.what) not in said
            elif abs(p - at_usual) > 0.0102:
                side = side_of(p - at_usual, round(reason.contribution, 4))
                assert said.startswith(words.say(side, reasons="|").split("|")[0])
                assert words.say(f"why_{reason.amount}", concept=reason.what) in said
                assert reason.has(NEAR_CHANCE) == usual[reason.what].is_near_chance
                assert (words["why_near_chance"] in said) == reason.has(NEAR_CHANCE)
        reasons = {reason.what: reason for reason in claim.reasons}
        for concept in model.concepts:
            moved = inside["logit"] - inside[f"{concept.name}_contribution"]
            change = p - np.average(mean_probability(draws, moved.to_numpy()), weights=weights)
            is_seen = np.average(inside[f"{concept.name}_p"], weights=weights) >= concept.threshold_p
            if abs(change) > 0.0102:
                known = reasons[concept.name]
                phrase = words.say(f"why_{known.amount}", concept=known.what)
                assert phrase in phrases.reasons_sentence(claim.reasons, words)
                shortened = phrases.reasons_sentence(claim.reasons, words, most=1)
                side = side_of(change, reasons[concept.name].contribution)
                moving = [one for one in claim.reasons if one.moves]
                of_side = [one for one in moving if side_of(one.number, one.contribution) == side]
                more = words.counted("more_concepts", len(of_side) - 1)
                assert (phrase in shortened) or more in shortened
            if is_seen:
                assert reasons[concept.name].is_present
            assert (concept.name in claim.present) == is_seen


@settings(max_examples=20, deadline=None)
@given(films(), st.sampled_from(LANGUAGES))
def test_a_passages_length_is_its_own_whatever_its_ends_are_rounded_to(film, language):
    words = Words(language)
    for claim in film_claims(film):
        if isinstance(claim, kinds.Passage):
            length = claim.time.end_s - claim.time.start_s
            assert claim.time.seconds == pytest.approx(length)
            said = phrases.passage_length(claim, words)
            assert words.durations(length, claim.judged_s)[0] in said


@pytest.mark.parametrize("hatched", [0.25, 0.5, 0.8])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_share_is_refused_by_the_share_that_the_rule_is_of(hatched, language):
    """More than a fifth of what is neither black nor credits, not of the film, of which a part is credits."""
    film = invented_film(n_rows=400, duration_s=600.0, unlike=((0.0, hatched),))
    words, rows = Words(language), film.rows()
    seconds = rows["end_s"] - rows["start_s"]
    has_content = rows["flags"] != "credits"
    share = seconds[rows["flags"] == "unlike"].sum() / seconds[has_content].sum()
    (claim,) = [one for one in film_claims(film) if isinstance(one, kinds.ExpectedShare)]
    assert claim.has(kinds.LITTLE_JUDGED)
    assert claim.unlike == pytest.approx(share)
    assert words.share(share) != words.share(seconds[rows["flags"] == "unlike"].sum() / seconds.sum())
    assert words.share(share) in phrases.sentence(claim, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_mean_of_staging_says_of_how_many_windows_it_is(language):
    words = Words(language)
    film = invented_film(n_rows=60, duration_s=600.0)

    def mean_of(*values):
        starts = 8.0 * np.arange(len(values))
        variables = pd.DataFrame({"start_s": starts, "end_s": starts + 8.0, "camera": values})
        return of_film.staging_mean(replace(film, variables=variables), film.model(), "camera", 2)

    of_some = mean_of(0.1, 0.3, np.nan, np.nan, np.nan)
    of_all = mean_of(0.1, 0.3)
    assert (of_some.number, of_some.n_known, of_some.n_windows) == (0.2, 2, 5)
    assert numbers_in(phrases.sentence(of_some, words), words) == [words.number(0.2), "2", "5"]
    assert numbers_in(phrases.sentence(of_all, words), words) == [words.number(0.2)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_citation_of_a_place_below_the_threshold_says_so(language):
    film, words = invented_film(n_rows=60, duration_s=600.0), Words(language)
    cited = {}
    for claim in film_claims(film):
        if isinstance(claim, kinds.Passage):
            text = phrases.citation_sentence(claim, "S", "m", None, words)
            cited[claim.name] = words["below"] in text
    assert {name: is_below for name, is_below in cited.items() if not name.startswith("w")}
    assert cited == {name: name.startswith("w") for name in cited}


# --- numbers of judges
# ---------------------------------------------------------------------------
@st.composite
def judged_alike(draw):
    """Calls of two judges on the same windows, from agreeing worse than chance to in all."""
    n = draw(st.integers(10, 60))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    share, agreement = draw(st.floats(0.05, 0.95)), draw(st.floats(0, 1))
    one = rng.random(n) < share
    other = np.where(rng.random(n) < agreement, one, ~one)
    return one, other


def kappa_of(one, other):
    """Cohen's kappa by its definition; NaN where both say one thing of all."""
    observed = (one == other).mean()
    chance = one.mean() * other.mean() + (~one).mean() * (~other).mean()
    return (observed - chance) / (1 - chance) if chance < 1 else np.nan


@settings(max_examples=60, deadline=None)
@given(judged_alike(), st.sampled_from(LANGUAGES))
def test_what_is_said_of_judges_are_the_numbers_of_their_calls(calls, language):
    one, other = calls
    kappa = kappa_of(one, other)
    interval = kappa_interval(one, other)
    known = [None if np.isnan(value) else value for value in interval]
    pair = JudgesAgreement(["AB", "CD"], len(one), int((one == other).sum()), *known)
    value, low, high = float((one.mean() + other.mean()) / 2), 0.1, 0.9
    panel = CorrectedRate(
        model="m", value=value, low=min(low, value), high=max(high, value), level=0.95, method="wilson",
        n=len(one), n_positive_by_all=int((one & other).sum()), n_rows=99, worth=None, expected=None,
        content_s=99.0,
        annotators=["AB", "CD"], positives=[int(one.sum()), int(other.sum())], agreement=[pair], positive="S",
    )  # fmt: skip
    found = FilmRates((panel,), (pair,))
    share, agreed = rate_claims(found)
    words = Words(language)
    line, told = phrases.sentence(share, words), phrases.sentence(agreed, words)
    assert words.share((one.mean() + other.mean()) / 2) in line
    assert {str(one.sum()), str(other.sum()), str(len(one))} <= set(numbers_in(line, words))
    assert {str((one == other).sum()), str(len(one))} <= set(numbers_in(told, words))
    assert words.share((one == other).mean()) in told
    if np.isnan(kappa):
        assert words["undefined"] in told
    else:
        assert words.number(kappa) in told
    doubts = {
        UNDEFINED: np.isnan(kappa),
        AGREE_LESS: interval.high < 0,
        AGREE_BY_CHANCE: interval.low <= 0 <= interval.high,
    }
    for doubt, holds in doubts.items():
        assert share.has(doubt) == agreed.has(doubt) == holds
        assert (
            (words[phrases.PANEL_DOUBTS[doubt]] in line)
            == (words[phrases.PAIR_DOUBTS[doubt]] in told)
            == holds
        )
    # The page's note carries the kappa too.
    note = phrases.judged_share_note(share, [agreed], words)
    assert told in note


@settings(max_examples=20, deadline=None)
@given(films())
def test_the_edges_of_the_band_are_curves_that_are_counted_by_the_same_rule(film):
    found = [one for one in film_claims(film) if isinstance(one, kinds.MarkedPassages)]
    for claim in found:
        assert claim.interval is None
        counts = {"p": claim.number, "p_low": claim.at_low_edge, "p_high": claim.at_high_edge}
        for curve, count in counts.items():
            drawn = replace(film, table=film.table.assign(p=film.table[curve]))
            assert (drawn.segments()["reaches"] == 1).sum() == count


def with_passage(contributions, p_of):
    """Plant a passage of ten rows of a second, alike but for what concepts add and how likely they are.

    `contributions` and `p_of` have a list of ten for a concept; other concepts add nothing.
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
    concepts = [changed(one, usual=0.0, usual_p=0.2, threshold_p=0.5) for one in model.concepts]
    return with_model(replace(film, table=table), concepts=concepts, threshold_p=float(p[10]) - 0.01)


def frequent_concepts(film):
    """Name the concepts of the sentence on passages."""
    claim = counted_passages(film, film.model(), film.segments())
    assert claim.number == 1
    return [concept.name for concept in claim.concepts]


def test_a_concept_is_named_for_the_time_in_which_it_is_seen_not_for_its_mean_over_a_passage():
    four, six = np.repeat([0.98, 0.4], [4, 6]), np.repeat([0.6, 0.02], [6, 4])
    film = with_passage({"Body": 1.0, "Look": 1.0}, {"Body": four, "Look": six})
    assert four.mean() > 0.5 > six.mean()
    assert frequent_concepts(film) == ["Look"]
    against = with_passage({"Look": np.repeat([1.0, -1.0], [4, 6])}, {"Look": 0.9})
    assert frequent_concepts(against) == []


def test_a_concept_that_is_for_it_in_most_of_the_time_and_against_it_over_all_of_it_is_not_named():
    """Planted: it adds a little in six of ten seconds, and takes away much in the others."""
    weak = with_passage({"Look": np.repeat([0.3, -2.0], [6, 4]), "Body": 1.0}, {"Look": 0.9, "Body": 0.9})
    assert frequent_concepts(weak) == ["Body"]


@settings(max_examples=30, deadline=None)
@given(films())
def test_each_concept_that_is_named_is_seen_and_for_it_in_half_of_the_time_and_no_other_is(film):
    model, rows = film.model(), film.rows()
    claim = counted_passages(film, model, film.segments())
    if claim is None or not claim.number:
        return
    marked = film.segments().query("reaches == 1")
    inside = np.zeros(len(rows), bool)
    for row in marked.to_dict("records"):
        inside |= ((rows["start_s"] >= row["start_s"]) & (rows["end_s"] <= row["end_s"])).to_numpy()
    rows = rows[inside & rows["p"].notna() & ~rows["flags"].str.contains("black|credits")]
    seconds = (rows["end_s"] - rows["start_s"]).to_numpy()
    draws, named = np.array(model.calibration.draws), {concept.name for concept in claim.concepts}
    for concept in model.concepts:
        without = rows["logit"] - rows[f"{concept.name}_contribution"]
        moved = rows["p"].to_numpy() - mean_probability(draws, without.to_numpy())
        is_seen = (rows[f"{concept.name}_p"] >= concept.threshold_p).to_numpy()
        share = seconds[is_seen & (moved >= 0.01)].sum() / seconds.sum()
        over_all = np.average(moved, weights=seconds)
        is_near = abs(share - 0.5) < 1e-9 or abs(over_all - 0.01) < 1e-9
        assert (concept.name in named) == (share >= 0.5 and over_all >= 0.01) or is_near


def test_concepts_of_one_effect_come_in_the_codebooks_order():
    names = [name for name, *_ in CONCEPTS][:3]
    film = with_passage({names[0]: 1.0, names[1]: 0.5, names[2]: 1.0}, dict.fromkeys(names, 0.9))
    assert frequent_concepts(film) == [names[0], names[2], names[1]]


# --- why nothing is predicted
# ---------------------------------------------------------------------------
WHY_NOTHING = {"black": ALL_NOTHING, "credits": ALL_NOTHING, "missing": ALL_UNREAD, "unlike": ALL_UNLIKE}


def without_probability(flags):
    """Plant a film without a probability, of rows with some flags."""
    film = invented_film(n_rows=30, duration_s=600.0)
    undefined = dict.fromkeys(("p", "p_low", "p_high"), np.nan)
    rate = changed(film.model().rate, value=None, counted_s=0.0)
    return with_model(replace(film, table=film.table.assign(flags=flags, **undefined)), rate=rate)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("flag", "reason"), WHY_NOTHING.items())
def test_every_door_gives_the_same_reason_why_nothing_is_predicted(flag, reason, language):
    film, words = without_probability(flag), Words(language)
    why = phrases.no_prediction_phrase(reason, words)
    title = next(one for one in film_claims(film) if isinstance(one, kinds.Title))
    share = next(one for one in film_claims(film) if isinstance(one, kinds.ExpectedShare))
    assert title.conditions == (reason,)
    assert share.conditions == (kinds.REFUSED, reason)
    page = film_page([film], language=language)
    assert page.count(why) == 3  # the warning, the list of passages and the figure of their number
    assert phrases.sentence(title, words) in page
    others = {of_other for of_other in WHY_NOTHING.values() if of_other != reason}
    for other in others:
        assert phrases.no_prediction_phrase(other, words) not in page
    assert phrases.no_prediction_phrase(reason, Words("en")) in export(film, "vtt").replace("\n", " ")


def test_a_film_that_is_black_and_unread_beside_it_was_not_read():
    half = ["black"] * 15 + ["missing"] * 15
    assert film_claims(without_probability(half))[0].conditions == (ALL_UNREAD,)
    half[-1] = "unlike"
    assert film_claims(without_probability(half))[0].conditions == (ALL_UNLIKE,)


def test_of_a_model_without_calibration_nothing_is_called_unlike():
    film = invented_film(n_rows=30, duration_s=600.0, unlike=())
    film = replace(film, table=film.table.assign(p=np.nan))
    film = with_model(film, calibration=None, threshold_p=None)
    judged = next(one for one in film_claims(film) if isinstance(one, kinds.JudgedTime))
    for language in LANGUAGES:
        said = phrases.unjudged_sentence(judged, Words(language))
        assert words_of_unlike(language) not in said


def words_of_unlike(language):
    """Give the end of the sentence on what cannot be judged."""
    return Words(language)["sure_unjudged"].split(" : " if language == "fr" else ": ")[1]


def test_a_film_of_which_nothing_is_judged_has_no_count_of_passages():
    film = invented_film(unlike=((0.0, 1.0),))
    assert counted_passages(film, film.model(), film.segments()) is None
    assert not [one for one in film_claims(film) if isinstance(one, kinds.MarkedPassages)]


def test_of_several_models_a_sentence_names_the_one_that_marks():
    film = invented_film(n_rows=60, duration_s=600.0)
    model = film.model()
    both = replace(film, record=changed(film.record, models=[model, changed(model, key="second")]))
    for shown, is_named in ((film, False), (both, True)):
        (claim,) = [one for one in film_claims(shown) if isinstance(one, kinds.MarkedPassages)]
        assert claim.is_one_of_several == is_named
        assert (model.key in phrases.sentence(claim, Words("en"))) == is_named


def test_a_share_that_is_counted_over_all_windows_has_no_interval():
    """AB judged all 25 windows, and 6 are positive; the same number estimated from a draw has one."""
    known = {
        "model": "m", "value": 0.24, "level": 0.95, "n": 25, "n_positive_by_all": 6, "n_rows": 25,
        "worth": None, "expected": None, "annotators": ["AB"], "positives": [6], "content_s": 90.0,
        "positive": "S",
    }  # fmt: skip
    counted = judged_share(CorrectedRate(low=0.24, high=0.24, method="census", **known))
    drawn = judged_share(CorrectedRate(low=0.1, high=0.4, method="difference", **known))
    assert counted.interval is None
    assert drawn.interval is not None
    assert counted.has(ALL_JUDGED)
    assert not drawn.has(ALL_JUDGED)
    assert counted.time == kinds.ClaimTime("content", 90.0)
    for language in LANGUAGES:
        words = Words(language)
        said = phrases.sentence(counted, words)
        assert said.count("24") == phrases.sentence(drawn, words).count("24") == 1
        assert "95" not in said
        note = phrases.judged_share_note(counted, [drawn], words)
        assert "–" not in note.split(".")[0]


def test_groups_say_the_numbers_of_their_table():
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
    claims = group_claims(compared)
    said = phrases.groups_sentence(claims, Words("en"))
    assert [place in said for place in ("30% [20%, 42%]", ">99% [90%, >99%]", "70s")] == [True, True, False]
    assert [claim.has(kinds.NOT_SURE) for claim in claims] == [False, True, False]
    assert Words("en")["unsure_left_out"] in said
    assert claims[2].number is None
    assert phrases.sentence(claims[2], Words("en")) == "1970s: 1 of 3 films judged"
