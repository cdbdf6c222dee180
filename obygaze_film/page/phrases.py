"""Provide the texts of a film's page by language (assets/film.LANGUAGE.toml), and format numbers."""

import tomllib
from typing import Final

from obygaze_film.schema import BARS, BLACK, CREDITS, MISSING, PARTIAL, SHORT, TRAINED_ON, UNLIKE
from obygaze_models.report import asset

LANGUAGES: Final = ("en", "fr")

FLAGS = (UNLIKE, MISSING, BLACK, CREDITS, BARS, PARTIAL, SHORT, TRAINED_ON)
"""In the order in which the page names them."""

SCRIPT: Final = ("decimal", "hundredth", "probability_low", "probability_band")
"""Texts that the page's script shows."""


SHORT_S: Final = 120.0
"""Below it a length of time is written in seconds."""


class Words:
    """Texts and numbers in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts: dict[str, str] = tomllib.loads(asset(f"film.{language}.toml", "obygaze_film.page"))

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def say(self, key: str, **values: object) -> str:
        """Fill a text."""
        return self._texts[key].format(**values)

    def number(self, value: float, digits: int = 2) -> str:
        """Write a number with two decimals."""
        return f"{value:.{digits}f}".replace(".", self._texts["decimal"])

    def probability(self, p: float) -> str:
        """Write a probability; one that rounds to 0 is below 0.01."""
        return self.number(p) if p >= 0.005 else self["hundredth"]

    def interval(self, low: float, high: float, between: str) -> str:
        """Write an interval of probabilities; empty where even its upper end rounds to 0."""
        first = self.number(low) if low >= 0.005 else f"<{self.number(0.01)}"
        return f"{first}{between}{self.number(high)}" if high >= 0.005 else ""

    def spoken(self, p: float, low: float, high: float) -> str:
        """Write a probability and its band as the page's script does."""
        text = self["probability_band" if high >= 0.005 else "probability_low"]
        for place, value in enumerate((p, low, high)):
            text = text.replace(f"{{{place}}}", self.probability(value))
        return text

    def signed(self, value: float) -> str:
        """Write a number with its sign (a true minus); a number that rounds to 0 has no sign."""
        text = self.number(abs(value))
        return text if float(f"{value:.2f}") == 0 else ("−" if value < 0 else "+") + text

    def share(self, value: float) -> str:
        """Write a share as a whole percentage; a share above 0 is never written as 0."""
        text = "<1" if 0 < value < 0.005 else f"{100 * value:.0f}"
        return self._texts["percent"].format(text)

    def listed(self, names: list[str]) -> str:
        """Join names."""
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {self._texts['and']} {names[-1]}"

    def flags(self, cell: str) -> str:
        """Name the flags of a cell."""
        return ", ".join(self[f"flag_{flag}"] for flag in cell.split(";") if flag in FLAGS)

    def duration(self, seconds: float) -> str:
        """Write a length of time in whole minutes, or in seconds."""
        if seconds < SHORT_S:
            return self._texts["seconds"].format(round(seconds))
        return self.say("minutes_of", n=round(seconds / 60))

    def seconds(self, value: float) -> str:
        """Write seconds, with decimals only if needed."""
        return self.number(value, 0 if float(value).is_integer() else 2)


def clock(seconds: float) -> str:
    """Write a time as h:mm:ss."""
    whole = int(seconds + 1e-6)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
