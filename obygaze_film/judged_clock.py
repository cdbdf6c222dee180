"""Count the seconds of a film that a model can judge, one after the other, as if the others were cut out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_film.schema import Spans


@dataclass(frozen=True, eq=False)
class JudgedClock:
    """Judged time of a film: a clock that runs in its judged seconds and stands still in all others.

    Attributes
    ----------
    is_judged : ndarray of bool, shape [n]
        Of each second of the film, whether it has a probability.

    Examples
    --------
    Seconds 2 and 3 of six cannot be judged: a span across them lasts two seconds less.

    >>> import numpy as np
    >>> from obygaze_film.judged_clock import JudgedClock
    >>> clock = JudgedClock(np.array([True, True, False, False, True, True]))
    >>> clock.n_seconds, clock.spans(np.array([[1.0, 5.5], [2.5, 3.5]])).tolist()
    (4, [[1.0, 3.5]])
    """

    is_judged: NDArray[np.bool_]

    @property
    def n_seconds(self) -> int:
        """How many seconds are judged."""
        return int(self.is_judged.sum())

    def times(self, times_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert times of the film, of any shape, to judged time: how many judged seconds lie before each.

        Times after the film's end have all of them.
        """
        edges_s = np.arange(len(self.is_judged) + 1.0)
        at_edges = np.concatenate([[0.0], np.cumsum(self.is_judged)])
        return np.asarray(np.interp(times_s, edges_s, at_edges))

    def spans(self, spans: Spans) -> Spans:
        """Convert spans [S, 2] of the film to judged time, which counts only the seconds that are judged.

        Spans without any judged second are left out.
        """
        judged = self.times(spans)
        has_length = judged[:, 1] > judged[:, 0]
        return judged[has_length]
