"""Compute the share of a film's time that a model expects to be positive."""

import numpy as np
import pandas as pd
from scipy.special import expit

from obygaze_models.film.record import MISSING, MOST_UNRELIABLE, NO_CONTENT, UNLIKE, Rate
from obygaze_models.film.rows import durations, has_flag, is_counted
from obygaze_models.prediction.calibration import BAND
from obygaze_models.prediction.model import Model


def expected_rate(rows: pd.DataFrame, model: Model, *, is_trained_on: bool) -> Rate:
    """Compute sum(duration * p) / sum(duration) over the counted rows, or the reason why it is refused.

    It is refused if the model was trained on the film, has no calibration, or more than 20 % of the film's
    time (without black pictures and credits) is unlike any training clip or missing. The band holds 80 % of
    the rates under sigmoids refitted on resampled films.

    Parameters
    ----------
    rows : DataFrame
        The model's rows.
    model : Model
    is_trained_on : bool
    """
    seconds, counted = durations(rows), is_counted(rows)
    content = ~has_flag(rows, *NO_CONTENT)
    unreliable = has_flag(rows, UNLIKE, MISSING)
    whole = float(seconds[content].sum())
    share = float(seconds[content & unreliable].sum()) / whole if whole else 1.0
    counted_s = float(seconds[counted].sum())
    reason = ""
    if not model.decides:
        reason = "the model finds concepts and decides nothing"
    elif is_trained_on:
        reason = "the model was trained on this film"
    elif share > MOST_UNRELIABLE:
        reason = f"{share:.0%} of the film is unlike any clip that the model was trained on, or missing"
    elif model.calibration is None:
        reason = "the model has no calibration"
    elif not counted_s:
        reason = "no part of the film is counted"
    value = low = high = None
    if not reason and model.calibration is not None:
        weights = seconds[counted] / counted_s
        value = float(weights @ rows.loc[counted, "p"].to_numpy(dtype=np.float64))
        logits = rows.loc[counted, "logit"].to_numpy(dtype=np.float64)
        slopes, intercepts = model.calibration.draws.T
        drawn = expit(logits[:, None] * slopes + intercepts).T @ weights
        ends = np.quantile(drawn, BAND)
        low, high = min(float(ends[0]), value), max(float(ends[1]), value)
    return Rate(value=value, low=low, high=high, reason=reason, unreliable=share, counted_s=counted_s)
