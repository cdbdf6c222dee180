"""Estimate a film's rate from blind judgements; a model, right or wrong, narrows the interval."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from obygaze_features.io import write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.manifest import DEFINITION, Manifest
from obygaze_features.text import rounded
from obygaze_features.untrusted import decoded
from obygaze_film.cells import Cells, Floats, annotator_of, cells_by, cells_of
from obygaze_film.draws import SUCCESSIVE
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import (
    MIN_SURE_WINDOWS,
    JudgedFilm,
    JudgedWindows,
    JudgementFilter,
    WindowCounts,
    blind_judgements,
    judged_film,
    keep_blind,
    least_sure,
    left_out_message,
    needed_windows,
    refuse_labels_of_drawn_windows,
    votes,
)
from obygaze_film.kappa_interval import NO_KAPPA, kappa_interval
from obygaze_film.notes import Message, message
from obygaze_film.positive import positive_of
from obygaze_film.rate_estimates import LEVEL, Estimates, estimate_rate
from obygaze_film.schema import (
    UNREADABLE,
    CorrectedRate,
    JudgesAgreement,
    JudgesAlpha,
    TooFewJudged,
    refuse_texts,
)
from obygaze_film.scored_files import RATES, bytes_of
from obygaze_film.timeline import Timeline

MAX_PAIRS: Final = 100
"""Largest number of pairs of judges whose agreement is computed; if there are more, this many are drawn."""

FORMAT_NUMBER: Final = 6
"""Number of the format of `rate.json`."""

N_ADVISED: Final = 30
"""How many windows to judge an error advises, if the film has so many."""


class FilmRates(Struct, frozen=True):
    """What the blind judgements of a film say of its rate, corrected with one model.

    Attributes
    ----------
    rates : tuple of CorrectedRate
        The rates of single judges, by name, and at the end that of all of them together (the panel's). A
        judge, or the panel, that judged too few windows has none here.
    agreement : tuple of JudgesAgreement
        Of every two judges.
    alpha : JudgesAlpha or None
        Of the judges who share a window with another; None of fewer than three, of too few windows, or where
        it is undefined.
    too_few : tuple of TooFewJudged
        The judges without a rate, and the panel if it has none.
    notices : tuple of str
        What was left out, and why.
    n_definitions : int
        Under how many definitions the film was judged, whether or not there is a rate under each.
    """

    rates: tuple[CorrectedRate, ...]
    agreement: tuple[JudgesAgreement, ...] = ()
    alpha: JudgesAlpha | None = None
    too_few: tuple[TooFewJudged, ...] = ()
    notices: tuple[str, ...] = ()
    n_definitions: int = 1


def correct_rates(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
    of_all_films: Manifest | None = None,
) -> FilmRates:
    """Correct a film's rate by the blind judgements of each judge, and of all together (the panel).

    A judge's rate comes from the windows that the judge was sure of. Windows count in the order of the draw,
    up to the first one that the judge did not judge. At least 10 windows are needed, unless no window is left
    to judge. The panel's rate is the mean of its judges' rates, from windows that all of them were sure of.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, not drawn blindly, or made with the score in sight are left out.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    labels : Manifest, optional
        Labels of the film's windows by one annotator, such as a machine, in place of the model's
        probabilities.
    of_all_films : Manifest, optional
        The judges' judgements of all films, which say who names concepts at all; by default `judgements`.

    Raises
    ------
    FilmError
        Nobody was sure of 10 cells of this film or judged all of it, or the judgements are of two draws.
    ManifestError
        They were made under two definitions.
    """
    film = judged_film(timeline, judgements, key, has_labels=labels is not None, of_all_films=of_all_films)
    windows_of = {judge: film.of(judge) for judge in film.judges}
    notices = [*film.notices, *film.notices_of_gaps()]
    some_judge_has_enough = any(windows.is_enough for windows in windows_of.values())
    if not some_judge_has_enough:
        raise _too_few(film, [windows.counts for windows in windows_of.values()], notices)

    pairs = agreement_of_judges([film])
    notices += notes_of_pairs(pairs)

    # Single judges: those with enough windows have a rate, the others are recorded without one.
    estimator = _Estimator(timeline, key, labels)
    rates = _rates_of_judges(estimator, windows_of)
    too_few = [
        _too_few_judged([judge], windows) for judge, windows in windows_of.items() if not windows.is_enough
    ]

    # All judges together, the panel
    if len(film.judges) > 1:
        panel_windows = film.panel()
        if panel_windows.is_enough:
            rates.append(_rate_of_panel(estimator, panel_windows, windows_of, rates))
        else:
            too_few.append(_too_few_judged(film.judges, panel_windows))

    return FilmRates(
        rates=tuple(_with_agreement(rate, pairs) for rate in rates),
        agreement=tuple(pairs.agreement),
        alpha=alpha_of_judges([film]),
        too_few=tuple(too_few),
        notices=tuple(notices),
    )


def _too_few_judged(judges: Sequence[str], windows: JudgedWindows) -> TooFewJudged:
    """Record that a judge, or a panel, has no rate, with the numbers of their windows."""
    return TooFewJudged(judges=[*judges], **windows.counts._asdict())


def _rates_of_judges(estimator: "_Estimator", windows_of: Mapping[str, JudgedWindows]) -> list[CorrectedRate]:
    """Estimate the rate of each judge who judged enough windows (`windows_of`: judge -> windows)."""
    return [estimator.rate(windows, [judge]) for judge, windows in windows_of.items() if windows.is_enough]


def _rate_of_panel(
    estimator: "_Estimator",
    windows: JudgedWindows,
    windows_of: Mapping[str, JudgedWindows],
    rates: Sequence[CorrectedRate],
) -> CorrectedRate:
    """Estimate the mean rate of several judges.

    The judges' own rates may narrow its interval (`_cut_at_mean_of_judges`), if each judge has one and all of
    them cover the same time as the panel's.

    Parameters
    ----------
    estimator : _Estimator
    windows : JudgedWindows
        Windows that all of them judged.
    windows_of : mapping
        Judge -> the windows that this judge judged.
    rates : sequence of CorrectedRate
        Rates of single judges, of all who have one.
    """
    rate = estimator.rate(windows, [*windows_of])
    all_have_rates = len(rates) == len(windows_of)
    # A rate covers all of the film but the windows that were left out as not sure.
    left_out = {*windows.unsure}
    cover_same_time = all({*of_judge.unsure} == left_out for of_judge in windows_of.values())
    if not (all_have_rates and cover_same_time):
        return rate
    return _cut_at_mean_of_judges(rate, rates)


def notes_of_pairs(pairs: "JudgePairs") -> list[str]:
    """Note that only some pairs of judges were compared, as a list of one note; [] if all were."""
    n_compared = len(pairs.agreement)
    if n_compared == pairs.n_pairs:
        return []
    return [message("note_pairs", n=n_compared, pairs=f"{pairs.n_pairs:,}")]


def rates_by_definition(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
    names: Mapping[str, str] | None = None,
    of_all_films: Manifest | None = None,
) -> FilmRates:
    """Correct a film's rate as `correct_rates` does, for each definition that it was judged under by itself.

    Only definitions of blind judgements of drawn windows count (`blind_judgements`). If there are several,
    judgements that do not say under which they were made are left out and counted.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, not drawn blindly, or made with the score in sight are left out.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    labels : Manifest, optional
        Labels of the film's windows by one annotator, such as a machine, in place of the model's
        probabilities.
    names : mapping of str to str, optional
        Digest of a definition -> its name (`Meanings.names`).
    of_all_films : Manifest, optional
        The judges' judgements of all films, which say who names concepts at all under the same definition; by
        default `judgements`.

    Raises
    ------
    FilmError
        There is a rate under no definition: nobody was sure of 10 cells of the film or judged all of it, or
        the judgements are of two draws.
    """
    # The definitions under which the film was judged blindly
    judgements = judgements.spelled_as([timeline.movie])
    of_film = judgements.with_clips(clip for clip in judgements if clip.movie == timeline.movie)
    definitions = [*blind_judgements(of_film).definitions]  # digests
    judged_anywhere = judgements if of_all_films is None else of_all_films
    names = names or {}

    # One, or none that is stated: the film is corrected once, by all judgements. Judgements of other films
    # are passed on too, as a note counts them.
    if len(definitions) < 2:
        if definitions:
            judged_anywhere = _not_under_another(judged_anywhere, definitions[0])
        film_rates = correct_rates(timeline, judgements, key, labels=labels, of_all_films=judged_anywhere)
        definition = definitions[0] if definitions else ""
        return _with_definition(film_rates, definition, names.get(definition, ""))

    # Correct the rate under each definition by itself.
    rates_of_definitions: list[FilmRates] = []
    notices: list[str] = []
    for definition in definitions:
        name = names.get(definition, "")
        phrase = definition_phrase(definition, name)
        under_it = [clip for clip in of_film if clip.extras.get(DEFINITION) == definition]
        of_all_films_under_it = judged_anywhere.with_clips(
            clip for clip in judged_anywhere if clip.extras.get(DEFINITION) == definition
        )
        try:
            film_rates = correct_rates(
                timeline,
                of_film.with_clips(under_it),
                key,
                labels=labels,
                of_all_films=of_all_films_under_it,
            )
        except FilmError as error:  # too few judgements under this definition
            notices += _notices_of_definition(phrase, [error.args[0]])
            continue
        rates_of_definitions.append(_with_definition(film_rates, definition, name))
        notices += _notices_of_definition(phrase, film_rates.notices)

    # Note how many judgements are under none of these, for two reasons: some were not made blindly of drawn
    # windows (`keep_blind` takes these out, and notes them); what is left does not say its definition.
    under_none = [clip for clip in of_film if clip.extras.get(DEFINITION) not in definitions]
    not_counted = JudgementFilter((clip for clip in under_none if clip.level is not None), left_out_message)
    keep_blind(not_counted)
    not_counted.note_left_out(len(not_counted.clips), message("why_definition"))
    notices += not_counted.notices
    if not rates_of_definitions:
        raise FilmError(message("rate_definitions", movie=timeline.movie, notices="; ".join(notices)))

    return FilmRates(
        rates=tuple(rate for film_rates in rates_of_definitions for rate in film_rates.rates),
        agreement=tuple(pair for film_rates in rates_of_definitions for pair in film_rates.agreement),
        alpha=None,  # it is defined for judgements under one definition only
        too_few=tuple(judge for film_rates in rates_of_definitions for judge in film_rates.too_few),
        notices=tuple(notices),
        n_definitions=len(definitions),
    )


def _not_under_another(judgements: Manifest, definition: str) -> Manifest:
    """Leave out the judgements that say that they were made under another definition than this one."""
    return judgements.with_clips(
        clip for clip in judgements if clip.extras.get(DEFINITION, "") in {"", definition}
    )


def definition_phrase(definition: str, name: str) -> Message:
    """Name a definition by its codebook and version; by the start of its digest where these are not known."""
    if name:
        return message("definition_named", name=name)
    return message("definition_digest", digest=definition[:12])


def _notices_of_definition(definition: Message, notices: Sequence[str]) -> list[str]:
    """Add to notices the definition that they are of (`definition_phrase`)."""
    return [message("note_definition", definition=definition, notice=notice) for notice in notices]


def _with_definition(film_rates: FilmRates, definition: str, name: str) -> FilmRates:
    """Write under which definition a film was judged into its rates, agreements and missing rates.

    Parameters
    ----------
    film_rates : FilmRates
        Of the judgements under one definition.
    definition : str
        Digest of the definition; empty if the judgements do not say.
    name : str
        Its codebook and version; empty if that is not known.
    """
    named = {"definition": definition, "definition_name": name}
    rates = tuple(structs.replace(rate, **named) for rate in film_rates.rates)
    too_few = tuple(structs.replace(few, **named) for few in film_rates.too_few)
    agreement = tuple(structs.replace(pair, **named) for pair in film_rates.agreement)
    return structs.replace(film_rates, rates=rates, too_few=too_few, agreement=agreement)


def correct_rate(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    judge: str | None = None,
    labels: Manifest | None = None,
    of_all_films: Manifest | None = None,
) -> tuple[CorrectedRate, list[str]]:
    """Correct a film's rate by blind judgements of cells that `choose_next` drew.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, not drawn blindly, or made with the score in sight are left out. Cells of which
        judges were not sure are left out too: the rate refers to the others.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    judge : str, optional
        The judge whose rate is estimated; by default the mean rate of all judges, from windows that all of
        them judged.
    labels : Manifest, optional
        Labels of the film's windows by one annotator, such as a machine, in place of the model's
        probabilities.
    of_all_films : Manifest, optional
        The judges' judgements of all films, which say who names concepts at all; by default `judgements`.

    Returns
    -------
    rate : CorrectedRate
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        All judges were sure of fewer than 10 common cells of this film and did not judge all of it; the judge
        who is asked for was sure of none; or the judgements are of two draws.
    ManifestError
        They were made under two definitions.
    """
    film = judged_film(timeline, judgements, key, has_labels=labels is not None, of_all_films=of_all_films)
    notices = [*film.notices, *film.notices_of_gaps()]

    # Whose windows count, and are they enough?
    if judge is None:
        judges = film.judges
        windows = film.panel()
        has_rate = windows.is_enough
    elif judge not in film.judges:
        raise _too_few(film, [], notices)
    else:
        judges = (judge,)
        windows = film.of(judge)
        has_rate = windows.counts.sure > 0  # a judge who is named has a rate, however few they judged
    if not has_rate:
        raise _too_few(film, [windows.counts], notices)

    estimator = _Estimator(timeline, key, labels)
    if len(judges) > 1:
        windows_of = {name: film.of(name) for name in judges}
        rates = _rates_of_judges(estimator, windows_of)
        rate = _rate_of_panel(estimator, windows, windows_of, rates)
    else:
        rate = estimator.rate(windows, judges)

    pairs = agreement_of_judges([film])
    notices += notes_of_pairs(pairs)
    return _with_agreement(rate, pairs), notices


def main_rate(rates: Sequence[CorrectedRate]) -> CorrectedRate:
    """Choose the one rate that stands for a film: the panel's, else that of the judge of most windows."""
    return max(rates, key=lambda rate: (rate.is_of_panel, rate.n))


def _too_few(film: JudgedFilm, counts: Sequence[WindowCounts], notices: Sequence[str]) -> FilmError:
    """Make the error that a film has too few judgements for a rate.

    It says how many windows one judge judged, the one who was sure of most, and how many this judge would
    need. If no window is left to judge, it says that instead.

    Parameters
    ----------
    film : JudgedFilm
    counts : sequence of WindowCounts
        Of each judge; empty if nobody judged a window of this film.
    notices : sequence of str
        What was left out, and why.
    """
    n_windows = int((film.cells.content_s > 0).sum())
    of_nobody = WindowCounts(judged=0, sure=0, left=n_windows, least=least_sure(film.cells))
    of_best_judge = max(counts, key=lambda of_judge: (of_judge.sure, of_judge.judged), default=of_nobody)

    left_out = "; ".join(notices) or message("rate_none_out")
    known = {"movie": film.movie, "counted": counted_windows(of_best_judge), "notices": left_out}
    is_any_window_left = of_best_judge.left > 0
    if not is_any_window_left:
        return FilmError(message("rate_none_left", **known))
    needed = needed_windows(of_best_judge.judged, of_best_judge.left, of_best_judge.least)
    n_to_judge_in_all = _n_advised(of_best_judge)
    return FilmError(message("rate_few", **known, needed=needed, more=n_to_judge_in_all))


def _n_advised(counts: WindowCounts) -> int:
    """Return how many windows a judge is advised to judge in all, with those judged already.

    It is `N_ADVISED`. If they have judged many and were hardly sure of any, it is more: as many further ones
    as a share needs of which the judge is sure (`counts.least`). It is never more than the film has.
    """
    n_in_film = counts.judged + counts.left
    n_enough_if_sure = counts.judged + counts.least
    return min(max(N_ADVISED, n_enough_if_sure), n_in_film)


def counted_windows(counts: WindowCounts) -> str:
    """Say how many windows were judged blindly, such as "12 windows judged blindly, 9 of them surely".

    The second part is only written if the judges were not sure of all.
    """
    key = "counted" if counts.are_all_sure else "counted_sure"
    if counts.judged < 2:  # 0 and 1 have texts of their own
        key += f"_{counts.judged}"
    return message(key, judged=counts.judged, sure=counts.sure)


def estimate_windows(windows: JudgedWindows) -> Estimates:
    """Estimate the mean share of some judges from windows that all of them judged.

    The arrays of the estimates have the shape [1]: these judgements are one draw.
    """
    votes_of_cells = votes(windows.by_cell)
    return estimate_rate(
        windows.cells,
        votes_of_cells.cells[None, :],
        votes_of_cells.positive_shares[None, :],
        unsure=windows.unsure,
        sampling=windows.sampling,
        denominator=windows.denominator,
    )


def _cut_at_mean_of_judges(panel: CorrectedRate, rates: Sequence[CorrectedRate]) -> CorrectedRate:
    """Narrow a panel's interval to the mean of its judges' own intervals, where that is narrower.

    The panel's share is the mean of its judges' shares, and the standard deviation of a mean is at most the
    mean of the standard deviations. The judges' own intervals may be narrower, as each comes from all windows
    of that judge. `benchmarks/planted/judges.py` measures how often the narrowed interval holds the share.

    Parameters
    ----------
    panel : CorrectedRate
    rates : sequence of CorrectedRate
        Those of all its judges, of the same time.
    """
    low = max(panel.low, float(np.mean([rate.low for rate in rates])))
    high = min(panel.high, float(np.mean([rate.high for rate in rates])))
    # The interval must still contain the panel's share.
    return structs.replace(panel, low=min(low, panel.value), high=max(high, panel.value))


class _Estimator:
    """Estimate rates of one film by correcting a model's probabilities, or labels in their place.

    Attributes
    ----------
    name : str
        The model's key, or the labels' annotator.
    expected : float or None
        The film's rate without judgements, by the model or the labels; None if the model gives none.
    expected_s : float
        Seconds of the film that `expected` is a rate of.
    positive : Positive
    labelled : Cells or None
        Cells with the labels' shares in place of the model's probabilities; None without labels.
    """

    def __init__(self, timeline: Timeline, key: str | None, labels: Manifest | None) -> None:
        """Take from the labels, or else from the model, what helps to estimate a film's rate from judgements.

        That is a probability of each window, and the rate that is expected without judgements, with the
        seconds that it is of.

        Parameters
        ----------
        timeline : Timeline
        key : str or None
            The model; None for the first with logits.
        labels : Manifest or None
            Labels by one annotator that take the place of the model's probabilities.
        """
        model = timeline.model(key)
        self._movie = timeline.movie
        self.positive = positive_of(model)  # what the model finds
        self.labelled: Cells | None = None  # the film's windows with the labels' shares, if there are labels
        # `name` says whose the expected rate is: the model's, or the annotator's of the labels.
        if labels is None:
            cells = cells_of(timeline, key)
            self.name = model.key
            self.expected = model.rate.value
        else:
            cells = cells_by(labels, timeline, key)
            self.labelled = cells
            self.name = annotator_of(labels)
            self.expected = float(np.average(cells.p, weights=cells.content_s))
        self.expected_s = float(cells.counted_s.sum())  # seconds that the expected rate is of

    def rate(self, windows: JudgedWindows, judges: Sequence[str]) -> CorrectedRate:
        """Estimate the mean of some judges' shares of a film from windows that all of them judged.

        The result holds, beside the share and its interval, all that is said of it: how many windows it rests
        on, how many it refers to, how many the model saved, and what is expected without judgements.

        Parameters
        ----------
        windows : JudgedWindows
        judges : sequence of str
            Their names; one name for a judge's own share.
        """
        if self.labelled is not None:  # labels take the place of the model's probabilities
            refuse_labels_of_drawn_windows(self.labelled, windows, self._movie)
            cells = replace(windows.cells, p=self.labelled.p, counted_s=self.labelled.counted_s)
            windows = replace(windows, cells=cells)

        # Estimates are made for many draws at once. Here is one, so that each array has one value.
        estimates = estimate_windows(windows)
        uses_model = bool(estimates.gain[0] > 0)

        # How many windows the rate rests on, and how many of these are positive
        n_judged = len(windows.by_cell)
        positive_shares = votes(windows.by_cell).positive_shares  # of each window, over its judges
        answers_of_windows = windows.by_cell.values()  # of each window, judge -> whether it is positive
        n_positive_by = [sum(answers[judge] for answers in answers_of_windows) for judge in judges]

        # How many windows it refers to: those with content, without those that judges were not sure of
        n_windows_of_film = int((windows.cells.content_s > 0).sum())
        covered_s = windows.sure_cells.content_s
        n_windows_of_rate = int((covered_s > 0).sum())
        unsure_s = float(windows.cells.content_s[[*windows.unsure]].sum())

        return CorrectedRate(
            model=self.name,
            value=float(estimates.value[0]),
            low=float(estimates.low[0]),
            high=float(estimates.high[0]),
            level=LEVEL,
            method=_method(windows, positive_shares, uses_model=uses_model),
            n=n_judged,
            n_positive_by_all=int((positive_shares == 1).sum()),
            n_rows=n_windows_of_film,
            worth=_n_needed_without_model(estimates, n_judged, n_windows_of_rate),
            expected=self.expected,
            expected_s=self.expected_s,
            is_of_labels=self.labelled is not None,
            annotators=[*judges],
            positives=n_positive_by,
            positive=self.positive.text,
            is_of_concept=self.positive.is_concept,
            content_s=float(covered_s.sum()),
            n_unsure=len(windows.unsure),
            unsure_s=unsure_s,
            unread_s=windows.cells.unread_s,
        )


def _n_needed_without_model(estimates: Estimates, n: int, n_windows: int) -> float | None:
    """Compute how many windows, judged without the model, would give as narrow an interval.

    The squared width of an interval from n of a film's N windows is proportional to 1 / n - 1 / N. So if the
    interval without the model is to be as narrow as the one with it, m windows must be judged, where

        (1 / m - 1 / N) / (1 / n - 1 / N) = (width / width_without_model)²

    m is at most N. None if m is no more than n: then the model saves nothing.

    Parameters
    ----------
    estimates : Estimates
        Of one draw.
    n : int
        Windows judged.
    n_windows : int
        Windows of the film, N.
    """
    width = float(estimates.high[0] - estimates.low[0])
    width_without_model = float(estimates.high_without_model[0] - estimates.low_without_model[0])
    if n == n_windows or width >= width_without_model:
        return None
    squared_ratio = (width / width_without_model) ** 2
    n_needed = 1 / (1 / n_windows + (1 / n - 1 / n_windows) * squared_ratio)
    return n_needed if float(rounded(n_needed)) > n else None


def _with_agreement(rate: CorrectedRate, pairs: "JudgePairs") -> CorrectedRate:
    """Add the agreement of pairs of judges to a rate: all pairs of a panel, or of a judge with any other."""
    if rate.is_of_panel:
        panel = set(rate.annotators)
        agreement = [pair for pair in pairs.agreement if set(pair.annotators) <= panel]
    else:
        agreement = [pair for pair in pairs.agreement if rate.annotators[0] in pair.annotators]
    return structs.replace(rate, agreement=agreement)


def _method(windows: JudgedWindows, positive_shares: Floats, *, uses_model: bool) -> str:
    """Name the method by which an interval was computed, as `CorrectedRate.method` has it.

    The interval is exact if all judged windows [n] are positive, or none is. Draws by sequential Poisson
    sampling have no exact interval.
    """
    if windows.is_census:
        return "census"
    if uses_model:
        return "difference"
    none_is_positive = not positive_shares.any()
    all_are_positive = bool((positive_shares == 1).all())
    is_exact = (none_is_positive or all_are_positive) and windows.sampling == SUCCESSIVE
    return "exact" if is_exact else "wilson"


class _AnswersOfNamed(NamedTuple):
    """The answers of J judges who have a name for each of W windows.

    Attributes
    ----------
    names : list of str
        Of the judges.
    answers : ndarray, shape [J, W]
        1 (positive), 0, or NaN where a judge is not sure or did not judge.
    judged : ndarray of bool, shape [J, W]
        Whether they judged it, sure or not.
    """

    names: list[str]
    answers: Floats
    judged: NDArray[np.bool_]


def _answers_of_named(films: Sequence[JudgedFilm]) -> _AnswersOfNamed:
    """Arrange the judges' answers as arrays: a row for each judge, a column for each window of the films.

    Windows are in the order of time, film after film. Two arrays tell three cases apart: an answer (0 or 1,
    and judged), not sure (NaN, and judged), and no judgement (NaN, and not judged). Judgements without a name
    may be of several people, so that no agreement can be computed from them: they are left out.
    """
    names = list(dict.fromkeys(name for film in films for name in film.judges if name))  # each once
    windows = []  # (film, place in its draw)
    for film in films:
        places_in_time = sorted(film.cell_of_place, key=lambda place: film.cell_of_place[place])
        windows += [(film, place) for place in places_in_time]

    answers = np.full((len(names), len(windows)), np.nan)
    judged = np.zeros(answers.shape, dtype=np.bool_)
    for row, name in enumerate(names):
        for column, (film, place) in enumerate(windows):
            answers_of_judge = film.answers.get(name, {})
            if place not in answers_of_judge:
                continue
            judged[row, column] = True
            answer = answers_of_judge[place]
            is_sure = answer is not None
            if is_sure:
                answers[row, column] = answer
    return _AnswersOfNamed(names, answers, judged)


def alpha_of_judges(films: Sequence[JudgedFilm]) -> JudgesAlpha | None:
    """Compute Krippendorff's alpha of the judges of some films.

    A window is shared if two judges or more were sure of it. Alpha is computed from the shared windows, and
    covers the judges who were sure of any of them. None if these judges are fewer than three (two have a
    kappa), if fewer than `MIN_SURE_WINDOWS` windows are shared, or if alpha is undefined.
    """
    by_judge = _answers_of_named(films)
    is_sure = ~np.isnan(by_judge.answers)  # [J judges, W windows]
    n_sure = is_sure.sum(axis=0)  # [W]: judges who were sure of each window
    is_shared = n_sure >= 2  # [W]
    n_shared = int(is_shared.sum())
    is_covered = is_sure[:, is_shared].any(axis=1)  # [J]: judges who were sure of a shared window
    if is_covered.sum() < 3 or n_shared < MIN_SURE_WINDOWS:
        return None
    from obygaze_features.manifest import krippendorff_alpha  # noqa: PLC0415 - films are opened without it

    value = krippendorff_alpha(by_judge.answers)
    if value is None:
        return None

    # Windows that two of these judges or more judged, and that are not shared as they were not sure.
    n_judges = by_judge.judged[is_covered].sum(axis=0)  # [W]
    n_unsure = int(((n_judges >= 2) & ~is_shared).sum())
    annotators = [by_judge.names[judge] for judge in np.flatnonzero(is_covered)]
    return JudgesAlpha(annotators, n_windows=n_shared, value=value, n_unsure=n_unsure)


class JudgePairs(NamedTuple):
    """How far pairs of judges agree.

    Attributes
    ----------
    agreement : list of JudgesAgreement
        Of each pair, or of `MAX_PAIRS` that were drawn at random.
    n_pairs : int
        All pairs with a window of which both were sure.
    """

    agreement: list[JudgesAgreement]
    n_pairs: int


def agreement_of_judges(films: Sequence[JudgedFilm]) -> JudgePairs:
    """Compare every two judges on the windows of some films of which both were sure.

    If there are more than `MAX_PAIRS` pairs, that many are drawn at random.
    """
    by_judge = _answers_of_named(films)
    is_sure = ~np.isnan(by_judge.answers)  # [J judges, W windows]
    n_common = is_sure.astype(np.float64) @ is_sure.T  # [J, J]: number of windows of which both were sure
    each_pair_once = np.triu(n_common, 1)  # without a judge and themselves, and without the reverse of a pair
    pairs = np.argwhere(each_pair_once)  # [pairs, 2]: judges with a common window

    compared_pairs = pairs
    if len(pairs) > MAX_PAIRS:
        # The seed is fixed, so that the same pairs are drawn each time.
        drawn = np.random.default_rng(0).permutation(len(pairs))[:MAX_PAIRS]
        compared_pairs = pairs[np.sort(drawn)]
    agreements = [_agreement_of_pair(by_judge, first, second) for first, second in compared_pairs.tolist()]
    return JudgePairs(agreements, len(pairs))


def _agreement_of_pair(by_judge: _AnswersOfNamed, first: int, second: int) -> JudgesAgreement:
    """Compute how far two judges agree on the windows of which both were sure.

    `first` and `second` are their indices among the judges of `by_judge`. With fewer than `MIN_SURE_WINDOWS`
    such windows there is no kappa.
    """
    have_both_judged = by_judge.judged[first] & by_judge.judged[second]  # [W]
    answers_of_first = by_judge.answers[first]
    answers_of_second = by_judge.answers[second]
    are_both_sure = ~np.isnan(answers_of_first) & ~np.isnan(answers_of_second)

    # Their answers for the windows of which both were sure [n]
    is_positive_by_first = answers_of_first[are_both_sure] == 1
    is_positive_by_second = answers_of_second[are_both_sure] == 1
    n = int(are_both_sure.sum())
    kappa = NO_KAPPA
    if n >= MIN_SURE_WINDOWS:
        kappa = kappa_interval(is_positive_by_first, is_positive_by_second)

    return JudgesAgreement(
        annotators=[by_judge.names[first], by_judge.names[second]],
        n=n,
        alike=int((is_positive_by_first == is_positive_by_second).sum()),
        kappa=_known(kappa.kappa),
        low=_known(kappa.low),
        high=_known(kappa.high),
        n_unsure=int((have_both_judged & ~are_both_sure).sum()),
    )


def _known(number: float) -> float | None:
    """Return a number, None for NaN."""
    return None if np.isnan(number) else number


class _Rates(Struct, kw_only=True):
    """The content of `rate.json`; `number` is that of its format."""

    format: Literal["obygaze film rate"]
    number: int
    models: list[FilmRates]


def write_rates(folder: Path, rates: Sequence[FilmRates]) -> None:
    """Write the corrected rates of each model into a scored film's folder, for the film's page."""
    document = _Rates(format="obygaze film rate", number=FORMAT_NUMBER, models=[*rates])
    data = json_bytes(msgspec.to_builtins(document, enc_hook=str))
    # A folder that came from somebody else may hold a link to any file: it is not followed.
    write_whole(folder / RATES, data, links=False)


def read_rates(folder: Path) -> list[FilmRates]:
    """Read the corrected rates of each model from a scored film's folder; empty if none were written.

    Raises
    ------
    FilmError
        The file is damaged. The message names the field.
    """
    path = folder / RATES
    if not path.is_file():
        return []
    try:
        rates = msgspec.json.decode(decoded(bytes_of(path)), type=_Rates)
        refuse_texts(rates)
    except (*UNREADABLE, FilmError) as error:
        raise FilmError(f"{path}: {error}: run 'obygaze film rate' again") from error
    return rates.models
