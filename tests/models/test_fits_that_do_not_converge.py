"""A command whose fits do not converge says so in one line, however many fits do not."""

import pytest
from sklearn.exceptions import ConvergenceWarning

from obygaze.cli import _WarningLines
from obygaze_models.models.convergence import NotConvergedWarning, warn_not_converged

NOT_CONVERGED = NotConvergedWarning(
    "logistic regression did not converge in 1000 steps: its scores are approximate"
)


def test_the_warning_can_be_caught_as_scikit_learns():
    """Whoever filters the `ConvergenceWarning` of scikit-learn filters ours, too."""
    with pytest.warns(ConvergenceWarning, match="did not converge in 1000 steps: its scores are approximate"):
        warn_not_converged("1000 steps")


def test_a_command_prints_the_text_alone_and_once():
    """The place in the code means nothing to whoever types a command, and many fits have the same to say."""
    lines = _WarningLines()  # of one command

    printed = [lines.format(str(NOT_CONVERGED), type(NOT_CONVERGED), "ridge_folds.py", 361) for _ in range(3)]

    assert printed == [
        "logistic regression did not converge in 1000 steps: its scores are approximate\n",
        "",
        "",
    ]


def test_the_next_command_prints_the_warning_again():
    """A warning is printed once by each command, not once by the process in which two commands run.

    Each command formats warnings by `_WarningLines` of its own; a file and a line of code go with a warning.
    """
    printed = []
    for _ in range(2):
        lines_of_command = _WarningLines()
        line = lines_of_command.format(
            str(NOT_CONVERGED), type(NOT_CONVERGED), filename="ridge_folds.py", lineno=361
        )
        printed.append(line)

    assert printed == [
        "logistic regression did not converge in 1000 steps: its scores are approximate\n",
        "logistic regression did not converge in 1000 steps: its scores are approximate\n",
    ]


def test_warnings_of_other_packages_keep_their_place():
    """They are printed as often as Python shows them: they concern whoever mends the code."""
    lines = _WarningLines()

    printed = [lines.format("deprecated", DeprecationWarning, "numpy.py", 7) for _ in range(2)]

    assert all(line.startswith("numpy.py:7: DeprecationWarning: deprecated") for line in printed)
