"""Write texts and numbers in a language: how a share, a probability, an interval and a time are written."""

import math
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from obygaze_features.text import rounded
from obygaze_film.claims.kinds import Bounds
from obygaze_film.codebook_names import InLanguages, told_in
from obygaze_film.notes import Message, texts
from obygaze_film.schema import FLAGS, NO_CONTENT, UNRELIABLE
from obygaze_models.report import asset

LANGUAGES: Final = ("en", "fr")

SHORT_S: Final = 600.0
"""Below it a length of time is written in seconds."""

VOWELS: Final = frozenset("aeiouyhœæ")
"""First letters of names, without accents, before which French elides."""

ELIDED: Final = {"fr": re.compile(r"\b([dDqQ]u?)e \{(\w+)\}")}
"""Language -> a word of a text that is elided before a vowel, and the place of a name behind it."""

LEAST_P: Final = 0.005
"""A probability below it rounds to 0, and is not written so."""

TEXTS: Final = (("claims", "obygaze_film.claims"), ("film", "obygaze_film.page"))
"""Files of texts, and their packages: of sentences, and of the page and the desk."""


@cache
def texts_of(language: str) -> dict[str, str]:
    """Read the texts of a language, by name: sentences, pages, and notes."""
    found = dict(texts(language))
    for name, package in TEXTS:
        found |= tomllib.loads(asset(f"{name}.{language}.toml", package))
    return found


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
        self.language = language
        self._texts = texts_of(language)

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __contains__(self, key: object) -> bool:
        return key in self._texts

    def say(self, key: str, **values: object) -> str:
        """Fill a text; what is filled in, and has translations, is written in this language.

        French "de" and "que" are elided before what is filled in and begins with a vowel.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> words = Words("fr")
        >>> [words.say("why_more", concept=name) for name in ("Look", "Expression")]
        ['plus de Look que d’habitude', 'plus d’Expression que d’habitude']
        """
        text = self._texts[key]
        written = {name: self.again(value) for name, value in values.items()}
        elided = ELIDED.get(self.language)
        if elided is not None:
            text = elided.sub(lambda found: _elided(found, written), text)
        return text.format(**written)

    def counted(self, key: str, n: int, **values: object) -> str:
        """Fill the text of a number of things: of none or of one the text may be one of its own.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> [Words("en").counted("count_windows", n) for n in (0, 1, 2)]
        ['0 windows', '1 window', '2 windows']
        """
        own = {0: f"{key}_0", 1: f"{key}_1"}.get(n, key)
        return self.say(own if own in self._texts else key, n=n, **values)

    def again(self, note: Any) -> Any:
        """Write a note, or a name of a codebook, in this language; what is neither stays as it is."""
        if isinstance(note, InLanguages):
            return told_in(note, self.language)
        if not isinstance(note, Message):
            return note
        # A language may have words of its own for one thing where English has none, as of French participles.
        singular = f"{note.key}_1"
        is_singular = note.values.get("n") == 1 and singular in self._texts
        return self.say(singular if is_singular else note.key, **note.values)

    def starting(self, prefix: str) -> dict[str, str]:
        """Return the texts of a script: those whose names begin so, by the rest of their names."""
        shown = {"decimal": self._texts["decimal"]}
        for name, text in self._texts.items():
            if name.startswith(prefix):
                shown[name.removeprefix(prefix)] = text
        return shown

    # --- numbers
    # -----------------------------------------------------------------------
    def number(self, value: float, digits: int = 2) -> str:
        """Write a number with some decimals, and a true minus where it doesn't round to 0."""
        text = rounded(value, digits)
        if float(text) == 0:
            # What rounds to 0 has no sign.
            text = text.removeprefix("-")
        return text.replace(".", self._texts["decimal"]).replace("-", "−")

    def signed(self, value: float) -> str:
        """Write a number with its sign (a true minus); a number that rounds to 0 has no sign."""
        text = self.number(abs(value))
        if float(rounded(value, 2)) == 0:
            return text
        return f"−{text}" if value < 0 else f"+{text}"

    def probability(self, p: float, least: str = "hundredth") -> str:
        """Write a probability; one that rounds to 0 is below 0.01."""
        return self.number(p) if p >= LEAST_P else self[least]

    def band(self, low: float, high: float, between: str = "") -> str:
        """Write an interval of probabilities; empty where even its upper end rounds to 0."""
        if high < LEAST_P:
            return ""
        first = self.number(low) if low >= LEAST_P else f"<{self.number(0.01)}"
        return f"{first}{between or self['between']}{self.number(high)}"

    def spoken(self, p: float, low: float, high: float) -> str:
        """Write a probability and its band as the page's script does."""
        if high < LEAST_P:
            return self["probability_low"]
        numbers = [self.probability(value) for value in (p, low, high)]
        return self["probability_band"].format(*numbers)

    def share(self, value: float) -> str:
        """Write a share as a whole percentage, NaN as a dash; only 0 is written as 0, and only 1 as all."""
        if math.isnan(value):
            return "–"
        text = rounded(100 * value)
        if text == "0" and value > 0:
            text = "<1"
        elif text == "100" and value < 1:
            text = ">99"
        return self._texts["percent"].format(text)

    def shares_of_whole(self, parts: Sequence[float]) -> list[str]:
        """Write the shares of the parts of one whole, rounded so that the percentages add up to 100.

        The parts are rounded down, and those with the largest remainders up; of parts that round to 0 or to
        100, only none is written as 0, and only all as 100.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> Words("en").shares_of_whole([1.0, 1.0, 1.0]), Words("en").shares_of_whole([999.0, 1.0])
        (['34%', '33%', '33%'], ['>99%', '<1%'])
        """
        whole = sum(parts) or 1.0
        exact = [round(100 * part / whole, 6) for part in parts]
        percentages = [math.floor(share) for share in exact]
        by_remainder = sorted(range(len(parts)), key=lambda place: percentages[place] - exact[place])
        n_to_add = 100 - sum(percentages) if any(parts) else 0
        for place in by_remainder[:n_to_add]:
            percentages[place] += 1
        written = []
        for part, percentage in zip(parts, percentages, strict=True):
            text = str(percentage)
            if percentage == 0 and part > 0:
                text = "<1"
            elif percentage == 100 and part < whole:
                text = ">99"
            written.append(self._texts["percent"].format(text))
        return written

    def apart(self, value: float) -> str:
        """Write how far two shares are apart, in percentage points."""
        text = rounded(100 * value)
        own = f"points_apart_{text}"
        return self.say(own if own in self._texts else "points_apart", n=text)

    def shares(self, interval: Bounds, between: str = "") -> str:
        """Write the ends of an interval of shares, with the language's sign between them or another."""
        return f"{self.share(interval.low)}{between or self['between']}{self.share(interval.high)}"

    def numbers(self, interval: Bounds, between: str = "") -> str:
        """Write the ends of an interval of numbers, with the language's sign between them or another."""
        return f"{self.number(interval.low)}{between or self['between']}{self.number(interval.high)}"

    def points(self, value: float, interval: Bounds | None) -> str:
        """Write a difference of shares with its interval, in percentage points."""
        numbers = [value] if interval is None else [value, interval.low, interval.high]
        written = []
        for each in numbers:
            text = self.number(100 * each, 1)
            written.append(text if text.startswith("−") else f"+{text}")
        if interval is None:
            return written[0]
        return f"{written[0]} [{written[1]}{self['between']}{written[2]}]"

    def points_text(self, key: str, value: float, interval: Bounds | None, **values: object) -> str:
        """Fill a text of a difference in percentage points, in the number that the language gives it.

        Examples
        --------
        >>> from obygaze_film.claims import Words
        >>> [Words("fr").points_text("points_of", value, None) for value in (0.01, 0.02)]
        ['+1,0 point de pourcentage', '+2,0 points de pourcentage']
        """
        singular = f"{key}_few"
        # French has a plural from two on; with an interval behind it the number is that of the difference.
        is_singular = singular in self._texts and abs(float(rounded(100 * value, 1))) < 2
        return self.say(singular if is_singular else key, points=self.points(value, interval), **values)

    def difference(self, value: float, interval: Bounds | None) -> str:
        """Write a difference with three decimals and a sign, and its interval."""
        numbers = [value] if interval is None else [value, interval.low, interval.high]
        written = [f"{each:+.3f}".replace("-", "−").replace(".", self._texts["decimal"]) for each in numbers]
        if interval is None:
            return written[0]
        return f"{written[0]} [{written[1]}{self['between']}{written[2]}]"

    def duration(self, seconds: float) -> str:
        """Write a length of time in minutes, or in whole seconds."""
        return self.durations(seconds)[0]

    def durations(self, *seconds: float) -> list[str]:
        """Write the lengths of time of one sentence in one unit, that of the longest.

        Minutes have a decimal where one of the lengths is below ten: numbers of one sentence add up.
        """
        if max(seconds) < SHORT_S:
            return [self._texts["seconds"].format(rounded(length)) for length in seconds]
        has_short = any(0 < length < SHORT_S for length in seconds)
        lengths = []
        for length in seconds:
            digits = 1 if has_short and length else 0
            # French has a plural from two on.
            key = "minutes_few" if length < 2 * 60 else "minutes_of"
            lengths.append(self.say(key, n=self.number(length / 60, digits)))
        return lengths

    def seconds(self, value: float) -> str:
        """Write seconds, with decimals only if needed."""
        return self.number(value, 0 if float(value).is_integer() else 2)

    # --- names
    # -----------------------------------------------------------------------
    def listed(self, names: Sequence[str]) -> str:
        """Join names, in this language where they have translations."""
        written = [str(self.again(name)) for name in names]
        if len(written) == 1:
            return written[0]
        return f"{', '.join(written[:-1])} {self._texts['and']} {written[-1]}"

    def flags(self, cell: str, *, is_judged: bool = False) -> str:
        """Name the flags of a cell.

        Of a span that has a probability in any part (`is_judged`), flags of time without one are of a part.

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


def _elided(found: re.Match[str], values: Mapping[str, object]) -> str:
    """Write a word and the place behind it, elided where what is filled in begins with a vowel."""
    word, place = found.groups()
    first = unicodedata.normalize("NFD", str(values[place]))[:1].casefold()
    return f"{word}’{{{place}}}" if first in VOWELS else found[0]


def whole_seconds(seconds: float) -> int:
    """Round a time to the second that is written; a half is rounded up."""
    return int(seconds + 0.5 + 1e-6)


def clock(seconds: float) -> str:
    """Write a time as h:mm:ss, rounded."""
    whole = whole_seconds(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def clock_span(start_s: float, end_s: float) -> str:
    """Write the ends of a span as h:mm:ss; with tenths, or hundredths, where both would be written alike.

    Examples
    --------
    >>> from obygaze_film.claims.words import clock_span
    >>> clock_span(82.0, 88.0), clock_span(87.708, 88.125), clock_span(87.71, 87.74)
    ('0:01:22–0:01:28', '0:01:27.7–0:01:28.1', '0:01:27.71–0:01:27.74')
    """
    if end_s <= start_s or clock(start_s) != clock(end_s):
        return f"{clock(start_s)}–{clock(end_s)}"
    start = end = ""
    for digits in (1, 2, 3):
        start, end = (_clock_with_parts(seconds, digits) for seconds in (start_s, end_s))
        if start != end:
            break
    return f"{start}–{end}"


def _clock_with_parts(seconds: float, digits: int) -> str:
    """Write a time as h:mm:ss with some digits of a second, rounded; a half is rounded up."""
    scale = 10**digits
    parts = int(seconds * scale + 0.5 + 1e-6)
    whole = parts // scale
    return f"{clock(whole)}.{parts % scale:0{digits}d}"
