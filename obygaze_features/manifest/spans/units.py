"""Tell in which unit a column of times is, by its heading; a heading that leaves it open is asked about."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.headings import KNOWN_HEADINGS
from obygaze_features.manifest.spans.names import plain
from obygaze_features.templates import packaged

_FACTS: Final[Mapping[str, Mapping[str, Any]]] = packaged(__package__, "units.toml")

NO_UNIT: Final = "none"
"""The table of `units.toml` with words for what is no length of time."""

UNITS: Final = tuple(name for name in _FACTS if name != NO_UNIT)
"""Names of the units, as a person types them: s, ms, us, ns, cs, min, h, frames."""

FRAMES: Final = "frames"
"""The unit whose length only the rate tells."""

_SHORTEST_PART: Final = 4
"""Letters of a word that counts as a part of a longer one, as `bild` does in `Startbild`."""

_SHORTEST_TIME_WORD: Final = 3

_TIME_WORDS: Final = {
    known
    for column in ("start_s", "end_s", "duration_s")
    for known in KNOWN_HEADINGS[column]
    if len(known) >= _SHORTEST_TIME_WORD
}
"""Headings of times, behind which a short unit may stand without a blank."""

_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]*+)[)\]}]")
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")
"""Where a new word begins within a heading such as `startMillis`."""

_WORDS = re.compile(r"[^\W\d_]+")
_CLOCK = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,4}+(?:[:;.,][^\W\d_]{1,4}+)++")
"""The form of a clock, such as `hh:mm:ss`: parts of four letters at most, with signs between them."""

_PART_OF_CLOCK = re.compile(r"([:;.,]?)([^\W\d_]+)")
_PARTS: Final = {
    "h": "h", "hh": "h", "hhh": "h", "std": "h",
    "m": "m", "mm": "m", "min": "m", "mn": "m",
    "s": "s", "ss": "s", "sec": "s", "sek": "s",
    "f": "f", "ff": "f", "fr": "f", "ii": "f",
    "ms": "x", "msec": "x", "mmm": "x", "sss": "x", "cs": "x", "xx": "x", "xxx": "x",
}  # fmt: skip
"""Part of a clock as a heading spells it -> hours, minutes, seconds, frames, or decimals of a second (x)."""

_CLOCKS_AS_READ: Final = {
    "h:m:s",
    "m:s",
    "h:m:s:f",
    "h:m:s;f",
    "h:m:s.x",
    "h:m:s,x",
    "m:s.x",
    "m:s,x",
    "h:m:s.f",
}
"""Clocks that are read in this way without a heading that says it."""

_DECIMAL_SECONDS: Final = {"s.x", "s,x"}
"""Forms of seconds with decimals, such as `ss.msec`: numbers, and no clocks."""

_WHOLE_CLOCK: Final = {
    "h:m": "{}:00",
    "m:s:f": "00:{}",
    "m:s;f": "00:{}",
    "s:f": "00:00:{}",
    "s;f": "00:00:{}",
}
"""Clocks of a heading -> how their cells are written as clocks that are read: 1:30 of h:m is 1:30:00."""


class UnitOfHeading(NamedTuple):
    """What a heading says of the times below it.

    Attributes
    ----------
    unit
        The unit of numbers, one of `UNITS`; "" if the heading names none: then they are seconds.
    doubt
        What in the heading may say another unit, and is not known; "" if nothing does.
    whole_clock
        How clocks are completed that lack a part, as a template with `{}` for the cell; "" if they are whole.
    n_signs
        How many colons or semicolons such a clock has, before it is completed.
    unread_clock
        The clocks that the heading shows, if cells of that form would be read in another way; else "".
    is_stated
        Whether the unit is certain: it stands in brackets, or as a form such as `ss.ms`.
    """

    unit: str = ""
    doubt: str = ""
    whole_clock: str = ""
    n_signs: int = 0
    unread_clock: str = ""
    is_stated: bool = False

    def unit_beside(self, person_unit: str) -> str:
        """Return the unit of numbers where a person gives one too; "" if neither says it.

        The person's is for headings that leave the unit open, and for words such as `Startbild` that may mean
        something else. A unit in brackets, as in `Duration (min)`, stays; frames give way, as their seconds
        need a rate.
        """
        if self.is_stated and self.unit != FRAMES:
            return self.unit
        return person_unit or self.unit


@lru_cache(1 << 12)
def unit_of_heading(heading: str) -> UnitOfHeading:
    """Return in which unit times are, by the heading of their column.

    A unit in brackets counts first, then one among the other words. Where there is neither, a text in
    brackets that is not known is a doubt, and so are several units at once.

    Examples
    --------
    >>> [unit_of_heading(heading).unit for heading in ("Start (ms)", "startMillis", "Startbild", "Anfang")]
    ['ms', 'ms', 'frames', '']
    >>> unit_of_heading("Start (%)").doubt, unit_of_heading("Start (h:mm)").whole_clock
    ('%', '{}:00')
    """
    split = plain(_HUMP.sub(" ", heading))
    in_brackets = [bracket.strip(" .") for bracket in _BRACKETS.findall(split)]
    for text in _CLOCK.findall(split):
        form = _form_of_clock(text)
        if form:
            return _unit_of_clock(text, form)
    units = set[str]()
    for bracket in in_brackets:
        units |= _units_of_words(_WORDS.findall(bracket), are_in_brackets=True) | _units_by_signs(bracket)
    is_stated = bool(units)
    if not units:
        outside = _BRACKETS.sub(" ", split)
        units = _units_of_words(_WORDS.findall(outside), are_in_brackets=False) | _units_by_signs(outside)
    if len(units) == 1 and NO_UNIT not in units:
        return UnitOfHeading(unit=units.pop(), is_stated=is_stated)
    if units:
        return UnitOfHeading(doubt=", ".join(in_brackets) or heading.strip())
    unknown = [bracket for bracket in in_brackets if bracket]
    return UnitOfHeading(doubt=", ".join(unknown))


def _form_of_clock(text: str) -> str:
    """Return `h:m:s` for a text such as `hh:mm:ss`; "" for a text that is no form of a clock."""
    form = ""
    for sign, part in _PART_OF_CLOCK.findall(text):
        if part not in _PARTS:
            return ""
        form += sign + _PARTS[part]
    return form


def _unit_of_clock(text: str, form: str) -> UnitOfHeading:
    """Return what a heading says that shows the form of clocks.

    Parameters
    ----------
    text
        The form as the heading has it, such as `h:mm`.
    form
        Its parts, such as `h:m`.
    """
    if form in _DECIMAL_SECONDS:
        return UnitOfHeading(unit="s", is_stated=True)
    if form in _CLOCKS_AS_READ:
        return UnitOfHeading(doubt=text)
    if form in _WHOLE_CLOCK:
        return UnitOfHeading(
            doubt=text, whole_clock=_WHOLE_CLOCK[form], n_signs=len(re.findall("[:;]", form))
        )
    return UnitOfHeading(doubt=text, unread_clock=text)


def _units_of_words(words: Sequence[str], *, are_in_brackets: bool) -> set[str]:
    """Return the units that some words of a heading name.

    Parameters
    ----------
    words
        The words, as names are compared.
    are_in_brackets
        Whether they are in brackets, where short words count wherever they stand. Elsewhere only the last
        word may be short, or the first one, if it has two letters or more.
    """
    units = set[str]()
    for place, word in enumerate(words):
        is_last = place == len(words) - 1
        is_first = place == 0 and len(word) > 1
        units |= _units_of_word(word, may_be_short=are_in_brackets or is_last or is_first)
    return units


def _units_of_word(word: str, *, may_be_short: bool) -> set[str]:
    """Return the unit that a word names, or two that its ends name; the longest name in it counts."""
    for name, facts in _FACTS.items():
        if word in facts["words"] or (may_be_short and word in facts["short"]):
            return {name}
        if any(word == time_word + unit for time_word in _TIME_WORDS for unit in facts["short"]):
            return {name}
    longest: dict[str, int] = {}  # unit -> letters of its longest name at an end of the word
    for name, facts in _FACTS.items():
        for part in facts["words"]:
            is_at_an_end = word.startswith(part) or word.endswith(part)
            if len(part) >= _SHORTEST_PART and is_at_an_end:
                longest[name] = max(len(part), longest.get(name, 0))
    if not longest:
        return set()
    return {max(longest, key=lambda name: longest[name])}


def _units_by_signs(text: str) -> set[str]:
    """Return the units whose signs a text holds, as 開始フレーム does; the longer sign counts first."""
    unit_of_sign = {sign: name for name, facts in _FACTS.items() for sign in facts["signs"]}
    units = set[str]()
    for sign in sorted(unit_of_sign, key=len, reverse=True):
        if sign in text:
            units.add(unit_of_sign[sign])
            text = text.replace(sign, " ")
    return units


def seconds_of_unit(unit: str) -> float:
    """Return the length of a unit in seconds; 0 for frames."""
    length_s: float = _FACTS[unit]["seconds"]
    return length_s


def checked_unit(unit: str) -> str:
    """Return a unit that a person types; refuse one that is not known. "" stands for none.

    Raises
    ------
    ManifestError
        The unit is none of `UNITS`.
    """
    if unit and unit not in UNITS:
        raise ManifestError(f"unit {unit!r}: expected one of {', '.join(UNITS)}")
    return unit
