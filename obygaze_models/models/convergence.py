"""Warn of fits of logistic regression that were given up before they converged."""

import warnings

from sklearn.exceptions import ConvergenceWarning


class NotConvergedWarning(ConvergenceWarning):
    """A fit was given up before it converged.

    A command prints it as one line, once and without the place in the code, as its category is the zoo's own.
    """


def warn_not_converged(limit: str, remedy: str = "its scores are approximate") -> None:
    """Warn that a fit of logistic regression was given up.

    Parameters
    ----------
    limit
        How far the fit went: `1000 steps`.
    remedy
        What follows from it, or what to do.
    """
    warnings.warn(
        f"logistic regression did not converge in {limit}: {remedy}", NotConvergedWarning, stacklevel=2
    )
