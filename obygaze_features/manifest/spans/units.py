"""Tell in which unit a column of times is, by its heading; a heading that leaves it open is asked about."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.headings import KNOWN_HEADINGS
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
        """Return the unit of numbers below a heading, given that of the person's option; "" if none says it.

        - A unit in brackets, as in `Duration (min)`, is certain, whatever the person's unit is.
        - Elsewhere the person's unit counts. `Startbild` may have frames, or times of pictures.
        - It also counts for frames in brackets. Without a frame rate, nobody could read them otherwise.
        """
        is_in_brackets = self.is_stated
        is_certain = is_in_brackets and self.unit != FRAMES
        if is_certain:
            return self.unit
        return person_unit or self.unit


@lru_cache(1 << 12)
def unit_of_heading(heading: str) -> UnitOfHeading:
    """Return in which unit times are, by the heading of their column.

    The first of these that a heading has counts:

    1. the form of a clock, `hh:mm:ss`;
    2. a unit in brackets, `Start (ms)`, which is certain (`is_stated`);
    3. a unit among the other words, `startMillis`;
    4. a text in brackets that is not known, `Start (abc)`: a doubt, as it may be a unit.

    Several units at once are a doubt too, and so is a word for what is no time, such as `%`.

    Examples
    --------
    >>> [unit_of_heading(heading).unit for heading in ("Start (ms)", "startMillis", "Startbild", "Anfang")]
    ['ms', 'ms', 'frames', '']
    >>> unit_of_heading("Start (%)").doubt, unit_of_heading("Start (h:mm)").whole_clock
    ('%', '{}:00')
    """
    words_apart = plain(_HUMP.sub(" ", heading))  # `startMillis` as `start millis`

    for text in _CLOCK.findall(words_apart):
        form = _form_of_clock(text)
        if form:
            return _unit_of_clock(text, form)

    in_brackets = [bracket.strip(" .") for bracket in _BRACKETS.findall(words_apart)]
    units = set[str]()
    for bracket in in_brackets:
        units |= _units_in_text(bracket, are_in_brackets=True)
    is_stated = bool(units)
    if not units:
        outside_brackets = _BRACKETS.sub(" ", words_apart)
        units = _units_in_text(outside_brackets, are_in_brackets=False)

    has_one_unit = len(units) == 1 and NO_UNIT not in units
    if has_one_unit:
        return UnitOfHeading(unit=units.pop(), is_stated=is_stated)
    if units:  # several, or `NO_UNIT` for what is no time
        return UnitOfHeading(doubt=", ".join(in_brackets) or heading.strip())
    unknown_texts = [bracket for bracket in in_brackets if bracket]
    return UnitOfHeading(doubt=", ".join(unknown_texts))


def has_time_unit(heading: str) -> bool:
    """Return whether a heading says, or may say, in which unit times are: `Start (s)`, `Start (%)`."""
    unit_in_heading = unit_of_heading(heading)
    return bool(unit_in_heading.unit or unit_in_heading.doubt)


def doubt_of_minutes(headings: str, number: str) -> str:
    """Say that numbers may be seconds or minutes and seconds, and what to type for either.

    Parameters
    ----------
    headings
        The headings of their columns, as they are shown.
    number
        One of them, such as `10.59`.
    """
    return (
        f"the numbers in {headings} have two decimals, none of them .60 or more, and may be seconds or "
        f"minutes and seconds: give --unit s if {number} is {number} seconds; write "
        f"{number.replace('.', ':')} where it is minutes and seconds"
    )


def _units_in_text(text: str, *, are_in_brackets: bool) -> set[str]:
    """Return the units that a part of a heading names, by its words and by signs such as 秒.

    `are_in_brackets` is whether the part stands in brackets (`_units_of_words`).
    """
    words = _WORDS.findall(text)
    return _units_of_words(words, are_in_brackets=are_in_brackets) | _units_by_signs(text)


def _form_of_clock(text: str) -> str:
    """Return the form of clocks that a text shows, as `h:m:s` for `hh:mm:ss`; "" if it shows none.

    The form has a letter for each part: h, m, s, f for frames, and x for decimals of a second.
    """
    form = ""
    for sign, part in _PART_OF_CLOCK.findall(text):
        if part not in _PARTS:
            return ""
        form += sign + _PARTS[part]
    return form


def _unit_of_clock(text: str, form: str) -> UnitOfHeading:
    """Return what a heading that shows the form of clocks says of the times below it.

    The form of a clock is always a doubt about numbers: below `hh:mm:ss`, a mere 90 may be anything.
    `text` is the form as the heading has it, such as `h:mm`, and `form` its parts, such as `h:m`.

    Examples
    --------
    >>> _unit_of_clock("ss.msec", "s.x").unit
    's'
    >>> _unit_of_clock("h:mm", "h:m").whole_clock, _unit_of_clock("mm.ss", "m.s").unread_clock
    ('{}:00', 'mm.ss')
    """
    if form in _DECIMAL_SECONDS:  # 1.5 below "ss.msec" is a number of seconds, and no clock
        return UnitOfHeading(unit="s", is_stated=True)
    if form in _CLOCKS_AS_READ:  # clocks of this form are read rightly without the heading
        return UnitOfHeading(doubt=text)
    if form in _WHOLE_CLOCK:  # 1:30 below "h:mm" would be read as minutes and seconds, so it is completed
        n_signs = len(re.findall("[:;]", form))
        return UnitOfHeading(doubt=text, whole_clock=_WHOLE_CLOCK[form], n_signs=n_signs)
    # 1.30 below "mm.ss" would be read as a number.
    return UnitOfHeading(doubt=text, unread_clock=text)


def _units_of_words(words: Sequence[str], *, are_in_brackets: bool) -> set[str]:
    """Return the units that some words of a heading name.

    A short form such as `ms` or `s` counts in brackets, as the last word, and as the first one if it has two
    letters or more. Elsewhere it may be any abbreviation.

    Parameters
    ----------
    words
        The words, in small letters.
    are_in_brackets
        Whether the words stand in brackets.

    Examples
    --------
    >>> _units_of_words(["start", "ms"], are_in_brackets=False)
    {'ms'}
    >>> _units_of_words(["start", "ms", "film"], are_in_brackets=False)
    set()
    """
    units = set[str]()
    for index, word in enumerate(words):
        is_last = index == len(words) - 1
        is_first = index == 0
        is_first_of_several_letters = is_first and len(word) > 1
        may_be_short = are_in_brackets or is_last or is_first_of_several_letters
        units |= _units_of_word(word, may_be_short=may_be_short)
    return units


def _units_of_word(word: str, *, may_be_short: bool) -> set[str]:
    """Return the unit that a word of a heading names, as a set of one; an empty set if it names none.

    A unit is named by

    - the whole word: one of the unit's words (`Millisekunden`), or a short form (`ms`);
    - a word for a time with a short form behind it: `startms`;
    - the beginning or end of the word: `Startbild`. Of several units the longest name counts.

    `may_be_short` is whether a short form counts, which at other places may be any abbreviation.
    """
    for name, facts in _FACTS.items():
        short_forms = facts["short"]
        if word in facts["words"] or (may_be_short and word in short_forms):
            return {name}
        if any(word == time_word + short for time_word in _TIME_WORDS for short in short_forms):
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
    """Return the units that a text names in a script without blanks between words, as 開始フレーム does.

    A sign of a unit may be a part of another one's, as 秒 is of ミリ秒. So longer signs are looked for first,
    and taken out of the text.
    """
    unit_of_sign = {sign: name for name, facts in _FACTS.items() for sign in facts["signs"]}
    units = set[str]()
    remaining_text = text
    for sign in sorted(unit_of_sign, key=len, reverse=True):
        if sign in remaining_text:
            units.add(unit_of_sign[sign])
            remaining_text = remaining_text.replace(sign, " ")
    return units


def heading_without_unit(heading: str) -> str:
    """Return a heading without its words for units, so that `start_min` and `Start (sec)` become the same.

    Examples
    --------
    >>> heading_without_unit("start_min"), heading_without_unit("Start (sec)"), heading_without_unit("min")
    ('start', 'start', '')
    """
    text = plain(_HUMP.sub(" ", heading))
    signs = [sign for facts in _FACTS.values() for sign in facts["signs"]]
    for sign in sorted(signs, key=len, reverse=True):  # as 秒 is a part of ミリ秒
        text = text.replace(sign, " ")
    words = _WORDS.findall(text)
    unit_words = {word for facts in _FACTS.values() for word in (*facts["words"], *facts["short"])}
    return " ".join(word for word in words if word not in unit_words)


def seconds_of_unit(unit: str) -> float:
    """Return the length of a unit in seconds; 0 for frames, whose length depends on the film's rate."""
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
