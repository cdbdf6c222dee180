"""Write texts and numbers in a language: how a share, a probability, an interval and a time are written."""

import math
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from obygaze_features.screen import MIN_WRITTEN_P
from obygaze_features.text import percentage, rounded
from obygaze_film.claims.kinds import Bounds
from obygaze_film.codebook_names import InLanguages, told_in
from obygaze_film.notes import Message
from obygaze_film.notes import texts as texts_of_notes
from obygaze_film.schema import FLAGS, NO_CONTENT, UNRELIABLE
from obygaze_models.report import asset

LANGUAGES: Final = ("en", "fr")

MIN_IN_MINUTES_S: Final = 600.0
"""Seconds from which on a length of time is written in minutes."""

VOWELS: Final = frozenset("aeiouyhœæ")
"""First letters, without accents, before which French elides "de" and "que"."""

MAY_ELIDE: Final = {"fr": re.compile(r"\b([dDqQ]u?)e \{(\w+)\}")}
"""Language -> "de" or "que" in a text, without its e, and the name of the placeholder behind it."""

ROUNDING_OF_TIMES: Final = 1e-6
"""Times this little below a half are halves but for floating point, and are rounded up too."""

FILES_OF_TEXTS: Final = (("claims", "obygaze_film.claims"), ("film", "obygaze_film.page"))
"""Names of the files of texts, and their packages: sentences; the page and the desk."""


@cache
def texts_of(language: str) -> dict[str, str]:
    """Read the texts of a language, by key: those of notes, of sentences, and of the pages."""
    result = dict(texts_of_notes(language))
    for name, package in FILES_OF_TEXTS:
        result |= tomllib.loads(asset(f"{name}.{language}.toml", package))
    return result


class Words:
    """Texts and numbers in one language.

    Parameters
    ----------
    language : str
        One of `LANGUAGES`.

    Examples
    --------
    >>> from obygaze_film.claims import Words
    >>> words = Words("en")
    >>> words.share(0.165), words.share(0.001), words.share(0.999), words.duration(119.0)
    ('17%', '<1%', '>99%', '119 s')
    """

    def __init__(self, language: str) -> None:
        """Read the texts of a language, such as "en"."""
        self.language = language
        self._texts = texts_of(language)  # key -> text, maybe with places for values

    def __getitem__(self, key: str) -> str:
        """Return the text of a key in the language."""
        return self._texts[key]

    def __contains__(self, key: object) -> bool:
        """Whether the language has a text of this key."""
        return key in self._texts

    def say(self, key: str, **values: object) -> str:
        """Fill the placeholders of a text; values that have translations are written in this language.

        In French, "de" and "que" are elided before a value that begins with a vowel.

        Parameters
        ----------
        key : str
            Name of the text.
        **values
            Placeholder -> what is written for it.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> words = Words("fr")
        >>> [words.say("why_more", concept=name) for name in ("Look", "Expression")]
        ['plus de Look que d’habitude', 'plus d’Expression que d’habitude']
        """
        text = self._texts[key]
        written = {name: self.translated(value) for name, value in values.items()}
        if self.language in MAY_ELIDE:
            text = MAY_ELIDE[self.language].sub(lambda match: _elided(match, written), text)
        return text.format(**written)

    def counted(self, key: str, n: int, **values: object) -> str:
        """Fill the text of a number of things; 0 and 1 may have texts of their own, ``KEY_0`` and ``KEY_1``.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> [Words("en").counted("count_windows", n) for n in (0, 1, 2)]
        ['0 windows', '1 window', '2 windows']
        """
        if n in (0, 1) and f"{key}_{n}" in self._texts:
            key = f"{key}_{n}"
        return self.say(key, n=n, **values)

    def translated(self, note: Any) -> Any:
        """Translate a text that knows its translations to this language; return anything else as it is.

        Such texts are notes (`Message`), and names of a codebook (`InLanguages`).
        """
        if isinstance(note, InLanguages):
            return told_in(note, self.language)
        if not isinstance(note, Message):
            return note
        key = note.key
        # Only French may have a text of its own for 1: English needs none where no word changes.
        if note.values.get("n") == 1 and f"{key}_1" in self._texts:
            key = f"{key}_1"
        return self.say(key, **note.values)

    def texts_with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the texts whose keys have a prefix, by their keys without it, for a page's JavaScript.

        The language's decimal sign is added, as ``decimal``.
        """
        result = {"decimal": self._texts["decimal"]}
        for key, text in self._texts.items():
            if key.startswith(prefix):
                result[key.removeprefix(prefix)] = text
        return result

    # --- numbers
    # -----------------------------------------------------------------------
    def number(self, value: float, digits: int = 2) -> str:
        """Write a number with some decimals, and a true minus where it doesn't round to 0."""
        return rounded(value, digits).replace(".", self._texts["decimal"]).replace("-", "−")

    def signed(self, value: float) -> str:
        """Write a number with its sign (a true minus); a number that rounds to 0 has no sign."""
        text = self.number(abs(value))
        if float(rounded(value, digits=2)) == 0:
            return text
        return f"−{text}" if value < 0 else f"+{text}"

    def probability(self, p: float, least: str = "hundredth") -> str:
        """Write a probability; where that would be 0.00, the text `least` ("below 0.01")."""
        return self.number(p) if p >= MIN_WRITTEN_P else self[least]

    def band(self, low: float, high: float, between: str = "") -> str:
        """Write an interval of probabilities, such as "<0.01, 0.43"; empty if its upper end rounds to 0.00.

        `between` replaces the language's sign between the two.
        """
        if high < MIN_WRITTEN_P:
            return ""
        low_text = self.number(low)
        if low < MIN_WRITTEN_P:
            low_text = f"<{self.number(0.01)}"
        sign = between or self["between"]
        return f"{low_text}{sign}{self.number(high)}"

    def spoken(self, p: float, low: float, high: float) -> str:
        """Write a probability and its band in words, for screen readers.

        Such as "probability 0.62, 80% band 0.41 to 0.80".
        """
        if high < MIN_WRITTEN_P:
            return self["probability_low"]
        numbers = [self.probability(value) for value in (p, low, high)]
        return self["probability_band"].format(*numbers)

    def share(self, value: float) -> str:
        """Write a share as a whole percentage, NaN as a dash.

        A share that rounds to 0 or 100 and is neither is written as "<1%" or ">99%".
        """
        if math.isnan(value):
            return "–"
        return self._percent(percentage(value))

    def _percent(self, written: str) -> str:
        """Write a percentage with its sign in this language: "17%"."""
        return self._texts["percent"].format(written)

    def shares_of_whole(self, parts: Sequence[float]) -> list[str]:
        """Write the shares of the parts of one whole, rounded so that the percentages add up to 100.

        The parts are rounded down; those with the largest remainders are then rounded up. As in `share`,
        "<1%" and ">99%" stand for parts that round to 0 or 100 and are neither.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> Words("en").shares_of_whole([1.0, 1.0, 1.0]), Words("en").shares_of_whole([999.0, 1.0])
        (['34%', '33%', '33%'], ['>99%', '<1%'])
        """
        whole = sum(parts)
        if whole == 0:
            return [self._percent("0") for _ in parts]

        # Round all down.
        exact = [round(100 * part / whole, 6) for part in parts]  # rounded, so that 33.999999999 is 34
        percentages = [math.floor(share) for share in exact]

        # Round up those with the largest remainders, as many as are missing from 100.
        remainders = [share - floor for share, floor in zip(exact, percentages, strict=True)]
        by_remainder = sorted(range(len(parts)), key=lambda index: remainders[index], reverse=True)
        n_to_round_up = 100 - sum(percentages)
        for index in by_remainder[:n_to_round_up]:
            percentages[index] += 1

        written = []
        for part, rounded_share in zip(parts, percentages, strict=True):
            written.append(self._percent(percentage(part / whole, str(rounded_share))))
        return written

    def distance(self, value: float) -> str:
        """Write how far two shares are apart, in whole percentage points: "4 percentage points"."""
        points = rounded(100 * value)
        # 0 and 1 have texts of their own, as French writes both in the singular.
        key = f"points_apart_{points}"
        return self.say(key if key in self._texts else "points_apart", n=points)

    def shares(self, interval: Bounds, between: str = "") -> str:
        """Write the ends of an interval of shares, with the language's sign between them or another."""
        return f"{self.share(interval.low)}{between or self['between']}{self.share(interval.high)}"

    def numbers(self, interval: Bounds, between: str = "") -> str:
        """Write the ends of an interval of numbers, with the language's sign between them or another."""
        return f"{self.number(interval.low)}{between or self['between']}{self.number(interval.high)}"

    def points(self, value: float, interval: Bounds | None) -> str:
        """Write a difference of shares with its interval, in percentage points: `+3.0 [−1.0, +7.0]`."""
        point = self._signed_points(value)
        if interval is None:
            return point
        low = self._signed_points(interval.low)
        high = self._signed_points(interval.high)
        return f"{point} [{low}{self['between']}{high}]"

    def _signed_points(self, difference: float) -> str:
        """Write a difference of shares in percentage points, always with a sign: 0 is `+0.0`."""
        return _with_sign(self.number(100 * difference, 1))

    def points_text(self, key: str, value: float, interval: Bounds | None, **values: object) -> str:
        """Fill a text of a difference in percentage points.

        For less than 2 points, the text ``KEY_singular`` is used if there is one.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> [Words("fr").points_text("points_of", value, None) for value in (0.01, 0.02)]
        ['+1,0 point de pourcentage', '+2,0 points de pourcentage']
        """
        # In French the plural begins at 2. It goes by the difference alone, also with an interval behind it.
        is_singular = abs(float(rounded(100 * value, digits=1))) < 2
        if is_singular and f"{key}_singular" in self._texts:
            key = f"{key}_singular"
        return self.say(key, points=self.points(value, interval), **values)

    def difference(self, value: float, interval: Bounds | None) -> str:
        """Write a difference with its interval, such as `+0.030 [−0.010, +0.070]`."""
        point = self._signed_thousandths(value)
        if interval is None:
            return point
        low = self._signed_thousandths(interval.low)
        high = self._signed_thousandths(interval.high)
        return f"{point} [{low}{self['between']}{high}]"

    def _signed_thousandths(self, difference: float) -> str:
        """Write a difference with three decimals and always a sign: what rounds to 0 is `+0.000`."""
        return _with_sign(self.number(difference, 3))

    def duration(self, seconds: float) -> str:
        """Write a length of time in minutes, or in whole seconds."""
        return self.durations(seconds)[0]

    def durations(self, *seconds: float) -> list[str]:
        """Write the lengths of time of one sentence in one unit: minutes if one is ten minutes or more.

        Minutes have a decimal if one of the lengths is below ten minutes, so that what is written adds up.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> Words("en").durations(599.0, 30.0), Words("en").durations(600.0, 30.0)
        (['599 s', '30 s'], ['10.0 minutes', '0.5 minutes'])
        """
        if max(seconds) < MIN_IN_MINUTES_S:
            return [self._texts["seconds"].format(rounded(length)) for length in seconds]

        needs_decimal = any(0 < length < MIN_IN_MINUTES_S for length in seconds)
        written = []
        for length in seconds:
            minutes = length / 60
            digits = 1 if needs_decimal and minutes > 0 else 0
            # In French the plural begins at 2.
            key = "minutes_singular" if length < 2 * 60 else "minutes_of"
            written.append(self.say(key, n=self.number(minutes, digits)))
        return written

    def seconds(self, value: float) -> str:
        """Write seconds, with decimals only if needed."""
        return self.number(value, 0 if float(value).is_integer() else 2)

    # --- names
    # -----------------------------------------------------------------------
    def listed(self, names: Sequence[str]) -> str:
        """Join one name or more, such as "A, B and C", in this language where they have translations."""
        written = [str(self.translated(name)) for name in names]
        if len(written) == 1:
            return written[0]
        return f"{', '.join(written[:-1])} {self._texts['and']} {written[-1]}"

    def flags(self, cell: str, *, is_judged: bool = False) -> str:
        """Name the flags in a cell, such as ``unlike;bars``.

        Time with a flag such as ``unlike`` has no probability. If the span has a probability (`is_judged`),
        only a part of it can have such a flag: then "in part" is written before the flag.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> Words("en").flags("unlike;bars"), Words("en").flags("unlike;bars", is_judged=True)
        ('unlike training, black bars', 'in part unlike training, black bars')
        """
        named = []
        for flag in cell.split(";"):
            if flag not in FLAGS:
                continue
            text = self[f"flag_{flag}"]
            if is_judged and flag in (*UNRELIABLE, *NO_CONTENT):
                text = self.say("flag_in_part", flag=text)
            named.append(text)
        return ", ".join(named)

    def judge(self, name: str) -> str:
        """Write the name of a judge, who may have none."""
        return name or self["no_name"]


def _elided(match: re.Match[str], values: Mapping[str, object]) -> str:
    """Replace "que {concept}" by "qu’{concept}" if the value of the placeholder begins with a vowel.

    The placeholder stays: `Words.say` fills it later. The two groups of `match` are "qu" and "concept".
    """
    consonants, name = match.groups()
    value = str(values[name])
    # NFD writes an accent as a character of its own, behind its letter.
    first_letter = unicodedata.normalize("NFD", value)[:1].casefold()
    if first_letter not in VOWELS:
        return match[0]
    placeholder = "{" + name + "}"
    return f"{consonants}’{placeholder}"


def whole_seconds(seconds: float) -> int:
    """Round a time to the second that is written; a half is rounded up."""
    return int(seconds + 0.5 + ROUNDING_OF_TIMES)


def clock(seconds: float) -> str:
    """Write a time as h:mm:ss, rounded."""
    whole = whole_seconds(seconds)
    hours = whole // 3600
    minutes = whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}"


def clock_span(start_s: float, end_s: float) -> str:
    """Write the ends of a span as h:mm:ss; with tenths, or hundredths, where both would be written alike.

    Examples
    --------
    >>> from obygaze_film.claims.words import clock_span
    >>> clock_span(82.0, 88.0), clock_span(87.708, 88.125), clock_span(87.71, 87.74)
    ('0:01:22–0:01:28', '0:01:27.7–0:01:28.1', '0:01:27.71–0:01:27.74')
    """
    start = clock(start_s)
    end = clock(end_s)
    has_length = end_s > start_s  # else both are written alike with any number of decimals
    for digits in (1, 2, 3):
        if not has_length or start != end:
            break
        start = _clock_with_decimals(start_s, digits)
        end = _clock_with_decimals(end_s, digits)
    return f"{start}–{end}"


def _with_sign(number: str) -> str:
    """Put a plus before a written number without a minus."""
    return number if number.startswith("−") else f"+{number}"


def _clock_with_decimals(seconds: float, digits: int) -> str:
    """Write a time as h:mm:ss with some decimals of the second, such as 0:01:27.7; a half is rounded up."""
    ticks_per_second = 10**digits  # tenths, hundredths or thousandths
    ticks = int(seconds * ticks_per_second + 0.5 + ROUNDING_OF_TIMES)
    whole_s = ticks // ticks_per_second
    decimals = ticks % ticks_per_second
    return f"{clock(whole_s)}.{decimals:0{digits}d}"
