"""No pattern takes time that grows with the square of a text, whatever the text."""

import math
import re
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import pytest

from obygaze_features.file_kinds import XML_PROLOGUE
from tests.patterns import ALL, Shape, Use, shapes_for, texts_like_patterns, uses

pytestmark = pytest.mark.long

FEW_UNITS, UNITS = 18, 2000
"""How many times a unit of text, such as "a ", is repeated to look for exponential and for quadratic time."""
QUICK_S = 0.002
"""CPU seconds that linear patterns stay below at `UNITS` units; quadratic ones take tens of milliseconds."""
MAX_CHARACTERS = 100_000
MAX_RATIO = 3.0
"""Of the time for twice as many units to that for `UNITS`; 4 is quadratic, 2 is linear."""
REPEATS = 3
"""A time is the least of so many, so that what else the machine does counts little."""


def _work(use: Use, text: str) -> Callable[[], object]:
    """Return what applies a pattern to a text as the packages do."""
    subject = text.encode("utf-8", "replace") if isinstance(use.pattern.pattern, bytes) else text
    if use.method == ALL:
        return lambda: deque(use.pattern.finditer(subject), 0)
    return lambda: getattr(use.pattern, use.method)(subject)


def _cpu_s(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the least CPU time of some repeats, in seconds."""
    took = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        took.append(time.thread_time() - start)
    return min(took)


def slow_shape(use: Use) -> tuple[Shape, float] | None:
    """Return the first shape on which a pattern is slower than linear, with the ratio of its times."""
    for shape in shapes_for(use.pattern):
        if _is_slow(use, shape, FEW_UNITS, QUICK_S):
            return shape, math.inf
        # Whatever is quadratic and takes QUICK_S at UNITS takes a 16th of it at a quarter of them.
        if not _is_slow(use, shape, UNITS // 4, QUICK_S / 16) or not _is_slow(use, shape, UNITS, QUICK_S):
            continue
        ratio = _ratio_of_twice_the_text(use, shape)
        if ratio > MAX_RATIO:  # the machine may be busy: look again
            ratio = min(ratio, _ratio_of_twice_the_text(use, shape))
        if ratio > MAX_RATIO:
            return shape, ratio
    return None


def _ratio_of_twice_the_text(use: Use, shape: Shape) -> float:
    """Return the time that a pattern takes on a text of twice as many units, over that on the shorter one."""
    n = min(UNITS, MAX_CHARACTERS // len(shape.unit))
    once = _cpu_s(_work(use, shape.text(n)), REPEATS)
    twice = _cpu_s(_work(use, shape.text(2 * n)), REPEATS)
    return twice / once


def _is_slow(use: Use, shape: Shape, n: int, limit_s: float) -> bool:
    """Return whether a pattern takes longer than a limit on n units, more than once."""
    work = _work(use, shape.text(min(n, MAX_CHARACTERS // len(shape.unit))))
    return _cpu_s(work) > limit_s and _cpu_s(work, REPEATS) > limit_s


KNOWN_HIDDEN = {
    "obygaze_features.backbones.checkpoint": "networks.toml, here too",
    "obygaze_features.backbones.xclip_lsmdc_network": "a name of ours, escaped",
    "obygaze_features.extraction.job_scripts": "lines of our own scripts, by an option's letters",
    "obygaze_features.extraction.sbatch_options": "forms of options that a person types",
    "obygaze_features.file_kinds": "file_kinds.toml, here too",
    "obygaze_features.manifest.spans.formats": "formats.toml, here too",
    "obygaze_features.manifest.spans.headings": "an annotator's name, escaped",
    "obygaze_features.manifest.spans.instant": "in a constant, here too",
    "obygaze_features.manifest.spans.sources": "kinds.toml, here too",
    "obygaze_features.manifest.spans.tool_tables": "kinds.toml, here too",
    "obygaze_features.text_records": "two line ends of two bytes",
    "obygaze_features.video.boxes": "constants that are here too, one or the other",
    "obygaze_features.video.file_facts": "a name of DVDs",
    "obygaze_features.video.late_streams": "classes of single bytes",
    "obygaze_features.video.stills": "a constant's keys, here too",
    "obygaze_features.video.stream": "a line of FFmpeg",
    "obygaze_models.reduction": "forms of a rule, whose numbers have at most nine digits",
}
"""Modules that make patterns while they run, and of what."""


class Patterns(NamedTuple):
    """The patterns of all packages, and the places of those that are made while the program runs."""

    uses: list[Use]
    hidden: list[str]


@pytest.fixture(scope="module")
def patterns() -> Patterns:
    return Patterns(*uses())


def test_no_pattern_takes_time_that_grows_with_the_square_of_a_text(patterns):
    """Patterns are the regular expressions of our packages, each with the method it is used with.

    `slow_shape` times a pattern on texts of many repeats of what it asks for, and on texts twice as long. It
    returns the kind of text on which time grows with the square of the length, or None.
    """
    use_of_pattern = {(use.pattern, use.method): use for use in patterns.uses}

    slow = {}
    for use in use_of_pattern.values():
        shape = slow_shape(use)
        if shape is not None:
            slow[f"{use.place} ({use.method})"] = shape
    assert not slow


def test_each_module_that_makes_regular_expressions_while_it_runs_is_in_the_list_of_those_looked_at(patterns):
    """Another test times the regular expressions of the code on long texts, as one could take for ever.

    It can time those that are constants of modules (`patterns.uses`, more than 200). An expression that a
    module makes while it runs, as of a name in a file, is hidden from it (`patterns.hidden`). A person has
    looked at each such module: KNOWN_HIDDEN lists them, with what the expressions are made of.
    """
    modules_with_hidden_patterns = {place.partition(":")[0] for place in patterns.hidden}

    assert modules_with_hidden_patterns - KNOWN_HIDDEN.keys() == set()
    assert len(patterns.uses) > 200


def test_every_pattern_in_a_table_of_facts_is_among_those_that_are_tried(patterns):
    """Other tests try every regular expression of the code on long texts, for one that takes for ever.

    `patterns.uses` are those expressions, as they are found in the running program. Tables such as
    file_kinds.toml hold some as text. Each of these texts must be a part of an expression that is tried, or
    it would be overlooked. In such a text "{xml}" stands for the prologue of XML.
    """
    tried_expressions = []
    for use in patterns.uses:
        expression = use.pattern.pattern
        tried_expressions.append(
            expression.decode("latin-1") if isinstance(expression, bytes) else expression
        )
    texts_in_tables = [text.replace("{xml}", XML_PROLOGUE) for text in texts_like_patterns()]

    def is_tried(text):
        return any(text in expression for expression in tried_expressions)

    not_tried = [text for text in texts_in_tables if not is_tried(text)]

    assert not_tried == []
    assert len(texts_in_tables) > 30  # else patterns would be written in another way


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[|;\s]*player #\d+ *:", "finditer"),
        (r"<c [^>]*?r=\"([A-Z]{1,3})", "finditer"),
        (r"\b[A-Za-z][A-Za-z0-9+.-]*:/[^/\s@]+@", "finditer"),
        (r"#.*offset: *(-?\d+)", "search"),
        (r'\A[^\0]*"annotations"\s*:\s*\[[^\]]*"segment"', "search"),
        (r".* - .*", "fullmatch"),
        (r"(?:a|a)*b", "match"),
        (r"\r*\n|\r", "finditer"),
    ],
)
def test_a_slow_pattern_is_found(pattern, method):
    """`slow_shape` finds a kind of text on which a pattern takes time by the square of the length, or more.

    Each of these patterns has such a text. A match that fails at its end is tried again from one letter later
    on, or, as for (?:a|a)*b, in another way. ("finditer" stands for all methods that look for every match.)
    """
    use = Use("planted", re.compile(pattern), method)

    assert slow_shape(use) is not None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r'"[^"]*+"', "finditer"), (r"[a-z]{1,9}:", "finditer"), (r".*x", "match"), (r"a*b", "match")],
)
def test_a_pattern_that_takes_time_in_proportion_to_the_text_is_not_called_slow(pattern, method):
    """Each gives up soon or never goes back: `*+` keeps what it took, {1,9} is short, `match` tries once."""
    use = Use("planted", re.compile(pattern), method)

    assert slow_shape(use) is None
