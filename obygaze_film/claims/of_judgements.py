"""Compute what may be said of a film by what people judged: shares, how far judges agree, decisions."""

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from obygaze_features.arguments import checked
from obygaze_film.claims.kinds import (
    AGREE_BY_CHANCE,
    AGREE_LESS,
    AGREED,
    ALL_JUDGED,
    BLIND,
    EARLIER_LAW,
    IN_SIGHT,
    NO_INTERVAL,
    NO_SCORE,
    NOT_SURE,
    OF_CONCEPT,
    PARTLY_READ,
    SEVERAL_DEFINITIONS,
    SOME_BY_CHANCE,
    SOME_LESS,
    SOME_UNDEFINED,
    TOO_FEW,
    UNDEFINED,
    Bounds,
    ClaimTime,
    DecidedSpan,
    FilmClaim,
    JudgedShare,
    ManyPairs,
    NoJudgedShare,
    PairKappa,
    PanelAgreement,
    ShareSoFar,
)
from obygaze_film.claims.of_film import LEVEL
from obygaze_film.film_time import MIN_SAID_S
from obygaze_film.judged_windows import MIN_SURE_WINDOWS
from obygaze_film.schema import CorrectedRate, JudgesAgreement, JudgesAlpha, TooFewJudged

if TYPE_CHECKING:
    from obygaze_film.judged_rate import FilmRates

CONTENT = ClaimTime("content")

DOUBTS_OF_SOME: Final = {AGREE_LESS: SOME_LESS, AGREE_BY_CHANCE: SOME_BY_CHANCE, UNDEFINED: SOME_UNDEFINED}
"""Condition of a pair of judges -> that of a panel of which only some pairs have it; the gravest first."""


@checked
def rate_claims(found: "FilmRates") -> list[FilmClaim]:
    """Compute the claims on a film's rates by one model.

    Parameters
    ----------
    found : FilmRates
        The rates, which were estimated from what people judged.

    Returns
    -------
    list of Claim
        Each judge's share, that of all together if there is one, and how far they agree. Of judges without a
        share, that they have none.
    """
    has_several = _has_several_definitions(found)
    claims: list[FilmClaim] = []
    claims += [judged_share(rate, has_several_definitions=has_several) for rate in found.rates]
    claims += [no_judged_share(judges, has_several_definitions=has_several) for judges in found.too_few]
    claims += agreement_claims(found, has_several_definitions=has_several)
    return claims


def _has_several_definitions(rates: "FilmRates") -> bool:
    """Whether a film was judged under several definitions."""
    if rates.n_definitions > 1:
        return True
    # The number may not have been counted: it is 1 by default.
    definitions = {rate.definition for rate in rates.rates}
    definitions |= {judges.definition for judges in rates.too_few}
    return len(definitions) > 1


def agreement_claims(rates: "FilmRates", *, has_several_definitions: bool = False) -> list[FilmClaim]:
    """Claim how far every two judges of a film agree, and three or more together.

    `rates` are the film's rates, which have the agreement of its judges too. If the film was judged under
    several definitions, the claims on two judges state the definition.
    """
    positive = positive_in(rates)
    claims: list[FilmClaim] = [
        pair_agreement(pair, positive, has_several_definitions=has_several_definitions)
        for pair in rates.agreement
    ]
    if rates.alpha is not None:
        claims.append(panel_agreement(rates.alpha, positive))
    return claims


def positive_in(rates: "FilmRates") -> str:
    """Return what a film's rates count as positive, such as a level; empty if it has no rate."""
    return rates.rates[0].positive if rates.rates else ""


def no_judged_share(judges: TooFewJudged, *, has_several_definitions: bool = False) -> NoJudgedShare:
    """Claim that a judge, or a panel, has no share: they were sure of too few windows.

    If the film was judged under several definitions, the claim states the definition.
    """
    conditions = [BLIND, TOO_FEW]
    if judges.left == 0:  # no window is left to judge
        conditions.append(ALL_JUDGED)
    return NoJudgedShare(
        who=tuple(judges.judges),
        what="share",
        time=CONTENT,
        conditions=tuple(conditions),
        judged=judges.judged,
        sure=judges.sure,
        left=judges.left,
        least=judges.least,
        after_gap=judges.after_gap,
        definition=judges.definition if has_several_definitions else "",
        definition_name=judges.definition_name,
    )


def _time_of(rate: CorrectedRate) -> ClaimTime:
    """Return the time that a share is about: the film's content, with its length in seconds.

    Content is the film without black and credits. The windows of which judges were not sure are excluded too;
    then the part is called "sure".
    """
    part = "sure" if rate.n_unsure else "content"
    return ClaimTime(part, rate.content_s)


def _time_of_windows(n_unsure: int) -> ClaimTime:
    """Return the time that an agreement is about: content, less windows left out as judges were not sure."""
    return ClaimTime("sure") if n_unsure else CONTENT


def _partly_read(rate: CorrectedRate) -> tuple[str, ...]:
    """Return `PARTLY_READ` if enough of the film could not be read for a sentence to say so; else nothing."""
    return (PARTLY_READ,) if rate.unread_s >= MIN_SAID_S else ()


def _sure_alone(n_unsure: int) -> tuple[str, ...]:
    """Return `NOT_SURE` if windows were left out because judges were not sure of them; else nothing."""
    return (NOT_SURE,) if n_unsure else ()


def _doubts_of_panel(pairs: Sequence[PairKappa]) -> list[str]:
    """Return the conditions that make the agreement of a panel doubtful, from those of its pairs of judges.

    A condition of all pairs, such as `AGREE_LESS`, is one of the panel. For a condition of some pairs, the
    panel has another one, such as `SOME_LESS` (`DOUBTS_OF_SOME`).
    """
    doubts = []
    for doubt_of_all, doubt_of_some in DOUBTS_OF_SOME.items():
        n_doubtful = sum(pair.has(doubt_of_all) for pair in pairs)
        if n_doubtful == 0:
            continue
        doubts.append(doubt_of_all if n_doubtful == len(pairs) else doubt_of_some)
    return doubts


def judged_share(rate: CorrectedRate, *, has_several_definitions: bool = False) -> JudgedShare:
    """Claim the share of a film that a judge, or several together, would call positive, with its interval.

    If the film was judged under several definitions, a sentence must name this one.
    """
    agreement = tuple(pair_agreement(pair, rate.positive) for pair in rate.agreement)
    # A share of all windows is counted, not estimated.
    interval = None if rate.is_census else Bounds(rate.low, rate.high, rate.level)
    return JudgedShare(
        who=tuple(rate.annotators),
        what=rate.positive,
        time=_time_of(rate),
        number=rate.value,
        interval=interval,
        conditions=_conditions_of_share(rate, agreement, has_several_definitions=has_several_definitions),
        model=rate.model,
        n=rate.n,
        n_windows=rate.n_rows - rate.n_unsure,
        positives=tuple(rate.positives),
        worth=rate.worth,
        n_unsure=rate.n_unsure,
        unsure_s=rate.unsure_s,
        expected=rate.expected,
        expected_s=rate.expected_s,
        is_of_labels=rate.is_of_labels,
        is_corrected=rate.method == "difference",  # the only method that uses the probabilities
        definition=rate.definition,
        definition_name=rate.definition_name,
        agreement=agreement,
    )


def _conditions_of_share(
    rate: CorrectedRate, agreement: Sequence[PairKappa], *, has_several_definitions: bool
) -> tuple[str, ...]:
    """Return what must be known to read a judged share: conditions, which are constants of `kinds`.

    Parameters
    ----------
    rate : CorrectedRate
        The share.
    agreement : sequence of PairKappa
        Of every two of its judges.
    has_several_definitions : bool
        Whether the film was judged under several definitions.
    """
    conditions = [BLIND, *_partly_read(rate)]
    if rate.is_census:
        conditions.append(ALL_JUDGED)
    conditions += _sure_alone(rate.n_unsure)
    if has_several_definitions:
        conditions.append(SEVERAL_DEFINITIONS)
    if rate.is_of_concept:
        conditions.append(OF_CONCEPT)
    if rate.is_of_panel:
        conditions += _doubts_of_panel(agreement)
    return tuple(conditions)


def _doubts_of_pair(pair: JudgesAgreement) -> tuple[str, ...]:
    """Return the condition that makes the agreement of two judges doubtful.

    Empty if their kappa is shown to be above 0.
    """
    if pair.n < MIN_SURE_WINDOWS:
        return (TOO_FEW,)
    if pair.kappa is None:
        return (UNDEFINED,)
    return doubts_of_kappa(pair.low, pair.high)


def doubts_of_kappa(low: float | None, high: float | None) -> tuple[str, ...]:
    """Return the condition that makes an agreement doubtful; empty if its kappa's interval is above 0.

    The ends are None without an interval.
    """
    if high is not None and high < 0:
        return (AGREE_LESS,)
    may_be_0 = low is None or round(low, 2) <= 0  # rounded as it is printed
    return (AGREE_BY_CHANCE,) if may_be_0 else ()


def pair_agreement(
    pair: JudgesAgreement, positive: str, *, has_several_definitions: bool = False
) -> PairKappa:
    """Claim how far two judges agree on which windows are positive, by Cohen's kappa.

    There is no kappa if both were sure of fewer than `MIN_SURE_WINDOWS` windows. If the film was judged under
    several definitions, the claim states the definition.
    """
    # Files of earlier versions also have kappas of too few windows: these are not claimed.
    has_enough_windows = pair.n >= MIN_SURE_WINDOWS
    interval = None
    if has_enough_windows and pair.low is not None and pair.high is not None:
        interval = Bounds(pair.low, pair.high, LEVEL)
    return PairKappa(
        who=tuple(pair.annotators),
        what="kappa",
        time=_time_of_windows(pair.n_unsure),
        number=pair.kappa if has_enough_windows else None,
        interval=interval,
        conditions=(*_doubts_of_pair(pair), *_sure_alone(pair.n_unsure)),
        positive=positive,
        n=pair.n,
        alike=pair.alike,
        n_unsure=pair.n_unsure,
        definition=pair.definition if has_several_definitions else "",
        definition_name=pair.definition_name,
    )


def pairs_agreement(pairs: Sequence[JudgesAgreement]) -> ManyPairs | None:
    """Claim the median and the range of the kappas of pairs of judges; None if none is defined."""
    kappas = sorted(pair.kappa for pair in pairs if pair.kappa is not None and pair.n >= MIN_SURE_WINDOWS)
    if not kappas:
        return None
    judges = dict.fromkeys(name for pair in pairs for name in pair.annotators)
    return ManyPairs(
        who=tuple(judges),
        what="kappa",
        time=CONTENT,
        number=median(kappas),
        interval=Bounds(kappas[0], kappas[-1], level=1.0),  # the range, which contains 100 % of the kappas
        n_pairs=len(kappas),
    )


def panel_agreement(alpha: JudgesAlpha, positive: str) -> PanelAgreement:
    """Claim how far three judges or more agree on which windows are positive, by Krippendorff's alpha.

    `positive` says what is positive. The condition `NO_INTERVAL` says that alpha has no interval.
    """
    return PanelAgreement(
        who=tuple(alpha.annotators),
        what="alpha",
        time=_time_of_windows(alpha.n_unsure),
        number=alpha.value,
        conditions=(NO_INTERVAL, *_sure_alone(alpha.n_unsure)),
        positive=positive,
        n_windows=alpha.n_windows,
        n_unsure=alpha.n_unsure,
    )


def share_so_far(
    who: str, ends: tuple[float, float], rate: CorrectedRate, *, was_drawn_by_earlier_version: bool
) -> ShareSoFar:
    """Claim an interval of a film's share that is valid whenever its judge stops; its number is the width.

    The usual interval is narrower, but holds only if the number of windows was fixed before judging. Its
    width is given for comparison (`ShareSoFar.fixed`).

    Parameters
    ----------
    who : str
        The judge.
    ends : (float, float)
        Lower and upper end of the interval that is valid at any time, as shares from 0 to 1.
    rate : CorrectedRate
        The estimate from the same judgements, with the usual interval.
    was_drawn_by_earlier_version : bool
        Whether the windows were drawn by an earlier version, which did not record how it draws.
    """
    low, high = ends
    conditions = [BLIND, *_partly_read(rate), *_sure_alone(rate.n_unsure)]
    if was_drawn_by_earlier_version:
        conditions.append(EARLIER_LAW)
    return ShareSoFar(
        who=(who,),
        what=rate.positive,
        time=_time_of(rate),
        number=high - low,
        interval=Bounds(low, high, LEVEL),
        conditions=tuple(conditions),
        n_unsure=rate.n_unsure,
        unsure_s=rate.unsure_s,
        fixed=rate.high - rate.low,
    )


def decision(
    judges: Sequence[str], title: str, time: ClaimTime, *, is_blind: bool, is_agreed: bool, has_score: bool
) -> DecidedSpan:
    """Claim which level people gave to a span, and whether they saw the model's score of it.

    `is_blind` says that they decided without seeing the score, and `is_agreed` that several judges agreed on
    the level, of this `title`, together. Without a probability of the model there (`has_score`), nobody can
    see a score.
    """
    conditions = [AGREED] if is_agreed else []
    if is_blind:
        conditions.append(BLIND)
    elif has_score:
        conditions.append(IN_SIGHT)
    else:
        conditions.append(NO_SCORE)
    return DecidedSpan(who=tuple(judges), what=title, time=time, conditions=tuple(conditions))
