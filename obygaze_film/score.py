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
    LAST_COLUMNS,
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

LONGEST_STEP_S = 60.0
"""Seconds of the longest step of a trace, which is else as long as the time between frames."""

CARD_FIELDS = ("model", "title", "backbone", "threshold", "clip_s", "n_clips", "licence", "citation")
"""Fields of a model's card that a film's record has unchanged."""

CALIBRATION_FIELDS = ("p_skilled", "error", "film_error", "worst_film_error")
"""Fields of a model's calibration that a film's record has unchanged."""

PACKAGES = ("obygaze", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose versions a film's record keeps."""

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
    """A model and its predictions of a store's windows.

    Attributes
    ----------
    key : str
        Its name in the tables, which no other model has.
    model : Model
    sha256 : str
        Of its file; empty without one.
    windows : DataFrame
        Its predictions, by clip, as `rows_of_model` takes them.
    trained_on : set of str
        The store's films that it was trained on, also if their names differ there.
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
    scored = score_films(
        store,
        models,
        movies={movie},
        shots=None if shots is None else {movie: shots},
        subtitles=None if subtitles is None else {movie: subtitles},
        facts=None if facts is None else {movie: facts},
    )
    return scored[0]


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
    for name, by_movie in (("shots", shots), ("title or year", facts)):
        # A list of more films is valid; a list without any of these films is an error.
        if by_movie and not windows.keys() & by_movie.keys():
            raise FilmError(
                f"{name} are of {', '.join(by_movie)}; store {store.name} has {', '.join(windows)}"
            )
    loaded = _load(store, models, movies)
    films = []
    for movie in windows if movies is None else movies:
        shots_of_film = (shots or {}).get(movie, NO_SHOTS)
        facts_of_film = (facts or {}).get(movie, FilmFacts())
        grid = make_grid(movie, windows[movie], shots_of_film)
        film = _score(store, loaded, grid, shots_of_film, facts_of_film)
        film = replace(
            film,
            subtitles=(subtitles or {}).get(movie, NO_TEXTS),
            variables=(variables or {}).get(movie, NO_VARIABLES),
        )
        films.append(film)
    return films


def _load(store: Store, models: Sequence[Model | Path | str], movies: Set[str] | None) -> list[_Loaded]:
    """Load the models, score the windows of some films or of all, and give each model a unique key."""
    if not models:
        raise FilmError("no model given: name at least one model file")
    loaded: list[_Loaded] = []
    for source in models:
        if isinstance(source, Model):
            model = source
            sha256 = ""
        else:
            model = load_model(source)
            path = local_path(source)
            sha256 = file_sha256(path) if path.is_file() else ""
        predicted = predict(model, [store], movies=movies)
        table = predicted.table.assign(
            far=predicted.has(WINDOW_UNLIKE),
            cut=predicted.has(WINDOW_PARTIAL),
            seen=predicted.has(TRAINED_ON),
        )
        loaded_model = _Loaded(
            key=_unique_key(model.card.model, [earlier.key for earlier in loaded]),
            model=model,
            sha256=sha256,
            windows=table.set_index("clip_id"),
            trained_on=set(predicted.recognition.films),
        )
        loaded.append(loaded_model)
    return loaded


def _unique_key(name: str, taken: Sequence[str]) -> str:
    """Return a model's name, or the first of `name-2`, `name-3`, ... that is not taken."""
    key = name
    number = 2
    while key in taken:
        key = f"{name}-{number}"
        number += 1
    return key


def _score(
    store: Store, loaded: Sequence[_Loaded], grid: RowGrid, shots: pd.DataFrame, facts: FilmFacts
) -> Timeline:
    """Score one film by loaded models."""
    movie, windows = grid.movie, grid.windows
    tables = []
    for each in loaded:
        is_trained_on = movie in each.trained_on
        tables.append(rows_of_model(each.model, each.key, each.windows, grid, is_trained_on=is_trained_on))
    models = [_describe(each, rows, grid) for each, rows in zip(loaded, tables, strict=True)]
    concept_columns: dict[str, None] = {}  # of all models, each once, in order
    for rows in tables:
        concept_columns |= dict.fromkeys(rows.columns.difference([*COLUMNS, *LAST_COLUMNS], sort=False))
    table = pd.concat(tables, ignore_index=True).reindex(columns=[*COLUMNS, *concept_columns, *LAST_COLUMNS])
    predicted_ids = {clip_id for each in loaded for clip_id in each.windows.index}
    n_missing = sum(clip_id not in predicted_ids for clip_id in windows.clip_ids)
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
            n_missing=n_missing,
        ),
        rows=RowsRecord(kind=grid.kind, n=len(grid.spans)),
        shots=ShotsRecord(detector=detector, n=len(shots)) if len(shots) else None,
        models=models,
        versions={name: version(name) for name in PACKAGES},
    )
    traces = [traces_of(each.model, each.key, store, movie, windows.clip_ids) for each in loaded]
    traces = [_with_content(trace, shots) for trace in traces if len(trace)]
    return Timeline(
        record,
        table=table.astype({"called": "Int64", "n_windows": "Int64"}),
        shots=shots.assign(movie=movie)[list(SHOT_COLUMNS)],
        frames=pd.concat(traces, ignore_index=True) if traces else NO_TRACES,
        classes=probable_classes(store, windows),
    )


def _with_content(steps: pd.DataFrame, shots: pd.DataFrame) -> pd.DataFrame:
    """Leave out the steps of a trace of which more than half is black pictures or credits."""
    spans = steps[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    no_content_s = np.sum([flagged_seconds(spans, shots, flag) for flag in NO_CONTENT], axis=0)
    with_content: pd.DataFrame = steps[no_content_s <= durations(steps) / 2]
    return with_content


def _describe(loaded: _Loaded, rows: pd.DataFrame, grid: RowGrid) -> ModelRecord:
    """Make the record of a model, with its results for the whole film.

    Parameters
    ----------
    loaded : _Loaded
    rows : DataFrame
        The model's rows of the film.
    grid : RowGrid
    """
    model, card = loaded.model, loaded.model.card
    is_trained_on = grid.movie in loaded.trained_on
    classes = [list(levels) for levels in card.target["classes"]]  # the levels of each class, negative first
    calibration = threshold_p = None
    if (fitted := model.calibration) is not None:
        population: Any = card.population or {"n_movies": len(card.movies), "clips": {}}
        calibration = CalibrationRecord(
            draws=[(slope, intercept) for slope, intercept in fitted.draws.tolist()],
            **{name: getattr(fitted, name) for name in CALIBRATION_FIELDS},
            n_movies=population["n_movies"],
            clips=dict(population["clips"]),
            clip_s=population.get("clip_s"),
        )
        threshold_p = float(fitted.probability([card.threshold])[0])
    concept = card.target["concept"]
    negative: list[str] = []
    positive: list[str] = []
    if classes and not concept:  # clips with a concept, and clips without it, may have any level
        negative, positive = classes[0], classes[-1]
    name = card.codebook["name"]
    construct, means = card.codebook.get("construct", ""), card.codebook.get("means", {})
    if name in BUILTIN:
        construct, means = builtin_codebook(name).construct, builtin_codebook(name).means
    modalities = [perceived(each["provenance"]) for each in card.inputs]
    all_are_known = all(modalities)
    called_positive = [concept] if concept else positive
    return ModelRecord(
        **{name: getattr(card, name) for name in CARD_FIELDS},
        key=loaded.key,
        sha256=loaded.sha256,
        task=card.target["name"],
        task_title=card.target["title"],
        levels=list(dict.fromkeys(level for levels in classes for level in levels)),
        negative=negative,
        positive=positive,
        concept=concept,
        codebook=name,
        construct=construct,
        means={name: means[name] for name in called_positive if name in means},
        titles=dict(card.codebook.get("titles", {})),
        translations=msgspec.convert(card.codebook.get("translations", {}), dict[str, CodebookTexts]),
        perceives=sorted({name for names in modalities for name in names}) if all_are_known else [],
        concepts=[
            _concept(model, name, float(threshold))
            for name, threshold in zip(
                model.concepts_with_probability, model.concept_thresholds, strict=False
            )
        ],
        decides=model.decides,
        by_concepts="base_contribution" in rows,
        threshold_p=threshold_p,
        calibration=calibration,
        n_movies=len(card.movies),
        metrics=[dict(row) for row in card.metrics],
        is_trained_on=is_trained_on,
        flags={flag: float(durations(rows)[has_flag(rows, flag)].sum()) for flag in flags_in(rows)},
        rate=expected_rate(rows, model, window_s=grid.windows.window_s, is_trained_on=is_trained_on),
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
    """Make the record of a concept; figures that the model's card does not have are None."""
    metrics: Mapping[str, Any] = {}
    for row in model.card.metrics:
        if row.get("task") == f"concept:{name}" and "movie_chance" in row:
            metrics = row
            break
    usual = _usual(model, name)
    return ConceptRecord(
        name=name,
        threshold_p=threshold,
        ap=metrics.get("movie_mean"),
        low=metrics.get("movie_low"),
        high=metrics.get("movie_high"),
        chance=metrics.get("movie_chance"),
        absent=_absent(model, name),
        usual=usual,
        usual_p=None if usual is None else _probability_at(model, name, usual),
    )


def _usual(model: Model, concept: str) -> float | None:
    """Return the value of a concept at which a linear head adds nothing: the training clips' mean.

    None without such a head.
    """
    bottleneck = model.estimator
    if not isinstance(bottleneck, ConceptBottleneck) or not hasattr(bottleneck.head_, "coef_"):
        return None
    return float(bottleneck.centre_[model.concepts.index(concept)])


def _probability_at(model: Model, concept: str, value: float) -> float | None:
    """Return the probability of a concept at one of its values; None if it has none there."""
    # A concept's probability depends on its own value alone: the other concepts have 0.
    values = np.zeros((1, len(model.concepts_with_probability)))
    column = list(model.concepts_with_probability).index(concept)
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
    content_s = float(seconds[content].sum())
    unreliable_share = float(seconds[content & unreliable].sum()) / content_s if content_s else 0.0
    counted_s = float(seconds[counted].sum())
    left_out = model.card.levels_left_out
    left_out_names = ", ".join(left_out or ())
    save_again = "save it again by evaluate with a --test of all levels"
    # Whether each reason to refuse the rate holds, and its words; the first that holds is told.
    refusals = (
        (not model.decides, "the model finds concepts and decides nothing"),
        (is_trained_on, "the model was trained on this film"),
        (not content_s, "the film is black pictures or credits alone"),
        (unreliable_share > MOST_UNRELIABLE,
         f"more than a fifth of what the film shows {_what_is_unreliable(rows)}"),
        (model.calibration is None, "the model has no calibration"),
        (left_out is None, "the model's file does not say which levels it was calibrated on: save it again"),
        (left_out,
         f"the model was calibrated without clips of {left_out_names}, which films have: {save_again}"),
        (not counted_s, "no part of the film is counted"),
    )  # fmt: skip
    reason = next((words for holds, words in refusals if holds), "")
    value = calibration_low = calibration_high = bracket_low = bracket_high = n_windows = None
    if not reason and model.calibration is not None:
        logits = rows.loc[counted, "logit"].to_numpy(dtype=np.float64)
        shares = model.calibration.expected_share(logits, seconds[counted])
        value, calibration_low, calibration_high = shares
        n_windows = counted_s / window_s
        extra = _extra_variance(model, rows.loc[counted, "p"], seconds[counted], n_windows)
        bracket_low, bracket_high = model.calibration.bracket(value, extra)
        usual_low, usual_high = model.calibration.bracket(value)
        if max(usual_low - bracket_low, bracket_high - usual_high) < LEAST_WIDER:
            n_windows = None  # the few windows hardly widen the bracket
    return Rate(
        value=value,
        bracket_low=bracket_low,
        bracket_high=bracket_high,
        calibration_low=calibration_low,
        calibration_high=calibration_high,
        reason=reason,
        unreliable=unreliable_share,
        counted_s=counted_s,
        n_windows=n_windows,
    )


def _what_is_unreliable(rows: pd.DataFrame) -> str:
    """Say what the content without a probability is: unlike the training, not read, or partly each."""
    has_content = ~has_flag(rows, *NO_CONTENT)
    is_unlike = has_flag(rows, UNLIKE)
    is_unread = has_flag(rows, MISSING) & ~is_unlike
    if not (has_content & is_unread).any():
        return "is unlike any clip of the training"
    if not (has_content & is_unlike).any():
        return "could not be read"
    return "is unlike any clip of the training, or could not be read"


def _extra_variance(model: Model, p: pd.Series, seconds: NDArray[np.float64], n_windows: float) -> float:
    """Compute the extra variance of the share of a film that has fewer windows than the films left out.

    0 if the model's card does not say how many clips those had.

    Parameters
    ----------
    model : Model
    p, seconds : shape [N]
        Probabilities and lengths of the film's counted rows.
    n_windows : float
        Windows that they are as long as.
    """
    population = model.card.population
    if population is None or not population["clips"]:
        return 0.0
    clips_of_a_film = sum(population["clips"].values()) / population["n_movies"]
    return few_windows_variance(p.to_numpy(dtype=np.float64), seconds, n_windows, clips_of_a_film)


def traces_of(model: Model, key: str, store: Store, movie: str, clip_ids: Sequence[str]) -> pd.DataFrame:
    """Average a model's values of frames over steps of a film.

    A step is a second, or the time between frames where that is longer, in whole seconds up to 60. All frames
    in a step are averaged, those of overlapping windows too.

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
    if model.concepts != model.concepts_with_probability or not reads_frames(model, store):
        return NO_TRACES
    group = store[model.card.backbone]
    wanted = set(clip_ids)
    rows = [row for row, clip_id in enumerate(group.clip_ids) if clip_id in wanted and group.usable[row]]
    frames = frames_of(model, store, np.array(rows, dtype=np.intp))
    frames = frames[frames["time_s"].notna()]
    gaps_s = frames.groupby("clip_id")["time_s"].diff()
    typical_gap_s = float(gaps_s[gaps_s > 0].median())  # NaN if no clip has two frames
    step_s = 1.0
    if np.isfinite(typical_gap_s):
        step_s = min(max(1.0, np.ceil(typical_gap_s)), LONGEST_STEP_S)
    concept_columns = [f"{concept}_p" for concept in model.concepts_with_probability]
    frames = frames.assign(step=np.floor(frames["time_s"] / step_s), n_frames=1)
    steps = frames.groupby("step", sort=True)
    table = steps[["weight", "contribution", *concept_columns]].mean()
    table.insert(0, "n_frames", steps["n_frames"].sum().astype("Int64"))
    start_s = table.index.to_numpy(dtype=np.float64) * step_s
    table = table.reset_index(drop=True)
    table = table.assign(movie=movie, model=key, start_s=start_s, end_s=start_s + step_s)
    return table[[*TRACE_COLUMNS, *concept_columns]]
