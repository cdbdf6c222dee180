"""Correct a film's rate by blind human judgements of some of its windows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from obygaze_features.io import json_bytes, write_whole
from obygaze_features.manifest import SEEN_SCORE, Clip, Manifest
from obygaze_film.errors import FilmError
from obygaze_film.estimate import difference_estimate
from obygaze_film.record import NO_CONTENT, ModelRecord
from obygaze_film.rows import durations, has_flag, is_counted
from obygaze_film.timeline import RATES, Timeline
from obygaze_film.windows import SLACK_S

RATE_FORMAT: Final = "obygaze film rate"
DRAW: Final = "draw"
"""Column of judgements that gives the reason why a window was chosen."""
RANDOM: Final = "random"

LEAST: Final = 10
"""Minimum number of blind judgements for a rate."""


class CorrectedRate(Struct, frozen=True, kw_only=True):
    """The share of a film's time that people would call positive, estimated from blind judgements.

    Attributes
    ----------
    model : str
        Key of the model whose probabilities were corrected.
    value, low, high, level : float
        Estimate, and its interval of that level.
    method : str
        "difference", or "wilson" where the model's probabilities do not help.
    n, n_positive : int
        Number of judged windows, and of those called positive (by most annotators).
    n_rows : int
        Number of windows of the film, without black pictures and credits.
    worth : float or None
        Number of judgements that alone would give the same width; None if the width is 0.
    expected : float or None
        The rate that the model expects.
    annotators : list of str
    """

    model: str
    value: float
    low: float
    high: float
    level: float
    method: str
    n: int
    n_positive: int
    n_rows: int
    worth: float | None
    expected: float | None
    annotators: list[str]


class _Rates(Struct, kw_only=True):
    format: Literal["obygaze film rate"]
    number: int
    rates: list[CorrectedRate]


def correct_rate(
    timeline: Timeline, judgements: Manifest, key: str | None = None, *, level: float = 0.95
) -> tuple[CorrectedRate, list[str]]:
    """Correct a film's rate by blind judgements of windows that `choose` drew at random.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, without a level, not drawn at random or made with the score in sight are left
        out.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    level : float

    Returns
    -------
    rate : CorrectedRate
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        Fewer than 10 windows of this film were judged blindly.
    """
    model = timeline.model(key)
    rows = timeline.rows(key)
    content = rows[~has_flag(rows, *NO_CONTENT)].reset_index(drop=True)
    kept, notices = _blind(timeline, model, judgements)
    places = _places(content, kept)
    lost = sum(place is None for place in places)
    if lost:
        notices.append(f"left out {lost} judgements whose times are no window of this timeline")
    votes: dict[int, list[float]] = {}
    for clip, place in zip(kept, places, strict=True):
        if place is not None:
            votes.setdefault(place, []).append(float(clip.level in model.positive))
    if len(votes) < LEAST:
        raise FilmError(
            f"film {timeline.movie}: {len(votes)} windows were judged blindly, at least {LEAST} are needed: "
            "'obygaze film next FOLDER --blind --n 30' draws some"
        )
    judged = np.array(sorted(votes))
    y = np.array([np.mean(votes[place]) for place in judged.tolist()])
    counted, seconds = is_counted(content), durations(content)
    p = content["p"].to_numpy(dtype=np.float64, copy=True)
    film_p = float(np.average(p[counted], weights=seconds[counted])) if counted.any() else 0.5
    p[~counted] = film_p  # a window without a probability gives no information
    variance = float(np.average((p - film_p) ** 2, weights=seconds))
    found = difference_estimate(
        y[None], p[judged][None], seconds[judged][None],
        film_p=film_p, film_variance=variance, n_rows=len(content), level=level,
    )  # fmt: skip
    width = float(found.high[0] - found.low[0])
    alone = float(found.alone_high[0] - found.alone_low[0])
    rate = CorrectedRate(
        model=model.key,
        value=float(found.value[0]),
        low=float(found.low[0]),
        high=float(found.high[0]),
        level=level,
        method="difference" if found.gain[0] > 0 else "wilson",
        n=len(judged),
        n_positive=int((y > 0.5).sum()),
        n_rows=len(content),
        # The width of an interval falls with the square root of the number of judgements.
        worth=round(len(judged) * (alone / width) ** 2, 1) if width > 0 else None,
        expected=model.rate.value,
        annotators=sorted({clip.annotator for clip in kept if clip.annotator}),
    )
    return rate, notices


def _blind(timeline: Timeline, model: ModelRecord, judgements: Manifest) -> tuple[list[Clip], list[str]]:
    """Keep the blind judgements of a film whose windows were drawn at random."""
    own = [clip for clip in judgements if clip.movie == timeline.movie]
    labels = set(judgements.codebook.labels)
    tests = (
        ("of other films", [clip for clip in judgements if clip.movie != timeline.movie]),
        ("without a level", [clip for clip in own if clip.level is None]),
        ("of a level that is not sure", [c for c in own if c.level is not None and c.level not in labels]),
        ("made with the score in sight, or not saying", [c for c in own if c.extras.get(SEEN_SCORE) != "0"]),
        ("of windows not drawn at random", [c for c in own if c.extras.get(DRAW, RANDOM) != RANDOM]),
    )
    if unknown := [level for level in model.positive if level not in judgements.codebook.level_names]:
        raise FilmError(
            f"model {model.key} calls {unknown[0]!r} positive, which is no level of the judgements' codebook "
            f"{judgements.codebook.name!r}: give judgements with the codebook {model.codebook!r}"
        )
    dropped: set[str] = set()
    notices = []
    for words, clips in tests:
        new = {clip.clip_id for clip in clips} - dropped
        dropped |= new
        if new:
            notices.append(f"left out {len(new)} judgements {words}")
    return [clip for clip in own if clip.clip_id not in dropped], notices


def _places(rows: pd.DataFrame, clips: Iterable[Clip]) -> list[int | None]:
    """Find the row of each judgement by its times."""
    starts, ends = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    found: list[int | None] = []
    for clip in clips:
        if clip.start_s is None or clip.end_s is None:
            found.append(None)
            continue
        same = (np.abs(starts - clip.start_s) <= SLACK_S) & (np.abs(ends - clip.end_s) <= SLACK_S)
        found.append(int(np.argmax(same)) if same.any() else None)
    return found


def write_rates(folder: Path, rates: list[CorrectedRate]) -> None:
    """Write corrected rates beside a timeline, for the page."""
    document = {"format": RATE_FORMAT, "number": 1, "rates": [msgspec.to_builtins(rate) for rate in rates]}
    write_whole(folder / RATES, json_bytes(document))


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
        return msgspec.json.decode(path.read_bytes(), type=_Rates).rates
    except msgspec.MsgspecError as error:
        raise FilmError(f"{path}: {error}: run 'obygaze film rate' again") from error
