"""Compute what may be said of several films: shares of groups, changes, agreement, and what learning did."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from obygaze_features.arguments import checked
from obygaze_film.claims.kinds import (
    AGREE_BY_CHANCE,
    ANSWERED_TIME,
    FILMS_ALIKE,
    NOT_SURE,
    OF_CONCEPT,
    OF_LABELS,
    OTHER_JUDGES,
    PARTLY_READ,
    REFUSED,
    TOO_FEW_FILMS,
    Bounds,
    ClaimTime,
    ExpectedShare,
    FilmClaim,
    GroupChange,
    GroupShare,
    JudgedShare,
    LearntChange,
    SameShare,
    TimelineAgreement,
)
from obygaze_film.claims.of_film import LEVEL, OTHER_FILMS, SAME, expected_share
from obygaze_film.claims.of_judgements import (
    CONTENT,
    doubts_of_kappa,
    judged_share,
    pair_agreement,
    panel_agreement,
)
from obygaze_film.notes import LATER
from obygaze_film.positive import Positive

if TYPE_CHECKING:
    import pandas as pd

    from obygaze_film.film_groups import ComparedFilm, FilmComparison
    from obygaze_models.evaluation import Interval as FilmInterval


MIN_WITH_INTERVAL: Final = 3
"""Films from which on a mean over films has an interval, unless all of them have one value."""

SURE: Final = ClaimTime("sure")
"""A film's time without black, credits and what was left out as judges were not sure."""


@checked
def group_claims(compared: "FilmComparison") -> list[FilmClaim]:
    """Compute the claims on groups of films.

    Parameters
    ----------
    compared : FilmComparison

    Returns
    -------
    list of FilmClaim
        A `GroupShare` for each group, a `GroupChange` for each difference and the trend, a `PairKappa` for
        every two judges, and, where they hold, `PanelAgreement` and `SameShare`.
    """
    positive = compared.positive
    claims: list[FilmClaim] = [group_share(row, positive) for row in _rows(compared.groups)]
    claims += [group_change(row, positive) for row in _rows(compared.changes)]
    claims += [pair_agreement(pair, positive.text) for pair in compared.agreement]
    if compared.alpha is not None:
        claims.append(panel_agreement(compared.alpha, positive.text))
    same = same_share(compared)
    if same is not None:
        claims.append(same)
    return claims


def same_share(compared: "FilmComparison") -> SameShare | None:
    """Claim that the model expects the same share of all films, and so does not tell them apart.

    None if the shares differ, if fewer than two films have one, or if labels stand in the model's place.
    """
    if compared.is_of_labels:
        return None
    shares = [film.expected for film in compared.films if not np.isnan(film.expected)]
    if len(shares) < 2:
        return None
    largest_difference = np.ptp(shares)
    if largest_difference > SAME:  # more than by rounding
        return None
    return SameShare(
        who=(compared.model,),
        what=compared.positive.text,
        time=ClaimTime("judged"),
        number=shares[0],
        n_films=len(shares),
    )


def _rows(table: "pd.DataFrame") -> list[dict[Any, Any]]:
    """Return the rows of a table, each as a dict of column -> cell."""
    return table.to_dict(orient="records")


def group_share(row: Mapping[Any, Any], positive: Positive) -> GroupShare:
    """Claim the mean share of a group of films, from its row of the table of groups.

    `FilmComparison.groups` describes the row's columns. The claim repeats the numbers, and says in words what
    must be known beside them (its conditions).
    """
    share = _known(row["value"])
    # Not sure means two things. A window of which no judge was sure is left out (`n_unsure` counts them). Of
    # one of which some judges were not sure, only the answers of the others count (`has_unsure`).
    leaves_out_unsure = row["n_unsure"] > 0 or row["has_unsure"]
    time = SURE if leaves_out_unsure else CONTENT

    # What a reader has to know beside the number, such as that there is none
    conditions = []
    if share is None:
        conditions.append(REFUSED)
    if leaves_out_unsure:
        conditions.append(NOT_SURE)
    if row["has_unread"]:
        conditions.append(PARTLY_READ)
    if row["is_mixed"]:
        conditions.append(OTHER_JUDGES)
    if positive.is_concept:
        conditions.append(OF_CONCEPT)

    return GroupShare(
        who=row["judge_names"],
        what=positive.text,
        time=time,
        number=share,
        interval=_bounds(row["low"], row["high"]),
        conditions=tuple(conditions),
        group=row["group"],
        n_films=int(row["n_films"]),
        n_judged=int(row["n_judged"]),
        n_windows=int(row["n_windows"]),
        worth=_known(row["worth"]),
        expected=_known(row["expected"]),
        n_expected=int(row["n_expected"]),
        reason=row["reason"],
        note=row["note"],
    )


def group_change(row: Mapping[Any, Any], positive: Positive) -> GroupChange:
    """Claim the difference of two groups' shares, or their trend, from a row of `FilmComparison.changes`."""
    change = _known(row["value"])
    conditions = []
    if change is None:
        conditions.append(REFUSED)
    if row["has_unsure"]:
        conditions.append(NOT_SURE)
    return GroupChange(
        who=row["judge_names"],
        what=positive.text,
        time=SURE if row["has_unsure"] else CONTENT,
        number=change,
        interval=_bounds(row["low"], row["high"]),
        conditions=tuple(conditions),
        change=row["change"],
        is_by_decade=row["change"] == LATER,  # the name of the trend's row
        n_films=int(row["n_films"]),
        n_judged=int(row["n_judged"]),
        note=row["note"],
        reason=row["reason"],
    )


def _known(value: float) -> float | None:
    """Return a number of a table, None for NaN."""
    return None if np.isnan(value) else float(value)


def _bounds(low: float, high: float) -> Bounds | None:
    """Return a 95 % interval over films from its two ends; None if an end is NaN, as without an interval."""
    if np.isnan(low) or np.isnan(high):
        return None
    return Bounds(float(low), float(high), LEVEL)


def compared_share(film: "ComparedFilm", compared: "FilmComparison") -> JudgedShare | ExpectedShare:
    """Claim the share of one of the compared films.

    It is the judges' share if the film has one; else that of the labels in the model's place, or the model's.
    """
    if film.rate is not None:
        return replace(judged_share(film.rate), left_out=film.judges_left_out, after_gap=film.n_after_gap)
    return expected_share_of(film, compared)


def expected_share_of(film: "ComparedFilm", compared: "FilmComparison") -> ExpectedShare:
    """Claim the share of one of the compared films by the model, or by labels in its place.

    A claim of labels has the share and what is positive. It has no interval and no errors, as those of a
    model come from its calibration.
    """
    timeline = film.timeline
    share = _known(film.expected)
    if not compared.is_of_labels:
        model = timeline.model(compared.model)
        claim_of_model = expected_share(model, timeline.rows(model.key))
        return replace(claim_of_model, number=share)

    # What is positive is read from a claim of the film's first model.
    first_model = timeline.model()
    claim_of_first_model = expected_share(first_model, timeline.rows(first_model.key))
    annotator_of_labels = compared.model
    return ExpectedShare(
        who=(annotator_of_labels,),
        what=claim_of_first_model.what,
        time=CONTENT,
        number=share,
        conditions=(OF_LABELS,),
        error=None,
        worst_error=None,
        clips={},
        levels_left_out=(),
        unlike=0.0,
        reason="",
    )


def timeline_agreement(
    model: str,
    annotator: str,
    row: Mapping[Any, Any],
    *,
    n_films: int,
    judged_s: float,
    whole_s: float,
    is_all_answered: bool = True,
) -> TimelineAgreement:
    """Claim how far a model agrees with an annotator in time, by Cohen's kappa over several films.

    Parameters
    ----------
    model, annotator : str
    row : mapping
        The row of kappa of `FilmEvaluation.summary`.
    n_films : int
        Films that both scored or marked.
    judged_s, whole_s : float
        Seconds of these films that are compared, and all.
    is_all_answered : bool
        Whether annotators have an answer for each second that the model can judge, so that all these are
        compared.
    """
    kappa = _known(row["value"])
    interval = _bounds(row["low"], row["high"])
    doubts = _doubts_of_agreement(kappa, interval, n_films)
    return TimelineAgreement(
        who=(model,),
        what=annotator,
        time=ClaimTime("judged", judged_s),
        number=kappa,
        interval=interval,
        conditions=doubts if is_all_answered else (*doubts, ANSWERED_TIME),
        n_films=n_films,
        whole_s=whole_s,
    )


def _doubts_of_agreement(kappa: float | None, interval: Bounds | None, n_films: int) -> tuple[str, ...]:
    """Return the conditions that make a mean kappa over films doubtful (`kinds`); none if nothing does.

    With an interval over films, it is whether this contains 0, or lies below it. Without one, it is why there
    is none, and whether the mean itself is not above 0.

    Parameters
    ----------
    kappa
        The mean; None if it is not defined.
    interval
        Its interval over films; None if there are too few films, or if all of them have the same kappa.
    n_films
        Films that were compared.
    """
    if interval is not None:
        return doubts_of_kappa(interval.low, interval.high)
    if kappa is None:
        return ()  # there is no number to doubt
    why_no_interval = _why_no_interval(n_films)
    is_printed_above_0 = round(kappa, 2) > 0
    if not is_printed_above_0:
        return (why_no_interval, AGREE_BY_CHANCE)
    # Without an interval, only the p-value in the table of metrics tells whether kappa is above chance.
    return (why_no_interval,)


def _why_no_interval(n_films: int) -> str:
    """Return the condition that says why a mean over films has no interval."""
    return TOO_FEW_FILMS if n_films < MIN_WITH_INTERVAL else FILMS_ALIKE


def learnt_change(model: str, change: "FilmInterval", *, is_of_judged: bool) -> LearntChange:
    """Claim by how much learning from judgements changed a model's AUC: a mean change over films.

    The films are the judged ones, each left out in turn (`is_of_judged`); else they are those of the corpus.
    """
    interval = _bounds(change.low, change.high)
    return LearntChange(
        who=(model,),
        what="AUC",
        time=OTHER_FILMS,
        number=_known(change.mean),
        interval=interval,
        conditions=() if interval is not None else (_why_no_interval(change.n_movies),),
        n_films=change.n_movies,
        is_of_judged=is_of_judged,
    )
