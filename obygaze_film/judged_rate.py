"""Estimate a film's rate from blind judgements; a model, right or wrong, narrows the interval."""

from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from obygaze_features.door import decoded
from obygaze_features.io import write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.manifest import Manifest
from obygaze_film.agreement import kappa, kappa_of
from obygaze_film.cells import Floats, cells_by
from obygaze_film.draws import SUCCESSIVE, Law
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import ByCell, judged_windows, least_judged, votes
from obygaze_film.notes import said
from obygaze_film.rate_estimates import LEVEL, estimate_rate
from obygaze_film.schema import (
    UNREADABLE,
    CorrectedRate,
    JudgesAgreement,
    refuse_texts,
)
from obygaze_film.scored_files import RATES, bytes_of
from obygaze_film.timeline import Timeline
from obygaze_models.evaluation import Interval

MOST_PAIRS: Final = 100
"""Pairs of judges whose agreement is computed; of more, so many are drawn."""

KAPPA_DRAWS: Final = 10_000


def correct_rate(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
) -> tuple[CorrectedRate, list[str]]:
    """Correct a film's rate by blind judgements of cells that `choose_next` drew.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, not drawn blindly, made with the score in sight or drawn after a cell that
        nobody judged are left out. Cells that all judges were not sure of are left out too: the rate refers
        to the others. If several people judged a cell, it has the share of those who call it positive.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    labels : Manifest, optional
        Labels of the film's windows by one annotator, such as a machine, which are corrected in their place.

    Returns
    -------
    rate : CorrectedRate
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        Fewer than 10 cells of this film (all, if it has fewer) were judged blindly, or the judgements are of
        two draws.
    """
    model = timeline.model(key)
    windows = judged_windows(timeline, judgements, key)
    notices, by_cell = list(windows.notices), windows.by_cell
    n_cells, least = int((windows.cells.content > 0).sum()), least_judged(windows.cells)
    if len(by_cell) < least:
        of = {"movie": timeline.movie, "n": len(by_cell), "least": least}
        raise FilmError(said("rate_few", **of, notices="; ".join(notices) or said("rate_none_out")))
    judged, y, _ = votes(by_cell)
    name, expected, cells = model.key, model.rate.value, windows.sure_cells
    if labels is not None:
        machine = cells_by(labels, timeline, key)
        name = labels.clips[0].annotator or "labels"
        expected = float(np.average(machine.p, weights=machine.content))
        cells = replace(cells, p=machine.p, counted=machine.counted)
    found = estimate_rate(cells, judged[None], y[None], law=windows.law, judges=windows.common_judges)
    width, alone = float(found.high[0] - found.low[0]), float(found.alone_high[0] - found.alone_low[0])
    agreement, n_pairs = _agreements(by_cell)
    if len(agreement) < n_pairs:
        notices.append(said("note_pairs", n=len(agreement), pairs=f"{n_pairs:,}"))
    rate = CorrectedRate(
        model=name,
        **{end: float(getattr(found, end)[0]) for end in ("value", "low", "high")},
        level=LEVEL,
        method=_method(found.gain[0] > 0, windows.law, y),
        n=len(judged),
        n_positive=int((y > 0.5).sum()),
        n_rows=n_cells,
        # The width of an interval falls with the square root of the number of judgements.
        worth=round(len(judged) * (alone / width) ** 2, 1) if width > 1e-9 else None,
        expected=expected,
        annotators=sorted({name for votes in by_cell.values() for name in votes if name}),
        agreement=agreement,
    )
    return rate, notices


def _method(uses_model: bool, law: Law, y: Floats) -> str:
    """Name the way an interval was found (`CorrectedRate`)."""
    if uses_model:
        return "difference"
    is_uniform = not y.any() or bool((y == 1).all())
    return "exact" if is_uniform and law == SUCCESSIVE else "wilson"


def _agreements(by_cell: ByCell) -> tuple[list[JudgesAgreement], int]:
    """Compare every two annotators on the cells that both judged; of many pairs, some drawn at random."""
    names = sorted({name for own in by_cell.values() for name in own if name})
    rows = [[own.get(name, np.nan) for _, own in sorted(by_cell.items())] for name in names]
    called = np.array(rows, dtype=np.float64).reshape(len(names), len(by_cell))
    known = ~np.isnan(called)
    pairs = np.argwhere(np.triu(known.astype(np.float64) @ known.T, 1))
    agreements = []
    for pair in pairs[np.sort(np.random.default_rng(0).permutation(len(pairs))[:MOST_PAIRS])]:
        a, b = called[pair][:, known[pair].all(axis=0)] == 1
        found, who = kappa_interval(a, b), [names[judge] for judge in pair]
        told = [None if np.isnan(value) else value for value in (found.mean, found.low, found.high)]
        agreements.append(JudgesAgreement(who, len(a), int((a == b).sum()), *told))
    return agreements, len(pairs)


def kappa_interval(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> Interval:
    """Compute Cohen's kappa of two annotators of the same cells [n] and its 95 % interval.

    The interval is that of the posterior under Jeffreys' prior of the shares of the four pairs of calls. The
    jackknife over cells covers too little of rare calls, and has none where annotators agree on all.
    """
    value = kappa(a, b)
    if np.isnan(value):
        return Interval(value, value, value, len(a), 0)
    pairs = np.bincount(2 * a + b, minlength=4)
    neither, second, first, both = np.random.default_rng(0).dirichlet(pairs + 0.5, KAPPA_DRAWS).T
    low, high = np.quantile(kappa_of(both + first, both + second, both + neither), (0.025, 0.975))
    return Interval(value, min(float(low), value), max(float(high), value), len(a), 0)


class _Rates(Struct, kw_only=True):
    format: Literal["obygaze film rate"]
    number: int
    rates: list[CorrectedRate]


def write_rates(folder: Path, rates: list[CorrectedRate]) -> None:
    """Write corrected rates beside a timeline, for the page."""
    document = _Rates(format="obygaze film rate", number=1, rates=rates)
    write_whole(folder / RATES, json_bytes(msgspec.to_builtins(document)), links=False)  # a stranger's folder


def read_rates(folder: Path) -> list[CorrectedRate]:
    """Read the corrected rates of a scored film; empty without judgements.

    Raises
    ------
    FilmError
        The file is damaged; names the field.
    """
    path = folder / RATES
    if not path.is_file():
        return []
    try:
        rates = msgspec.json.decode(decoded(bytes_of(path)), type=_Rates)
        refuse_texts(rates)
    except (*UNREADABLE, FilmError) as error:
        raise FilmError(f"{path}: {error}: run 'obygaze film rate' again") from error
    return rates.rates
