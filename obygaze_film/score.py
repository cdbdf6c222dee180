"""Score films: turn windows of a store into rows in time with probabilities, and rates of a film's time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from obygaze_features.io import file_sha256
from obygaze_features.store import Store
from obygaze_film.describe import describe_model, human_agreement, versions
from obygaze_film.errors import FilmError
from obygaze_film.model_rows import Grid, make_grid, rows_by
from obygaze_film.record import (
    FORMAT,
    MISSING,
    MOST_UNRELIABLE,
    NO_CONTENT,
    NUMBER,
    UNLIKE,
    FilmRecord,
    ModelRecord,
    Rate,
    RowsRecord,
    ShotsRecord,
    StoreRecord,
    WindowsRecord,
)
from obygaze_film.rows import (
    COLUMNS,
    LAST,
    NO_TRACES,
    SHOT_COLUMNS,
    TRACE_COLUMNS,
    durations,
    has_flag,
    is_counted,
)
from obygaze_film.timeline import Timeline
from obygaze_film.windows import windows_of
from obygaze_models.prediction import (
    CALIBRATION_BAND,
    Model,
    Predicted,
    frames_of,
    load_model,
    predict,
    reads_frames,
)

LONGEST_S = 60.0
"""A step of a trace is as long as the time between frames, at most this long."""

NO_SHOTS = pd.DataFrame(columns=SHOT_COLUMNS)


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """Facts about a film that are not in the store: title, year, digest of the video."""

    title: str = ""
    year: int | None = None
    source_sha256: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class _Loaded:
    """A model with its key in the tables, and the digest of its file."""

    key: str
    model: Model
    sha256: str
    predicted: Predicted = field(repr=False)


def score_film(
    store: Store,
    models: Sequence[Model | Path | str],
    *,
    movie: str | None = None,
    shots: pd.DataFrame | None = None,
    facts: FilmFacts | None = None,
) -> Timeline:
    """Score one film of a store.

    Parameters
    ----------
    store : Store
        Its clips are windows of films.
    models : sequence of Model, Path or str
        Models, or their files.
    movie : str, optional
        Optional if the store has one film.
    shots : DataFrame, optional
        Columns start_s, end_s, detector, flags, in time order.
    facts : FilmFacts, optional

    Raises
    ------
    FilmError
        The film is not in the store or not named, or its clips have no times.
    ModelError
        A model cannot read these features.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> store = of.open_store("stores/films")
    >>> obygaze_film.score_film(store, ["kept/linear.model"], movie="film0").heading
    'film0 · no prediction: the model was trained on this film'
    """
    movies = windows_of(store)
    if movie is None and len(movies) == 1:
        movie = next(iter(movies))
    if movie is None or movie not in movies:
        asked = "" if movie is None else f"{movie!r} is not among them: "
        raise FilmError(f"store {store.name} has the films {', '.join(movies)}: {asked}name one")
    own = NO_SHOTS if shots is None else shots
    grid = make_grid(movie, movies[movie], own)
    return _score(store, _load(store, models), grid, own, facts or FilmFacts())


def score_films(
    store: Store,
    models: Sequence[Model | Path | str],
    *,
    shots: Mapping[str, pd.DataFrame] | None = None,
    facts: Mapping[str, FilmFacts] | None = None,
) -> list[Timeline]:
    """Score every film of a store; parameters as in `score_film`, by movie.

    Raises
    ------
    FilmError
        Shots or facts are of a film that is not in the store.
    ModelError
        A model cannot read these features.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> films = obygaze_film.score_films(of.open_store("stores/more"), ["kept/linear.model"])
    >>> [film.movie for film in films][:2]
    ['film10', 'film11']
    """
    movies = windows_of(store)
    for what, given in (("shots", shots), ("title or year", facts)):
        # A list of more films is valid; a list without any of these films is an error.
        if given and not movies.keys() & given.keys():
            raise FilmError(f"{what} are of {', '.join(given)}; store {store.name} has {', '.join(movies)}")
    loaded = _load(store, models)
    films = []
    for movie, windows in movies.items():
        own = (shots or {}).get(movie, NO_SHOTS)
        known = (facts or {}).get(movie, FilmFacts())
        films.append(_score(store, loaded, make_grid(movie, windows, own), own, known))
    return films


def _load(store: Store, models: Sequence[Model | Path | str]) -> list[_Loaded]:
    """Load the models, score the windows of all films, and give each model a unique key."""
    if not models:
        raise FilmError("no model given: name at least one model file")
    found: list[_Loaded] = []
    for place in models:
        model = place if isinstance(place, Model) else load_model(place)
        local = not isinstance(place, Model) and Path(place).is_file()
        name, number = model.card.model, 2
        while name in {one.key for one in found}:
            name, number = f"{model.card.model}-{number}", number + 1
        sha256 = file_sha256(Path(str(place))) if local else ""
        found.append(_Loaded(name, model, sha256, predict(model, [store])))
    return found


def _score(
    store: Store, loaded: Sequence[_Loaded], grid: Grid, shots: pd.DataFrame, facts: FilmFacts
) -> Timeline:
    """Score one film by loaded models."""
    movie, windows = grid.movie, grid.windows
    parts = [rows_by(one.model, one.key, one.predicted, grid) for one in loaded]
    models = [_describe(one, rows, grid) for one, rows in zip(loaded, parts, strict=True)]
    concepts = dict.fromkeys(concept for one in loaded for concept in one.model.concepts)
    every = [f"{concept}_{what}" for concept in concepts for what in ("value", "p", "contribution")]
    kept = {column for part in parts for column in part.columns}
    columns = [*COLUMNS, *(name for name in every if name in kept), *LAST]
    table = pd.concat([part.reindex(columns=columns) for part in parts], ignore_index=True)
    there = {clip_id for one in loaded for clip_id in one.predicted.table["clip_id"]}
    detector = "+".join(dict.fromkeys(shots["detector"].tolist()))
    record = FilmRecord(
        format=FORMAT,
        number=NUMBER,
        movie=movie,
        title=facts.title or movie,
        year=facts.year,
        duration_s=float(grid.spans[-1, 1]),
        source_sha256=facts.source_sha256,
        store=StoreRecord(name=store.name, fingerprint=store.fingerprint),
        windows=WindowsRecord(
            window_s=windows.window_s,
            hop_s=windows.hop_s,
            n=len(windows.spans),
            n_missing=len(set(windows.clip_ids) - there),
        ),
        rows=RowsRecord(kind=grid.kind, n=len(grid.spans)),
        shots=ShotsRecord(detector=detector, n=len(shots)) if len(shots) else None,
        models=models,
        human=human_agreement({model.codebook for model in models}),
        versions=versions(),
    )
    typed = table.astype({"called": "Int64", "n_windows": "Int64"})
    traces = [traces_of(one.model, one.key, store, movie, windows.clip_ids) for one in loaded]
    known = [trace for trace in traces if len(trace)]
    frames = pd.concat(known, ignore_index=True) if known else NO_TRACES
    return Timeline(record, typed, shots.assign(movie=movie)[list(SHOT_COLUMNS)], frames)


def _describe(loaded: _Loaded, rows: pd.DataFrame, grid: Grid) -> ModelRecord:
    """Describe a model and its results for the whole film."""
    model, seen = loaded.model, grid.movie in loaded.model.card.movies
    present = dict.fromkeys(flag for cell in rows["flags"] for flag in cell.split(";") if flag)
    return describe_model(
        model,
        loaded.key,
        loaded.sha256,
        is_trained_on=seen,
        flags={flag: float(grid.seconds[has_flag(rows, flag)].sum()) for flag in present},
        rate=expected_rate(rows, model, is_trained_on=seen),
    )


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
        ends = np.quantile(drawn, CALIBRATION_BAND)
        low, high = min(float(ends[0]), value), max(float(ends[1]), value)
    return Rate(value=value, low=low, high=high, reason=reason, unreliable=share, counted_s=counted_s)


def traces_of(model: Model, key: str, store: Store, movie: str, clip_ids: Sequence[str]) -> pd.DataFrame:
    """Average a model's values of frames over steps of a film.

    A step is a second, or the time between frames where that is longer. Frames of overlapping windows at the
    same time are averaged.

    Parameters
    ----------
    model : Model
    key : str
        Its name in the column `model`.
    store : Store
    movie : str
    clip_ids : sequence of str
        The windows of the film.

    Returns
    -------
    DataFrame
        `TRACE_COLUMNS`, one row for each step that has frames, in time order; empty if the model says nothing
        of the store's frames.
    """
    if not reads_frames(model, store):
        return NO_TRACES
    group, wanted = store[model.card.backbone], set(clip_ids)
    rows = [row for row, clip_id in enumerate(group.clip_ids) if clip_id in wanted and group.usable[row]]
    frames = frames_of(model, store, np.array(rows, dtype=np.intp))
    frames = frames[frames["time_s"].notna()]
    if frames.empty:
        return NO_TRACES
    gaps = frames.groupby("clip_id")["time_s"].diff()
    typical = float(gaps[gaps > 0].median())
    step = min(max(1.0, np.ceil(typical)), LONGEST_S) if np.isfinite(typical) else 1.0
    concepts = [f"{concept}_p" for concept in model.concepts]
    found = frames.assign(place=np.floor(frames["time_s"] / step), n_frames=1).groupby("place", sort=True)
    table = found[["weight", "contribution", *concepts]].mean()
    table.insert(0, "n_frames", found["n_frames"].sum().astype("Int64"))
    start = table.index.to_numpy(dtype=np.float64) * step
    table = table.reset_index(drop=True)
    table = table.assign(movie=movie, model=key, start_s=start, end_s=start + step)
    return table[[*TRACE_COLUMNS, *concepts]]
