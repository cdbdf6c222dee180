"""Define the evidence of a model's skill on films left out, which its file and its predictions state."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from obygaze_features.manifest import counted
from obygaze_features.schema import Count
from obygaze_features.text import rounded

Share = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
"""An AUC or a probability, as a model file of a stranger may state it."""

NO_SKILL = "no_skill"
"""Flag of every clip scored by a model that may be no better than chance."""

UNTESTED = "no film was left out: nobody knows whether the model is better than chance"

CHANCE_LEVEL = 0.5
"""AUC of scores that have nothing to do with the labels."""

SKILLED = 0.9
"""Posterior probability of skill from which on a model counts as better than chance."""


class Evidence(TypedDict):
    """How well models that were trained like this one tell apart clips of films that were left out.

    `auc` is the mean over the films with clips of both classes: `n_movies`, of `n_clips`. Where no film has
    both, it is null, and the numbers are those of all films and clips that were tested. `auc_low` and
    `auc_high` are the ends of its 95 % interval, for the models tested, on movies like these; they are null
    if undefined. The model in the file is none of these models: it was trained on all films.
    `p_skilled` is the posterior probability that scores rise with the label within films; null for a model
    without calibration.
    """

    n_clips: Count
    n_movies: Count
    auc: Share | None
    auc_low: Share | None
    auc_high: Share | None
    p_skilled: Share | None


def may_be_chance(evidence: Evidence) -> bool:
    """Tell whether a model may be no better than chance, judged by films that were left out of training.

    It counts as better if the interval of the AUC lies above .5, or if the posterior probability of skill is
    at least `SKILLED`.

    Examples
    --------
    >>> few = Evidence(n_clips=7, n_movies=4, auc=0.67, auc_low=0.0, auc_high=1.0, p_skilled=0.4)
    >>> may_be_chance(few)
    True
    >>> may_be_chance({**few, "p_skilled": 0.95})
    False
    """
    low = evidence["auc_low"]
    p_skilled = evidence["p_skilled"]
    if low is not None and low > CHANCE_LEVEL:
        return False
    return p_skilled is None or p_skilled < SKILLED


def evidence_line(evidence: Evidence | None, levels_left_out: Sequence[str] = ()) -> str:
    """Write in one line how well a model did on films left out, and on which levels that is unknown.

    Parameters
    ----------
    evidence : Evidence or None
    levels_left_out : sequence of str
        Levels of whose clips none was used for testing or calibration (`Card.levels_left_out`).

    Examples
    --------
    >>> few = Evidence(n_clips=7, n_movies=4, auc=None, auc_low=None, auc_high=None, p_skilled=0.95)
    >>> evidence_line(few, ["EN"]).rpartition("; ")[2]
    'neither calibrated nor tested on clips of EN'
    """
    line = UNTESTED if evidence is None else describe_evidence(evidence)
    if not levels_left_out:
        return line
    return f"{line}; neither calibrated nor tested on clips of {' or '.join(levels_left_out)}"


def describe_evidence(evidence: Evidence) -> str:
    """Write how well a model did on films left out: AUC, interval, and numbers of clips and films.

    The text also says if the model may be no better than chance.

    Examples
    --------
    >>> describe_evidence(
    ...     Evidence(n_clips=7, n_movies=4, auc=0.67, auc_low=0.002, auc_high=0.9996, p_skilled=0.95)
    ... )
    'AUC on films left out .67 [.00, 1.00] (95 %, of the models tested there), 7 clips of 4 films'
    """
    tested = f"{counted(evidence['n_clips'], 'clip')} of {counted(evidence['n_movies'], 'film')}"
    doubt = ": may be no better than chance" if may_be_chance(evidence) else ""
    return f"{_describe_auc(evidence)}, {tested}{doubt}"


def _describe_auc(evidence: Evidence) -> str:
    """Write the AUC on films left out, with its interval if there is one; or that it is not defined."""
    auc = evidence["auc"]
    low = evidence["auc_low"]
    high = evidence["auc_high"]
    if auc is None:
        return "no film left out has clips of both classes"
    text = f"AUC on films left out {_hundredths(auc)}"
    if low is None or high is None:
        return text
    # The models that were tested are not the model of the file, which is trained on all films.
    return f"{text} [{_hundredths(low)}, {_hundredths(high)}] (95 %, of the models tested there)"


def _hundredths(value: float) -> str:
    """Format a number from 0 to 1 with two decimals and no leading 0."""
    return rounded(value, digits=2).removeprefix("0")
