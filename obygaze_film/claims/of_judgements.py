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
from obygaze_film.film_time import LEAST_SAID_S
from obygaze_film.judged_windows import LEAST_SURE
from obygaze_film.schema import CorrectedRate, JudgesAgreement, JudgesAlpha, TooFewJudged

if TYPE_CHECKING:
    from obygaze_film.judged_rate import FilmRates

CONTENT = ClaimTime("content")

DOUBTS: Final = {AGREE_LESS: SOME_LESS, AGREE_BY_CHANCE: SOME_BY_CHANCE, UNDEFINED: SOME_UNDEFINED}
"""Condition of two judges' agreement -> that of a panel of which it holds for some; the gravest first."""


@checked
def rate_claims(found: "FilmRates") -> list[FilmClaim]:
    """Compute the claims on a film's rates by one model.

    Parameters
    ----------
    found : FilmRates

    Returns
    -------
    list of Claim
        Each judge's share, that of all together if there is one, and how far they agree.
    """
    definitions = {rate.definition for rate in found.rates} | {few.definition for few in found.too_few}
    are_several = len(definitions) > 1 or found.n_definitions > 1
    claims: list[FilmClaim] = [judged_share(rate, is_one_of_definitions=are_several) for rate in found.rates]
    claims += [no_judged_share(few, is_one_of_definitions=are_several) for few in found.too_few]
    return [*claims, *agreement_claims(found, is_of_several_definitions=are_several)]


def agreement_claims(found: "FilmRates", *, is_of_several_definitions: bool = False) -> list[FilmClaim]:
    """Claim how far every two judges agree, and three or more together."""
    positive = positive_in(found)
    claims: list[FilmClaim] = [
        pair_agreement(pair, positive, is_one_of_definitions=is_of_several_definitions)
        for pair in found.agreement
    ]
    if found.alpha is not None:
        claims.append(panel_agreement(found.alpha, positive))
    return claims


def positive_in(found: "FilmRates") -> str:
    """Return what the judges of a film call windows, or do not: what its rates are of."""
    return next((rate.positive for rate in found.rates), "")


def no_judged_share(few: TooFewJudged, *, is_one_of_definitions: bool = False) -> NoJudgedShare:
    """Say that a judge, or several together, have no share, as too few windows were judged."""
    return NoJudgedShare(
        who=tuple(few.judges),
        what="share",
        time=CONTENT,
        conditions=(BLIND, TOO_FEW, *(() if few.left else (ALL_JUDGED,))),
        judged=few.judged,
        sure=few.sure,
        left=few.left,
        least=few.least,
        definition=few.definition if is_one_of_definitions else "",
        definition_name=few.definition_name,
    )


def _time_of(rate: CorrectedRate) -> ClaimTime:
    """Return the time that a share is of: without windows of which its judges were not sure."""
    return ClaimTime("sure" if rate.n_unsure else "content", rate.content_s)


def _time_of_windows(n_unsure: int) -> ClaimTime:
    """Return the time that an agreement is of: windows of which not both, or two, were sure are left out."""
    return ClaimTime("sure") if n_unsure else CONTENT


def _partly_read(rate: CorrectedRate) -> tuple[str, ...]:
    """Tell whether a part of the film that is worth saying could not be read, and is in no share."""
    return (PARTLY_READ,) if rate.unread_s >= LEAST_SAID_S else ()


def _sure_alone(n_unsure: int) -> tuple[str, ...]:
    return (NOT_SURE,) if n_unsure else ()


def _panel_doubts(pairs: Sequence[PairKappa]) -> list[str]:
    """Tell what makes the agreement of a panel doubtful: of all of its pairs, or of some."""
    doubts = []
    for doubt, of_some in DOUBTS.items():
        n_pairs = sum(pair.has(doubt) for pair in pairs)
        if n_pairs:
            doubts.append(doubt if n_pairs == len(pairs) else of_some)
    return doubts


def judged_share(rate: CorrectedRate, *, is_one_of_definitions: bool = False) -> JudgedShare:
    """Take whose share of a film it is, with its interval.

    Parameters
    ----------
    rate : CorrectedRate
    is_one_of_definitions : bool
        Whether the film was judged under several definitions, so that a sentence must name this one.
    """
    agreement = tuple(pair_agreement(pair, rate.positive) for pair in rate.agreement)
    conditions = [BLIND, *_partly_read(rate)]
    if rate.is_census:
        conditions.append(ALL_JUDGED)
    if rate.n_unsure:
        conditions.append(NOT_SURE)
    if is_one_of_definitions:
        conditions.append(SEVERAL_DEFINITIONS)
    if rate.is_of_concept:
        conditions.append(OF_CONCEPT)
    if rate.is_of_panel:
        conditions += _panel_doubts(agreement)
    return JudgedShare(
        who=tuple(rate.annotators),
        what=rate.positive,
        time=_time_of(rate),
        number=rate.value,
        interval=None if rate.is_census else Bounds(rate.low, rate.high, rate.level),
        conditions=tuple(conditions),
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
        is_corrected=rate.method == "difference",
        definition=rate.definition,
        definition_name=rate.definition_name,
        agreement=agreement,
    )


def _doubts(pair: JudgesAgreement) -> tuple[str, ...]:
    """Tell what makes the agreement of two judges doubtful: kappa is undefined, below 0, or may be 0."""
    if pair.n < LEAST_SURE:
        return (TOO_FEW,)
    if pair.kappa is None:
        return (UNDEFINED,)
    if pair.high is not None and pair.high < 0:
        return (AGREE_LESS,)
    if pair.low is None or round(pair.low, 2) <= 0:  # as it is printed
        return (AGREE_BY_CHANCE,)
    return ()


def pair_agreement(pair: JudgesAgreement, positive: str, *, is_one_of_definitions: bool = False) -> PairKappa:
    """Take how far two judges agree as to what is positive; of too few windows there is no kappa."""
    is_enough = pair.n >= LEAST_SURE  # earlier versions kept a kappa of any number
    is_known = is_enough and pair.low is not None and pair.high is not None
    return PairKappa(
        who=tuple(pair.annotators),
        what="kappa",
        time=_time_of_windows(pair.n_unsure),
        number=pair.kappa if is_enough else None,
        interval=Bounds(pair.low or 0.0, pair.high or 0.0, LEVEL) if is_known else None,
        conditions=(*_doubts(pair), *_sure_alone(pair.n_unsure)),
        positive=positive,
        n=pair.n,
        alike=pair.alike,
        n_unsure=pair.n_unsure,
        definition=pair.definition if is_one_of_definitions else "",
        definition_name=pair.definition_name,
    )


def pairs_agreement(pairs: Sequence[JudgesAgreement]) -> ManyPairs | None:
    """Sum up the kappas of pairs of judges; None where none is defined."""
    kappas = sorted(pair.kappa for pair in pairs if pair.kappa is not None and pair.n >= LEAST_SURE)
    if not kappas:
        return None
    judges = dict.fromkeys(name for pair in pairs for name in pair.annotators)
    return ManyPairs(
        who=tuple(judges),
        what="kappa",
        time=CONTENT,
        number=median(kappas),
        interval=Bounds(kappas[0], kappas[-1], 1.0),
        n_pairs=len(kappas),
    )


def panel_agreement(alpha: JudgesAlpha, positive: str) -> PanelAgreement:
    """Take how far three judges or more agree as to what is positive."""
    return PanelAgreement(
        who=(),
        what="alpha",
        time=_time_of_windows(alpha.n_unsure),
        number=alpha.value,
        conditions=(NO_INTERVAL, *_sure_alone(alpha.n_unsure)),
        positive=positive,
        n_judges=alpha.n_judges,
        n_windows=alpha.n_windows,
        n_unsure=alpha.n_unsure,
    )


def share_so_far(
    who: str, ends: tuple[float, float], rate: CorrectedRate, *, is_of_earlier_law: bool
) -> ShareSoFar:
    """Claim an interval of a film's share that is valid whenever its judge stops.

    The usual interval is narrower, but holds only for a number of windows that was fixed before judging; its
    width is kept beside.

    Parameters
    ----------
    who : str
        The judge.
    ends : (float, float)
        Lower and upper end of the interval that is valid at any time, as shares from 0 to 1.
    rate : CorrectedRate
        The estimate from the same judgements, with the usual interval.
    is_of_earlier_law : bool
        Whether the windows were drawn by an earlier version, which did not record how it draws.
    """
    low, high = ends
    conditions = [BLIND, *_partly_read(rate)]
    if rate.n_unsure:
        conditions.append(NOT_SURE)
    if is_of_earlier_law:
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
    """Tell what was decided of a span, and whether blindly, in sight of the model's score, or where is none.

    Parameters
    ----------
    judges : sequence of str
    title : str
        The level's.
    time : ClaimTime
    is_blind, is_agreed : bool
    has_score : bool
        Whether the model has a probability there.
    """
    conditions = [AGREED] if is_agreed else []
    if is_blind:
        conditions.append(BLIND)
    else:
        conditions.append(IN_SIGHT if has_score else NO_SCORE)
    return DecidedSpan(who=tuple(judges), what=title, time=time, conditions=tuple(conditions))
