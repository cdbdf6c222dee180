"""Part a film's time once, for every sentence, flag and drawing: judged, not judged, black or credits."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.schema import MOST_UNRELIABLE, NO_CONTENT, durations, has_flag, is_counted

JUDGED: Final = "judged"
UNLIKE: Final = "unlike"
NOTHING: Final = "nothing"
"""Parts of a film's time: with a probability; unlike everything a model was trained on, or not read; black
pictures or credits, whatever else they are."""

SLACK_S: Final = 0.5
"""Seconds that a part must have to be said."""


@dataclass(frozen=True, slots=True)
class FilmTime:
    """The parts of a film's time by one model, in seconds; they add up to the film.

    Attributes
    ----------
    judged_s : float
        With a probability.
    unlike_s : float
        Of content that the model cannot judge.
    nothing_s : float
        Black pictures and credits.
    """

    judged_s: float
    unlike_s: float
    nothing_s: float

    @property
    def whole_s(self) -> float:
        """The film."""
        return self.judged_s + self.unlike_s + self.nothing_s

    @property
    def is_whole(self) -> bool:
        """Whether all of the film is judged."""
        return self.unlike_s + self.nothing_s < SLACK_S

    @property
    def is_mostly_judged(self) -> bool:
        """Whether so much of the film's content is judged that it may have a rate."""
        return self.unlike_s <= MOST_UNRELIABLE * (self.judged_s + self.unlike_s)

    def share(self, seconds: float) -> float:
        """Return the share of the film that some seconds are."""
        return seconds / self.whole_s if self.whole_s else 0.0


def parts_of(rows: pd.DataFrame) -> NDArray[np.str_]:
    """Name the part of a film's time that each row [N] of a model is in."""
    parts = np.where(is_counted(rows), JUDGED, UNLIKE)
    return np.where(has_flag(rows, *NO_CONTENT), NOTHING, parts)


def film_time(rows: pd.DataFrame) -> FilmTime:
    """Add up the parts of a film's time, of the rows of one model.

    Examples
    --------
    >>> import pandas as pd
    >>> from obygaze_film.film_time import film_time
    >>> times = {"start_s": [0.0, 6.0, 8.0], "end_s": [6.0, 8.0, 10.0]}
    >>> rows = pd.DataFrame({**times, "p": [0.2, None, None], "flags": ["", "unlike", "unlike;credits"]})
    >>> film_time(rows)
    FilmTime(judged_s=6.0, unlike_s=2.0, nothing_s=2.0)
    """
    seconds = durations(rows)
    parts = parts_of(rows)
    judged = float(seconds[parts == JUDGED].sum())
    unlike = float(seconds[parts == UNLIKE].sum())
    nothing = float(seconds[parts == NOTHING].sum())
    return FilmTime(judged, unlike, nothing)
