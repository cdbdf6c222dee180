"""Logistic regression in rounds: labs send gradients and curvatures, and get the next model.

Each round is a step of Newton's method on the loss of all clips together, so that five to ten rounds end at
the very minimum that one lab with all features would find.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ModelError
from obygaze_models.joint.fits import Joint, Planes

TOLERANCE = 1e-9
"""Largest change of a weight, against the largest weight, after which rounds have ended."""


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """The model after a round, and the largest change of a weight against the largest weight."""

    planes: Planes
    change: float

    @property
    def is_last(self) -> bool:
        """Whether another round would change nothing that counts."""
        return self.change <= TOLERANCE


def newton_step(joint: Joint, C: float = 1.0) -> Step:
    """Make the next model of gradients and curvatures at the last: of half ||w||^2 + C sum of log losses.

    Parameters
    ----------
    joint : Joint
        Of sums that `gram(..., at=model)` gave.
    C : float
        Inverse strength of the penalty, as in scikit-learn; the same in all rounds.

    Raises
    ------
    ModelError
        The sums are of squares.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> first = om.join([om.gram(data, "hn_s", least=5)])
    >>> om.save_joint(first, first.linear(), "round-0.model")
    >>> at = om.load_model("round-0.model")
    >>> om.newton_step(om.join([om.gram(data, "hn_s", least=5, at=at)]), C=0.1).is_last
    False
    """
    sums = joint.sums
    if joint.about.at != "losses":
        raise ModelError("these sums are of squares: rounds need sums at a model (obygaze model sums --at)")
    w, b = sums.start["start_weights"], float(sums.start["start_intercept"][0])
    penalised = np.append(np.ones(len(w)), 0.0)
    now: NDArray[np.float64] = np.append(w, b)
    with one_blas_thread():
        gradient = penalised * now + C * sums.means.sum(axis=0)
        curvature = np.diag(penalised) + C * sums.products.sum(axis=0)
        after = now - linalg.solve(curvature, gradient, assume_a="pos")
    change = float(np.abs(after - now).max() / max(np.abs(after).max(), np.finfo(np.float64).tiny))
    unknown = np.full(1, np.nan)
    planes = Planes(
        sums.start["start_mean"],
        sums.start["start_scale"],
        after[None, :-1],
        after[-1:],
        np.full(1, 1 / C),
        unknown,
    )
    return Step(planes, change)
