"""Compute what may be said of several films: shares of groups, changes, agreement, and what learning did."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from obygaze_features.arguments import checked
from obygaze_film.claims.kinds import (
    NOT_SURE,
    OF_CONCEPT,
    OF_LABELS,
    OTHER_JUDGES,
    PARTLY_READ,
    REFUSED,
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
from obygaze_film.claims.of_judgements import CONTENT, judged_share, pair_agreement, panel_agreement
from obygaze_film.notes import LATER
from obygaze_film.positive import Positive

if TYPE_CHECKING:
    import pandas as pd

    from obygaze_film.film_groups import ComparedFilm, FilmComparison
    from obygaze_models.evaluation import Interval as FilmInterval


SURE: Final = ClaimTime("sure")
"""A film's time without black, credits and what was left out as judges were not sure."""


@checked
def group_claims(compared: "FilmComparison") -> list[FilmClaim]:
    """Compute the claims on groups of films: shares, differences and the trend, and how far judges agree.

    Parameters
    ----------
    compared : FilmComparison
    """
    positive = compared.positive
    shares = [group_share(row, positive) for row in _rows(compared.groups)]
    changes = [group_change(row, positive) for row in _rows(compared.changes)]
    pairs = [pair_agreement(pair, positive.text) for pair in compared.agreement]
    panel = [] if compared.alpha is None else [panel_agreement(compared.alpha, positive.text)]
    same = same_share(compared)
    return [*shares, *changes, *pairs, *panel, *([] if same is None else [same])]


def same_share(compared: "FilmComparison") -> SameShare | None:
    """Tell that the model expects the same share of all films; None where it does not, or of one film."""
    known = [film.expected for film in compared.films if not np.isnan(film.expected)]
    if compared.is_of_labels or len(known) < 2 or np.ptp(known) > SAME:
        return None
    return SameShare(
        who=(compared.model,),
        what=compared.positive.text,
        time=ClaimTime("judged"),
        number=known[0],
        n_films=len(known),
    )


def _rows(table: "pd.DataFrame") -> list[dict[Any, Any]]:
    return table.to_dict(orient="records")


def group_share(row: Mapping[Any, Any], positive: Positive) -> GroupShare:
    """Make a claim of a row of `FilmComparison.groups`."""
    number = _known(row["value"])
    conditions = (REFUSED,) if number is None else ()
    time = CONTENT
    if row["n_unsure"] or row.get("has_unsure"):
        conditions, time = (*conditions, NOT_SURE), SURE
    if row.get("has_unread"):
        conditions = (*conditions, PARTLY_READ)
    if row.get("is_mixed"):
        conditions = (*conditions, OTHER_JUDGES)
    if positive.is_concept:
        conditions = (*conditions, OF_CONCEPT)
    return GroupShare(
        who=_judges(row),
        what=positive.text,
        time=time,
        number=number,
        interval=_interval(row),
        conditions=conditions,
        group=row["group"],
        n_films=int(row["n_films"]),
        n_judged=int(row["n_judged"]),
        n_windows=int(row["n_windows"]),
        worth=_known(row["worth"]),
        expected=_known(row["expected"]),
        n_expected=int(row["n_expected"]),
        reason=row["reason"],
        note=row.get("note", ""),
    )


def group_change(row: Mapping[Any, Any], positive: Positive) -> GroupChange:
    """Make a claim of a row of `FilmComparison.changes`."""
    number = _known(row["value"])
    conditions = (REFUSED,) if number is None else ()
    time = CONTENT
    if row.get("has_unsure"):
        conditions, time = (*conditions, NOT_SURE), SURE
    return GroupChange(
        who=_judges(row),
        what=positive.text,
        time=time,
        number=number,
        interval=_interval(row),
        conditions=conditions,
        change=row["change"],
        is_by_decade=row["change"] == LATER,
        n_films=int(row["n_films"]),
        n_judged=int(row["n_judged"]),
        note=row["note"],
        reason=row["reason"],
    )


def _judges(row: Mapping[Any, Any]) -> tuple[str, ...]:
    names = str(row["judges"])
    return tuple(names.split(", ")) if names else ()


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(row: Mapping[Any, Any]) -> Bounds | None:
    if np.isnan(row["low"]) or np.isnan(row["high"]):
        return None
    return Bounds(float(row["low"]), float(row["high"]), LEVEL)


def compared_share(film: "ComparedFilm", compared: "FilmComparison") -> JudgedShare | ExpectedShare:
    """Take the share of one of several films: that of its judges, else the model's, or that of labels."""
    if film.rate is not None:
        return replace(judged_share(film.rate), left_out=film.judges_left_out)
    model = film.timeline.model(None if compared.is_of_labels else compared.model)
    claim = expected_share(model, film.timeline.rows(model.key))
    if compared.is_of_labels:
        claim = replace(claim, who=(compared.model,), conditions=(OF_LABELS,))
    return replace(claim, number=_known(film.expected))


def timeline_agreement(model: str, annotator: str, row: Mapping[Any, Any]) -> TimelineAgreement:
    """Make a claim of the row of kappa of `FilmEvaluation.summary`."""
    return TimelineAgreement(
        who=(model,),
        what=annotator,
        time=ClaimTime("film"),
        number=_known(row["value"]),
        interval=_interval(row),
        n_films=int(row["n_films"]),
    )


def learnt_change(model: str, change: "FilmInterval", *, is_of_judged: bool) -> LearntChange:
    """Make a claim of how much learning changed the AUC (`learning.change_of`)."""
    ends = {"low": change.low, "high": change.high}
    return LearntChange(
        who=(model,),
        what="AUC",
        time=OTHER_FILMS,
        number=_known(change.mean),
        interval=_interval(ends),
        n_films=change.n_movies,
        is_of_judged=is_of_judged,
    )
