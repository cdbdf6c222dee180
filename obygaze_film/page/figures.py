"""Compute the three key figures of a film's page, each with its interval."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from obygaze_film.judge import CorrectedRate
from obygaze_film.page.words import Words
from obygaze_film.record import MOST_UNRELIABLE, ModelRecord

NONE = "–"
"""Shown if there is no figure."""


def figures(
    model: ModelRecord,
    segments: pd.DataFrame,
    positive: str,
    words: Words,
    corrected: CorrectedRate | None,
) -> list[dict[str, Any]]:
    """Return the share of time, the number of segments, and the AUC within films left out of training.

    Parameters
    ----------
    model : ModelRecord
    segments : DataFrame
        As `Timeline.segments` gives them.
    positive : str
        Title of what the model finds.
    words : Words
    corrected : CorrectedRate or None
        Replaces the rate that the model expects.
    """
    share = _expected(model, positive, words) if corrected is None else _corrected(corrected, positive, words)
    return [share, _segments(model, segments, words), _auc(model, words)]


def bar(value: float, low: float, high: float, scale: float = 1.0) -> dict[str, str]:
    """Place a number and its interval on a scale from 0, in percent of its width."""
    places = {"value": value, "low": low, "high": high}
    return {name: f"{100 * min(max(one / scale, 0.0), 1.0):.1f}%" for name, one in places.items()}


def why_no_rate(model: ModelRecord, words: Words) -> str:
    """Explain why a model gives no rate."""
    if model.calibration is None:
        return words["uncalibrated"]
    if model.rate.unreliable > MOST_UNRELIABLE:
        return words.say("flagged", share=words.share(model.rate.unreliable))
    return words.say("no_rate", reason=model.rate.reason)


def _expected(model: ModelRecord, positive: str, words: Words) -> dict[str, Any]:
    what, rate, calibration = words.say("expected", positive=positive), model.rate, model.calibration
    if rate.value is None or rate.low is None or rate.high is None:
        return _nothing(what, why_no_rate(model, words))
    note = words["expected_plain"]
    if calibration and calibration.film_error is not None and calibration.worst_film_error is not None:
        error, worst = words.share(calibration.film_error), words.share(calibration.worst_film_error)
        note = words.say("expected_note", error=error, worst=worst)
    return _shown(
        words.share(rate.value),
        f"{words.share(rate.low)}–{words.share(rate.high)}",
        bar(rate.value, rate.low, rate.high),
        what,
        note,
    )


def _corrected(found: CorrectedRate, positive: str, words: Words) -> dict[str, Any]:
    expected = NONE if found.expected is None else words.share(found.expected)
    note = words.say("corrected_note", annotators=", ".join(found.annotators), expected=expected)
    if found.worth is not None and found.worth > found.n:
        note += " " + words.say("worth", worth=round(found.worth))
    return _shown(
        words.share(found.value),
        f"{words.share(found.low)}–{words.share(found.high)}",
        bar(found.value, found.low, found.high),
        words.say("corrected", positive=positive, n=found.n),
        note,
    )


def _segments(model: ModelRecord, segments: pd.DataFrame, words: Words) -> dict[str, Any]:
    """Count segments that reach the threshold; for the interval, with the edges of the band."""
    what, threshold = words["segments_number"], model.threshold_p
    if threshold is None or model.calibration is None:
        return _nothing(what, words["uncalibrated"])
    n = int(segments["reaches"].sum())
    low = min(n, int((segments["p_low"] >= threshold).sum()))
    high = max(n, int((segments["p_high"] >= threshold).sum()))
    note = words.say("segments_note", low=low, high=high, n=len(segments))
    return _shown(str(n), f"{low}–{high}", bar(n, low, high, max(len(segments), 1)), what, note)


def _auc(model: ModelRecord, words: Words) -> dict[str, Any]:
    what = words["within_auc"]
    row = next((one for one in model.metrics if one.get("metric") == "auc"), {})
    value, low, high = (row.get(f"movie_{name}") for name in ("mean", "low", "high"))
    if value is None:
        return _nothing(what, words["no_figure"])
    note = words.say("auc_note", n=int(row["n_movies"]))
    if low is None or high is None:
        return _shown(words.number(value), "", None, what, words.say("auc_plain", n=int(row["n_movies"])))
    return _shown(
        words.number(value), f"{words.number(low)}–{words.number(high)}", bar(value, low, high), what, note
    )


def _shown(
    value: str, interval: str, drawn: Mapping[str, str] | None, what: str, note: str
) -> dict[str, Any]:
    return {"value": value, "interval": interval, "bar": drawn, "what": what, "note": note}


def _nothing(what: str, note: str) -> dict[str, Any]:
    return _shown(NONE, "", None, what, note)
