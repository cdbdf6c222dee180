"""Score films: from a store's windows to rows in time with probabilities, rates, and the film's record."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.io import file_sha256, local_path
from obygaze_features.manifest import BUILTIN, CodebookTexts, builtin_codebook, perceived
from obygaze_features.store import Store
from obygaze_film.classes import probable_classes
from obygaze_film.errors import FilmError
from obygaze_film.rows import RowGrid, flagged_seconds, make_grid, rows_of_model, windows_of
from obygaze_film.schema import (
    COLUMNS,
    FORMAT,
    LAST,
    MISSING,
    MOST_UNRELIABLE,
    NO_CONTENT,
    NO_TEXTS,
    NO_TRACES,
    NO_VARIABLES,
    NUMBER,
    SHOT_COLUMNS,
    TRACE_COLUMNS,
    TRAINED_ON,
    UNLIKE,
    CalibrationRecord,
    ConceptRecord,
    EvidenceRecord,
    FilmRecord,
    HumanRecord,
    ModelRecord,
    Rate,
    RowsRecord,
    ShotsRecord,
    StoreRecord,
    WindowsRecord,
    durations,
    flags_in,
    has_flag,
    is_counted,
)
from obygaze_film.timeline import Timeline
from obygaze_models.concepts import ConceptBottleneck
from obygaze_models.prediction import OUT_OF_DISTRIBUTION as WINDOW_UNLIKE
from obygaze_models.prediction import PARTIAL as WINDOW_PARTIAL
from obygaze_models.prediction import (
    Model,
    few_windows_variance,
    frames_of,
    load_model,
    predict,
    reads_frames,
)

LEAST_WIDER = 0.005
"""By how much a bracket must be wider to one side, of a film of few windows, for that to be said."""

LONGEST_S = 60.0
"""A step of a trace is as long as the time between frames, at most this long."""

KEPT = ("model", "title", "backbone", "threshold", "clip_s", "n_clips", "licence", "citation")
FITTED = ("p_skilled", "error", "film_error", "worst_film_error")
"""What a film's record keeps of a model's card and of its calibration, as it is there."""

PACKAGES = ("obygaze", "numpy", "scipy", "scikit-learn", "pandas")
"""Whose versions a film's record keeps."""

NO_SHOTS = pd.DataFrame(columns=SHOT_COLUMNS)

MOBYGAZE = (
    HumanRecord(
        corpus="MObyGaze (20 films)",
        positive=["S"],
        kappa=0.308,
        second_f1=0.401,
        segment_f1=0.172,
        boundary_f1=0.095,
        rank_correlation=0.433,
        rank_low=-0.137,
        rank_high=0.788,
    ),
    HumanRecord(
        corpus="MObyGaze (20 films)",
        positive=["HN", "S"],
        kappa=0.317,
        second_f1=0.561,
        segment_f1=0.198,
        boundary_f1=0.093,
        rank_correlation=0.692,
        rank_low=0.235,
        rank_high=0.898,
    ),
    HumanRecord(
        corpus="MObyGaze (20 films)",
        positive=["HN", "NS", "S"],
        kappa=0.360,
        second_f1=0.611,
        segment_f1=0.221,
        boundary_f1=0.099,
        rank_correlation=0.674,
        rank_low=0.169,
        rank_high=0.898,
    ),
)
"""Agreement of MObyGaze's annotators 1 and 2 on some levels; recomputed in tests/film/test_agreement.py."""

BOOKS_OF_MOBYGAZE = ("obygaze12", "mobygaze")
"""Codebooks whose levels are those of MObyGaze."""


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """Facts about a film that are not in the store: title, year, digest of the video."""

    title: str = ""
    year: int | None = None
    source_sha256: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class _Loaded:
    """A model with its key in the tables, the digest of its file, and what it says of windows, by clip.

    `trained_on` are the store's films that it was trained on, however they are named.
    """

    key: str
    model: Model
    sha256: str
    windows: pd.DataFrame
    trained_on: Set[str]


@checked
def score_film(
    store: Store,
    models: Sequence[Model | Path | str],
    *,
    movie: str | None = None,
    shots: pd.DataFrame | None = None,
    subtitles: pd.DataFrame | None = None,
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
    subtitles : DataFrame, optional
        Columns start_s, end_s, text, in time order; kept with the scores.
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
    >>> obygaze_film.score_film(store, ["kept/linear.model"], movie="film0").rate().reason
    'the model was trained on this film'
    """
    movies = windows_of(store)
    if movie is None and len(movies) == 1:
        movie = next(iter(movies))
    if movie is None or movie not in movies:
        unknown = "" if movie is None else f"{movie!r} is not among them: "
        raise FilmError(f"store {store.name} has the films {', '.join(movies)}: {unknown}name one")
    given: dict[str, Any] = {"shots": shots, "subtitles": subtitles, "facts": facts}
    of_film = {name: {movie: value} for name, value in given.items() if value is not None}
    return score_films(store, models, movies={movie}, **of_film)[0]


@checked
def score_films(
    store: Store,
    models: Sequence[Model | Path | str],
    *,
    movies: Set[str] | None = None,
    shots: Mapping[str, pd.DataFrame] | None = None,
    subtitles: Mapping[str, pd.DataFrame] | None = None,
    facts: Mapping[str, FilmFacts] | None = None,
    variables: Mapping[str, pd.DataFrame] | None = None,
) -> list[Timeline]:
    """Score every film of a store, or `movies`; parameters as in `score_film`, by movie.

    `variables`, how films are staged, are kept beside the scores.

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
    windows = windows_of(store)
    for what, by_movie in (("shots", shots), ("title or year", facts)):
        # A list of more films is valid; a list without any of these films is an error.
        if by_movie and not windows.keys() & by_movie.keys():
            raise FilmError(
                f"{what} are of {', '.join(by_movie)}; store {store.name} has {', '.join(windows)}"
            )
    loaded, films = _load(store, models, movies), []
    for movie in windows if movies is None else movies:
        own = (shots or {}).get(movie, NO_SHOTS)
        grid = make_grid(movie, windows[movie], own)
        film = _score(store, loaded, grid, own, (facts or {}).get(movie, FilmFacts()))
        texts, staged = (subtitles or {}).get(movie, NO_TEXTS), (variables or {}).get(movie, NO_VARIABLES)
        films.append(replace(film, subtitles=texts, variables=staged))
    return films


def _load(store: Store, models: Sequence[Model | Path | str], movies: Set[str] | None) -> list[_Loaded]:
    """Load the models, score the windows of some films or of all, and give each model a unique key."""
    if not models:
        raise FilmError("no model given: name at least one model file")
    loaded: list[_Loaded] = []
    for source in models:
        model = source if isinstance(source, Model) else load_model(source)
        local = None if isinstance(source, Model) else local_path(source)
        name, number = model.card.model, 2
        while name in {earlier.key for earlier in loaded}:
            name, number = f"{model.card.model}-{number}", number + 1
        sha256 = file_sha256(local) if local and local.is_file() else ""
        found = predict(model, [store], movies=movies)
        marks = {"far": WINDOW_UNLIKE, "cut": WINDOW_PARTIAL, "seen": TRAINED_ON}
        table = found.table.assign(**{name: found.has(flag) for name, flag in marks.items()})
        trained_on = set(found.recognition.films)
        loaded.append(_Loaded(name, model, sha256, table.set_index("clip_id"), trained_on))
    return loaded


def _score(
    store: Store, loaded: Sequence[_Loaded], grid: RowGrid, shots: pd.DataFrame, facts: FilmFacts
) -> Timeline:
    """Score one film by loaded models."""
    movie, windows = grid.movie, grid.windows
    parts = [
        rows_of_model(each.model, each.key, each.windows, grid, is_trained_on=movie in each.trained_on)
        for each in loaded
    ]
    models = [_describe(each, rows, grid) for each, rows in zip(loaded, parts, strict=True)]
    named = dict.fromkeys(
        name for part in parts for name in part.columns.difference([*COLUMNS, *LAST], sort=False)
    )
    table = pd.concat(parts, ignore_index=True).reindex(columns=[*COLUMNS, *named, *LAST])
    missing = [name for name in windows.clip_ids if not any(name in each.windows.index for each in loaded)]
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
            n_missing=len(missing),
        ),
        rows=RowsRecord(kind=grid.kind, n=len(grid.spans)),
        shots=ShotsRecord(detector=detector, n=len(shots)) if len(shots) else None,
        models=models,
        versions={name: version(name) for name in PACKAGES},
    )
    typed = table.astype({"called": "Int64", "n_windows": "Int64"})
    traces = [traces_of(each.model, each.key, store, movie, windows.clip_ids) for each in loaded]
    known = [_with_content(trace, shots) for trace in traces if len(trace)]
    frames = pd.concat(known, ignore_index=True) if known else NO_TRACES
    own_shots = shots.assign(movie=movie)[list(SHOT_COLUMNS)]
    classes = probable_classes(store, windows)
    return Timeline(record, typed, own_shots, frames, classes=classes)


def _with_content(steps: pd.DataFrame, shots: pd.DataFrame) -> pd.DataFrame:
    """Leave out the steps of a trace that lie by more than half in black pictures or credits."""
    spans = steps[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    without = np.sum([flagged_seconds(spans, shots, flag) for flag in NO_CONTENT], axis=0)
    kept: pd.DataFrame = steps[without <= durations(steps) / 2]
    return kept


def _describe(loaded: _Loaded, rows: pd.DataFrame, grid: RowGrid) -> ModelRecord:
    """Describe a model and its results for the whole film."""
    model, card = loaded.model, loaded.model.card
    seen = grid.movie in loaded.trained_on
    sides = [list(side) for side in card.target["classes"]]
    calibration = threshold_p = None
    if (fitted := model.calibration) is not None:
        population: Any = card.population or {"n_movies": len(card.movies), "clips": {}}
        calibration = CalibrationRecord(
            draws=[(slope, intercept) for slope, intercept in fitted.draws.tolist()],
            **{name: getattr(fitted, name) for name in FITTED},
            n_movies=population["n_movies"],
            clips=dict(population["clips"]),
            clip_s=population.get("clip_s"),
        )
        threshold_p = float(fitted.probability([card.threshold])[0])
    concept = card.target["concept"]
    # The target of a concept has no sides: clips with it and clips without may have any level.
    negative, positive = ([], []) if concept or not sides else (sides[0], sides[-1])
    name = card.codebook["name"]
    construct, means = card.codebook.get("construct", ""), card.codebook.get("means", {})
    if name in BUILTIN:
        construct, means = builtin_codebook(name).construct, builtin_codebook(name).means
    perceives = [perceived(each["provenance"]) for each in card.inputs]
    meant = [concept] if concept else positive
    return ModelRecord(
        **{name: getattr(card, name) for name in KEPT},
        key=loaded.key,
        sha256=loaded.sha256,
        task=card.target["name"],
        task_title=card.target["title"],
        levels=list(dict.fromkeys(level for side in sides for level in side)),
        negative=negative,
        positive=positive,
        concept=concept,
        codebook=name,
        construct=construct,
        means={level: means[level] for level in meant if level in means},
        titles=dict(card.codebook.get("titles", {})),
        translations=msgspec.convert(card.codebook.get("translations", {}), dict[str, CodebookTexts]),
        perceives=sorted({name for names in perceives for name in names}) if all(perceives) else [],
        concepts=[
            _concept(model, name, float(threshold))
            for name, threshold in zip(model.likely_concepts, model.concept_thresholds, strict=False)
        ],
        decides=model.decides,
        by_concepts="base_contribution" in rows,
        threshold_p=threshold_p,
        calibration=calibration,
        n_movies=len(card.movies),
        metrics=[dict(row) for row in card.metrics],
        is_trained_on=seen,
        flags={flag: float(durations(rows)[has_flag(rows, flag)].sum()) for flag in flags_in(rows)},
        rate=expected_rate(rows, model, window_s=grid.windows.window_s, is_trained_on=seen),
        evidence=None if card.evidence is None else EvidenceRecord(**card.evidence),
        no_skill=card.no_skill,
        levels_left_out=list(card.levels_left_out or ()),
        human=None if card.has_planted else agreement_of_people(name, positive),
        labelled_by=list(card.labelled_by),
    )


def agreement_of_people(codebook: str, positive: Sequence[str]) -> HumanRecord | None:
    """Find how far two people agree on some levels of a codebook; None where that is not known."""
    if codebook not in BOOKS_OF_MOBYGAZE:
        return None
    for human in MOBYGAZE:
        if set(human.positive) == set(positive):
            return human
    return None


def _concept(model: Model, name: str, threshold: float) -> ConceptRecord:
    """Describe a concept from the model's card."""
    row: Mapping[str, Any] = next(
        (row for row in model.card.metrics if row.get("task") == f"concept:{name}" and "movie_chance" in row),
        {},
    )
    columns = {"ap": "mean", "low": "low", "high": "high", "chance": "chance"}
    figures = {field: row.get(f"movie_{column}") for field, column in columns.items()}
    usual = _usual(model, name)
    return ConceptRecord(
        name=name,
        threshold_p=threshold,
        absent=_absent(model, name),
        usual=usual,
        usual_p=None if usual is None else _probability_at(model, name, usual),
        **figures,
    )


def _usual(model: Model, concept: str) -> float | None:
    """Return the value of a concept at which a linear head adds nothing: the training clips' mean."""
    bottleneck = model.estimator
    if not isinstance(bottleneck, ConceptBottleneck) or not hasattr(bottleneck.head_, "coef_"):
        return None
    return float(bottleneck.centre_[model.concepts.index(concept)])


def _probability_at(model: Model, concept: str, value: float) -> float | None:
    """Return the probability of a concept at one of its values; None where it has none."""
    values = np.zeros((1, len(model.likely_concepts)))
    column = list(model.likely_concepts).index(concept)
    values[0, column] = value
    p = float(model.probabilities_of(values)[0, column])
    return None if np.isnan(p) else p


def _absent(model: Model, concept: str) -> float | None:
    """Return what a concept adds to a linear head's logit where it is absent; None without such a head.

    Absent is the 5th percentile of its values in the training clips.
    """
    bottleneck = model.estimator
    if not isinstance(bottleneck, ConceptBottleneck) or not hasattr(bottleneck.head_, "coef_"):
        return None
    column = model.concepts.index(concept)
    value = np.quantile(bottleneck.train_values_[:, column], 0.05)
    return float(bottleneck.head_.coef_[0, column] * (value - bottleneck.centre_[column]))


def expected_rate(rows: pd.DataFrame, model: Model, *, window_s: float, is_trained_on: bool) -> Rate:
    """Compute sum(duration * p) / sum(duration) over the counted rows, or the reason why it is refused.

    It is refused if the model was trained on the film, has no calibration, was calibrated without a level of
    its codebook, or more than 20 % of the film's time (without black pictures and credits) is unlike any
    training clip or missing, and of a film that is black pictures or credits alone. The calibration's band
    holds 80 % of the rates under sigmoids drawn from their posterior.

    Parameters
    ----------
    rows : DataFrame
        The model's rows.
    model : Model
    window_s : float
        Length of the film's windows: a film of few of them has a wider bracket.
    is_trained_on : bool
    """
    seconds, counted = durations(rows), is_counted(rows)
    content = ~has_flag(rows, *NO_CONTENT)
    unreliable = has_flag(rows, UNLIKE, MISSING)
    whole = float(seconds[content].sum())
    share = float(seconds[content & unreliable].sum()) / whole if whole else 0.0
    counted_s = float(seconds[counted].sum())
    left_out, again = model.card.levels_left_out, "save it again by evaluate with a --test of all levels"
    why = (
        (not model.decides, "the model finds concepts and decides nothing"),
        (is_trained_on, "the model was trained on this film"),
        (not whole, "the film is black pictures or credits alone"),
        (share > MOST_UNRELIABLE, f"more than a fifth of what the film shows {_what_is_unreliable(rows)}"),
        (model.calibration is None, "the model has no calibration"),
        (left_out is None, "the model's file does not say which levels it was calibrated on: save it again"),
        (left_out,
         f"the model was calibrated without clips of {', '.join(left_out or ())}, which films have: {again}"),
        (not counted_s, "no part of the film is counted"),
    )  # fmt: skip
    reason = next((text for is_so, text in why if is_so), "")
    value = low = high = None
    bracket: tuple[float | None, float | None] = (None, None)
    n_windows = None
    if not reason and model.calibration is not None:
        logits = rows.loc[counted, "logit"].to_numpy(dtype=np.float64)
        value, low, high = model.calibration.expected_share(logits, seconds[counted])
        n_windows = counted_s / window_s
        extra = _extra_variance(model, rows.loc[counted, "p"], seconds[counted], n_windows)
        bracket = model.calibration.bracket(value, extra)
        usual = model.calibration.bracket(value)
        if max(usual[0] - bracket[0], bracket[1] - usual[1]) < LEAST_WIDER:
            n_windows = None
    return Rate(
        value=value,
        bracket_low=bracket[0],
        bracket_high=bracket[1],
        calibration_low=low,
        calibration_high=high,
        reason=reason,
        unreliable=share,
        counted_s=counted_s,
        n_windows=n_windows,
    )


def _what_is_unreliable(rows: pd.DataFrame) -> str:
    """Say what the content without a probability is: unlike the training, not read, or both."""
    content = ~has_flag(rows, *NO_CONTENT)
    is_unlike, is_missing = has_flag(rows, UNLIKE), has_flag(rows, MISSING)
    if not (content & is_missing & ~is_unlike).any():
        return "is unlike any clip of the training"
    if not (content & is_unlike).any():
        return "could not be read"
    return "is unlike any clip of the training, or could not be read"


def _extra_variance(model: Model, p: pd.Series, seconds: NDArray[np.float64], n_windows: float) -> float:
    """Compute the extra variance of the share of a film that has fewer windows than the films left out."""
    population = model.card.population
    if population is None or not population["clips"]:
        return 0.0
    n_clips = sum(population["clips"].values()) / population["n_movies"]
    return few_windows_variance(p.to_numpy(dtype=np.float64), seconds, n_windows, n_clips)


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
        `TRACE_COLUMNS`, one row for each step that has frames, in time order; empty if the model cannot read
        the store's frames, or gives them no probabilities.
    """
    if model.concepts != model.likely_concepts or not reads_frames(model, store):
        return NO_TRACES
    group, wanted = store[model.card.backbone], set(clip_ids)
    rows = [row for row, clip_id in enumerate(group.clip_ids) if clip_id in wanted and group.usable[row]]
    frames = frames_of(model, store, np.array(rows, dtype=np.intp))
    frames = frames[frames["time_s"].notna()]
    gaps = frames.groupby("clip_id")["time_s"].diff()
    typical = float(gaps[gaps > 0].median())
    step = min(max(1.0, np.ceil(typical)), LONGEST_S) if np.isfinite(typical) else 1.0
    concepts = [f"{concept}_p" for concept in model.likely_concepts]
    steps = frames.assign(place=np.floor(frames["time_s"] / step), n_frames=1).groupby("place", sort=True)
    table = steps[["weight", "contribution", *concepts]].mean()
    table.insert(0, "n_frames", steps["n_frames"].sum().astype("Int64"))
    start = table.index.to_numpy(dtype=np.float64) * step
    table = table.reset_index(drop=True)
    table = table.assign(movie=movie, model=key, start_s=start, end_s=start + step)
    return table[[*TRACE_COLUMNS, *concepts]]
