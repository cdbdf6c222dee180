"""Score films: from a store's windows to rows in time with probabilities, rates, and the film's record."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

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
from obygaze_film.rows import RowGrid, Windows, flagged_seconds, make_grid, rows_of_model, windows_of
from obygaze_film.schema import (
    COLUMNS,
    FORMAT,
    LAST_COLUMNS,
    MAX_UNRELIABLE_SHARE,
    MISSING,
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

TRACE_MEANS = ("weight", "contribution")
"""Columns of frames, besides probabilities of concepts, that a trace averages."""

MIN_ADDED_WIDTH = 0.005
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
        kappa=0.355,
        second_f1=0.446,
        segment_f1=0.204,
        boundary_f1=0.112,
        rank_correlation=0.624,
        rank_low=0.050,
        rank_high=0.888,
    ),
    HumanRecord(
        corpus="MObyGaze (20 films)",
        positive=["HN", "S"],
        kappa=0.359,
        second_f1=0.592,
        segment_f1=0.235,
        boundary_f1=0.113,
        rank_correlation=0.669,
        rank_low=0.186,
        rank_high=0.892,
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
"""Agreement of MObyGaze's annotators 1 and 2 on some levels, in the seconds of which neither is not sure.

They are recomputed in tests/film/test_agreement.py."""

BOOKS_OF_MOBYGAZE = ("obygaze12", "mobygaze")
"""Built-in codebooks whose levels are those of MObyGaze, so that its annotators' agreement is of them."""

CONCEPT_TASK = "concept:{}"
"""The `task` of a metric of a model's card that says how well a concept is found."""


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """Facts about a film that are not in the store: title, year, digest of the video."""

    title: str = ""
    year: int | None = None
    source_sha256: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class _Scorer:
    """A model and its predictions of a store's windows.

    Attributes
    ----------
    key : str
        Its name in the tables, which no other model has.
    model : Model
    sha256 : str
        Of its file; empty without one.
    predictions : DataFrame
        Its predictions, by clip, as `rows_of_model` takes them: with the columns `is_unlike` (unlike any
        training clip), `is_partial` (read in part) and `is_trained_on`.
    trained_on : set of str
        The store's films that it was trained on, also if their names differ there.
    """

    key: str
    model: Model
    sha256: str
    predictions: pd.DataFrame
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
    movies = list(windows_of(store))
    is_only_film = len(movies) == 1
    if movie is None and is_only_film:
        movie = movies[0]
    if movie is None or movie not in movies:
        unknown = "" if movie is None else f"{movie!r} is not among them: "
        raise FilmError(f"store {store.name} has the films {', '.join(movies)}: {unknown}name one")
    films = score_films(
        store,
        models,
        movies={movie},
        shots={} if shots is None else {movie: shots},
        subtitles={} if subtitles is None else {movie: subtitles},
        facts={} if facts is None else {movie: facts},
    )
    return films[0]


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
    """Score the films of a store, in the store's order.

    Parameters
    ----------
    store : Store
        Its clips are windows of films.
    models : sequence of Model, Path or str
        Models, or their files.
    movies : set of str, optional
        The films to score; by default all of the store.
    shots : mapping of str to DataFrame, optional
        Film -> columns start_s, end_s, detector, flags, in time order.
    subtitles : mapping of str to DataFrame, optional
        Film -> columns start_s, end_s, text, in time order; kept with the scores.
    facts : mapping of str to FilmFacts, optional
    variables : mapping of str to DataFrame, optional
        Film -> measurements of its windows, such as loudness (`read_variables`); kept with the scores.

    Raises
    ------
    FilmError
        No model is given, one of `movies` is not in the store, or shots or facts are of none of its films.
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
    shots = shots or {}
    subtitles = subtitles or {}
    facts = facts or {}
    variables = variables or {}
    windows = windows_of(store)  # film -> its windows
    if movies is not None:
        _refuse_unknown_films(movies, store, windows)
    _refuse_other_films("shots", shots, store, windows)
    _refuse_other_films("title or year", facts, store, windows)

    # All films are predicted at once, and then each gets its rows.
    scorers = _predict_windows(store, models, movies)
    films = []
    for movie in windows:
        is_wanted = movies is None or movie in movies
        if not is_wanted:
            continue
        shots_of_film = shots.get(movie, NO_SHOTS)
        grid = make_grid(movie, windows[movie], shots_of_film)
        film = _score(store, scorers, grid, shots_of_film, facts.get(movie, FilmFacts()))
        film_with_tables = replace(
            film,
            subtitles=subtitles.get(movie, NO_TEXTS),
            variables=variables.get(movie, NO_VARIABLES),
        )
        films.append(film_with_tables)
    return films


def _refuse_unknown_films(movies: Set[str], store: Store, windows: Mapping[str, Windows]) -> None:
    """Raise a FilmError if one of the films to score is not in the store.

    `windows` are those of the store, by film.
    """
    unknown = sorted(movies - windows.keys())
    if unknown:
        raise FilmError(f"store {store.name} has the films {', '.join(windows)}, not {', '.join(unknown)}")


def _refuse_other_films(
    what: str, by_movie: Mapping[str, object], store: Store, windows: Mapping[str, Windows]
) -> None:
    """Refuse shots or facts of films of which none is in the store: they are probably of another store.

    Parameters
    ----------
    what : str
        What is given, for the message, such as "shots".
    by_movie : mapping
        Movie -> what is given of it.
    store : Store
    windows : mapping
        Movie -> its windows in the store.

    Raises
    ------
    FilmError
        None of the movies is in the store.
    """
    if by_movie and not windows.keys() & by_movie.keys():
        raise FilmError(f"{what} are of {', '.join(by_movie)}; store {store.name} has {', '.join(windows)}")


def _predict_windows(
    store: Store, models: Sequence[Model | Path | str], movies: Set[str] | None
) -> list[_Scorer]:
    """Load the models, and predict the windows of films of a store by each.

    Parameters
    ----------
    store : Store
    models : sequence of Model, Path or str
        Models, or their files. Two of the same name get different keys.
    movies : set of str or None
        The films; None for all of the store.
    """
    if not models:
        raise FilmError("no model given: name at least one model file")
    scorers: list[_Scorer] = []
    for model_or_path in models:
        loaded = _loaded(model_or_path)
        predicted = predict(loaded.model, [store], movies=movies)
        predictions = predicted.table.assign(
            is_unlike=predicted.has(WINDOW_UNLIKE),
            is_partial=predicted.has(WINDOW_PARTIAL),
            is_trained_on=predicted.has(TRAINED_ON),
        )
        taken_keys = [earlier.key for earlier in scorers]
        scorer = _Scorer(
            key=_unique_key(loaded.model.card.model, taken_keys),
            model=loaded.model,
            sha256=loaded.sha256,
            predictions=predictions.set_index("clip_id"),
            trained_on=set(predicted.recognition.films),
        )
        scorers.append(scorer)
    return scorers


class _LoadedModel(NamedTuple):
    """A model, and the digest of its file; empty without one."""

    model: Model
    sha256: str


def _loaded(model_or_path: Model | Path | str) -> _LoadedModel:
    """Load a model from its file, unless it is loaded already.

    `sha256` is the digest of the file; empty without a file on this machine.
    """
    if isinstance(model_or_path, Model):
        return _LoadedModel(model_or_path, sha256="")
    model = load_model(model_or_path)
    path = local_path(model_or_path)
    return _LoadedModel(model, sha256=file_sha256(path) if path.is_file() else "")


def _unique_key(name: str, taken: Sequence[str]) -> str:
    """Return a model's name, or the first of `name-2`, `name-3`, ... that is not taken."""
    key = name
    number = 2
    while key in taken:
        key = f"{name}-{number}"
        number += 1
    return key


def _score(
    store: Store, scorers: Sequence[_Scorer], grid: RowGrid, shots: pd.DataFrame, facts: FilmFacts
) -> Timeline:
    """Make the timeline of one film from the models' predictions of its windows.

    Parameters
    ----------
    store : Store
        The store of the windows.
    scorers : sequence of _Scorer
        The models, with their predictions of all films of the store.
    grid : RowGrid
        The film's windows, and the spans of the rows that their predictions are averaged to.
    shots : DataFrame
        Of the film.
    facts : FilmFacts
        Of the film.
    """
    tables = []  # rows of the film, by each model
    records = []
    for scorer in scorers:
        is_trained_on = grid.movie in scorer.trained_on
        rows = rows_of_model(scorer.model, scorer.key, scorer.predictions, grid, is_trained_on=is_trained_on)
        tables.append(rows)
        records.append(_model_record(scorer, rows, grid))

    # Models have different columns, such as those of their concepts: the table has all of them, in a fixed
    # order.
    table = pd.concat(tables, ignore_index=True).reindex(columns=_columns_of(tables))
    n_missing = _n_without_prediction(grid, scorers)  # windows of which no model has a prediction
    return Timeline(
        record=_film_record(store, records, grid, shots, facts, n_missing=n_missing),
        # Whole numbers that may be missing
        table=table.astype({"called": "Int64", "n_windows": "Int64"}),
        shots=shots.assign(movie=grid.movie)[list(SHOT_COLUMNS)],
        frames=_traces(store, scorers, grid, shots),  # values of single frames, by models that read frames
        classes=probable_classes(store, grid.windows),  # what classifiers in the store find in windows
    )


def _traces(store: Store, scorers: Sequence[_Scorer], grid: RowGrid, shots: pd.DataFrame) -> pd.DataFrame:
    """Join the traces of a film by all models that read frames.

    A trace is a table of what a model says of single frames, averaged over short steps of the film. Black
    pictures and credits are left out, as no model judges them.
    """
    traces = []
    for scorer in scorers:
        trace = traces_of(scorer.model, scorer.key, store, grid.movie, grid.windows.clip_ids)
        reads_frames = len(trace) > 0  # the trace of any other model is empty
        if reads_frames:
            traces.append(_without_black_or_credits(trace, shots))
    return pd.concat(traces, ignore_index=True) if traces else NO_TRACES


def _n_without_prediction(grid: RowGrid, scorers: Sequence[_Scorer]) -> int:
    """Count the windows of a film of which no model has a prediction, as they could not be read."""
    predicted_ids = {clip_id for scorer in scorers for clip_id in scorer.predictions.index}
    return sum(clip_id not in predicted_ids for clip_id in grid.windows.clip_ids)


def _columns_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """List the columns of a timeline, whose rows are those of several models' tables.

    Columns that all tables have come first (`COLUMNS`) and last (`LAST_COLUMNS`). Between them are those of
    concepts, which models have or lack: each once, in the order in which they occur.
    """
    concept_columns: list[str] = []
    for table in tables:
        for column in table.columns:
            if column not in {*COLUMNS, *LAST_COLUMNS, *concept_columns}:
                concept_columns.append(column)
    return [*COLUMNS, *concept_columns, *LAST_COLUMNS]


def _film_record(
    store: Store,
    models: list[ModelRecord],
    grid: RowGrid,
    shots: pd.DataFrame,
    facts: FilmFacts,
    *,
    n_missing: int,
) -> FilmRecord:
    """Make the record of a film; `n_missing` of its windows have no prediction by any model."""
    windows = grid.windows
    # Each detector once. If a person flagged parts of the film by hand, their table is one too.
    detectors = dict.fromkeys(shots["detector"].tolist())
    return FilmRecord(
        format=FORMAT,
        number=NUMBER,
        movie=grid.movie,
        title=facts.title or grid.movie,
        year=facts.year,
        duration_s=float(grid.spans[-1, 1]),  # rows cover all that is known of the film
        source_sha256=facts.source_sha256,
        store=StoreRecord(name=store.name, fingerprint=store.fingerprint),
        windows=WindowsRecord(
            window_s=windows.window_s,
            hop_s=windows.hop_s,
            n=len(windows.spans),
            n_missing=n_missing,
        ),
        rows=RowsRecord(kind=grid.kind, n=len(grid.spans)),
        shots=ShotsRecord(detector="+".join(detectors), n=len(shots)) if len(shots) else None,
        models=models,
        versions={name: version(name) for name in PACKAGES},
    )


def _without_black_or_credits(trace: pd.DataFrame, shots: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of a trace of which more than half is black pictures or credits."""
    spans = trace[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    # How much of each row is flagged in the shots: `NO_CONTENT` are the flags of black and of credits.
    no_content_s = np.sum([flagged_seconds(spans, shots, flag) for flag in NO_CONTENT], axis=0)
    rows_with_content: pd.DataFrame = trace[no_content_s <= durations(trace) / 2]
    return rows_with_content


def _model_record(scorer: _Scorer, rows: pd.DataFrame, grid: RowGrid) -> ModelRecord:
    """Make the record of a model: facts of its card, and its flags and rate of the whole film.

    Parameters
    ----------
    scorer : _Scorer
        The model, with its predictions.
    rows : DataFrame
        The model's rows of the film.
    grid : RowGrid
        The film's windows and rows, before any model.
    """
    model = scorer.model
    card = model.card  # what the model's file says of it
    facts_of_card = {name: getattr(card, name) for name in CARD_FIELDS}
    is_trained_on = grid.movie in scorer.trained_on

    # What the model tells apart: levels, or whether a concept is there
    target = _target_levels(card.target)
    concept = card.target["concept"]
    names_of_positive = [concept] if concept else target.positive

    # What its codebook says of that
    codebook = card.codebook["name"]
    construct, meanings = _construct_and_meanings(card.codebook)
    meanings_of_positive = {name: meanings[name] for name in names_of_positive if name in meanings}
    translations = msgspec.convert(card.codebook.get("translations", {}), dict[str, CodebookTexts])
    # How far people agree on it. Labels that a program planted tell nothing of that.
    people_agreement = None if card.has_planted else agreement_of_people(codebook, target.positive)
    evidence = None if card.evidence is None else EvidenceRecord(**card.evidence)

    # Its results for the whole film
    seconds = durations(rows)
    seconds_of_flag = {flag: float(seconds[has_flag(rows, flag)].sum()) for flag in flags_in(rows)}
    rate = expected_rate(rows, model, window_s=grid.windows.window_s, is_trained_on=is_trained_on)

    return ModelRecord(
        **facts_of_card,
        key=scorer.key,
        sha256=scorer.sha256,
        task=card.target["name"],
        task_title=card.target["title"],
        levels=target.levels,
        negative=target.negative,
        positive=target.positive,
        concept=concept,
        codebook=codebook,
        construct=construct,
        means=meanings_of_positive,
        titles=dict(card.codebook.get("titles", {})),
        translations=translations,
        perceives=_perceived_by_inputs(card.inputs),
        concepts=_concepts(model),
        decides=model.decides,
        by_concepts="base_contribution" in rows,
        threshold_p=_threshold_p(model),
        calibration=_calibration_record(model),
        n_movies=len(card.movies),
        metrics=[dict(row) for row in card.metrics],
        is_trained_on=is_trained_on,
        flags=seconds_of_flag,
        rate=rate,
        evidence=evidence,
        no_skill=card.no_skill,
        levels_left_out=list(card.levels_left_out or ()),
        human=people_agreement,
        labelled_by=list(card.labelled_by),
        has_changes=any(f"{concept}_change" in rows for concept in model.concepts),
    )


class _TargetLevels(NamedTuple):
    """The levels that a model's target tells apart.

    Attributes
    ----------
    levels : list of str
        Of all its classes.
    negative, positive : list of str
        Of its negative and its positive class; empty if the target is a concept, as clips of any level may
        have the concept or lack it.
    """

    levels: list[str]
    negative: list[str]
    positive: list[str]


def _target_levels(target: Mapping[str, Any]) -> _TargetLevels:
    """Read the levels of a target, as a model's card has it: a list of levels for each of its classes.

    The classes `[["EN"], ["HN", "S"]]`, for example, are the negative class and the positive one. If the
    target is a concept, or the card has no classes, no levels are negative or positive.
    """
    classes = [list(levels) for levels in target["classes"]]
    levels: list[str] = []
    for levels_of_class in classes:
        levels += [level for level in levels_of_class if level not in levels]
    if not classes or target["concept"]:
        return _TargetLevels(levels, negative=[], positive=[])
    # The negative class comes first and the positive one last.
    return _TargetLevels(levels, negative=classes[0], positive=classes[-1])


def _threshold_p(model: Model) -> float | None:
    """Return the probability at a model's threshold; None without a calibration."""
    if model.calibration is None:
        return None
    return float(model.calibration.probability([model.card.threshold])[0])


def _construct_and_meanings(codebook: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    """Return what a codebook's levels measure, and what each level and concept means.

    The texts of a built-in codebook are those of this version, which may differ from those in the model's
    card. The texts of any other codebook are only in the card.
    """
    if codebook["name"] in BUILTIN:
        builtin = builtin_codebook(codebook["name"])
        return builtin.construct, builtin.means
    return codebook.get("construct", ""), codebook.get("means", {})


def _concepts(model: Model) -> list[ConceptRecord]:
    """Make a record of each concept of a model that it gives a probability, in the model's order."""
    names = model.concepts_with_probability
    thresholds = model.concept_thresholds[: len(names)]  # concepts without a probability come last
    records = []
    for name, threshold in zip(names, thresholds, strict=True):
        records.append(_concept(model, name, float(threshold)))
    return records


def _calibration_record(model: Model) -> CalibrationRecord | None:
    """Make the record of a model's calibration, with the films that it was fitted on.

    None if the model has no calibration.
    """
    fitted = model.calibration
    if fitted is None:
        return None
    # A card need not describe what its model was calibrated on.
    population: Any = model.card.population or {"n_movies": len(model.card.movies), "clips": {}}
    return CalibrationRecord(
        draws=[(slope, intercept) for slope, intercept in fitted.draws.tolist()],
        **{name: getattr(fitted, name) for name in CALIBRATION_FIELDS},
        n_movies=population["n_movies"],
        clips=dict(population["clips"]),
        clip_s=population.get("clip_s"),
    )


def _perceived_by_inputs(inputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what a model perceives of a film by any of its inputs, such as pictures.

    Empty if that is not known of one of the inputs.
    """
    perceived_names: set[str] = set()
    for model_input in inputs:
        names = perceived(model_input["provenance"])
        if not names:
            return []
        perceived_names.update(names)
    return sorted(perceived_names)


def agreement_of_people(codebook: str, positive: Sequence[str]) -> HumanRecord | None:
    """Find how far two people agree on some levels of a codebook; None where that is not known."""
    if codebook not in BOOKS_OF_MOBYGAZE:
        return None
    for human in MOBYGAZE:
        if set(human.positive) == set(positive):
            return human
    return None


def _concept(model: Model, name: str, threshold: float) -> ConceptRecord:
    """Make the record of a concept: how well it is found, and its usual value.

    Figures that the model's card does not have are None.
    """
    metrics = _metrics_of_concept(model, name)
    usual = _usual_value(model, name)
    return ConceptRecord(
        name=name,
        threshold_p=threshold,
        ap=metrics.get("movie_mean"),  # average precision, the mean over films, with its interval
        low=metrics.get("movie_low"),
        high=metrics.get("movie_high"),
        chance=metrics.get("movie_chance"),
        absent=_contribution_when_absent(model, name),
        usual=usual,
        usual_p=None if usual is None else _probability_at(model, name, usual),
        weight=_weight_of_value(model, name),
    )


def _metrics_of_concept(model: Model, name: str) -> Mapping[str, Any]:
    """Return the row of a model's card that says how well a concept is found; empty if it has none.

    A row without a chance level (`movie_chance`) does not count: nothing can be compared with it.
    """
    for row in model.card.metrics:
        if row.get("task") == CONCEPT_TASK.format(name) and "movie_chance" in row:
            return row
    return {}


def _linear_bottleneck(model: Model) -> ConceptBottleneck | None:
    """Return the estimator of a model whose logit is a sum of concepts' contributions; None of other models.

    Such a model is a concept bottleneck with a linear head; a bottleneck with a tree, for example, is not.
    """
    estimator = model.estimator
    # Only a linear head has coefficients.
    if isinstance(estimator, ConceptBottleneck) and hasattr(estimator.head_, "coef_"):
        return estimator
    return None


def _usual_value(model: Model, concept: str) -> float | None:
    """Return the value of a concept at which it contributes 0: the mean of the training clips (`centre_`).

    None if the model is no linear concept bottleneck.
    """
    bottleneck = _linear_bottleneck(model)
    if bottleneck is None:
        return None
    return float(bottleneck.centre_[model.concepts.index(concept)])


def _weight_of_value(model: Model, concept: str) -> float | None:
    """Return what one more of a concept's value adds to the logit; None if it is no linear bottleneck."""
    bottleneck = _linear_bottleneck(model)
    if bottleneck is None:
        return None
    return float(bottleneck.head_.coef_[0, model.concepts.index(concept)])


def _probability_at(model: Model, concept: str, value: float) -> float | None:
    """Return the probability of a concept at a value; None if the model gives the concept no probability."""
    # A concept's probability depends on its own value alone: the other concepts have 0.
    values = np.zeros((1, len(model.concepts_with_probability)))
    column = list(model.concepts_with_probability).index(concept)
    values[0, column] = value
    p = float(model.probabilities_of(values)[0, column])
    return None if np.isnan(p) else p


def _contribution_when_absent(model: Model, concept: str) -> float | None:
    """Return a concept's contribution to the logit where it is absent.

    Absent means the 5th percentile of its values in the training clips. None if the model is no linear
    concept bottleneck.
    """
    bottleneck = _linear_bottleneck(model)
    if bottleneck is None:
        return None
    column = model.concepts.index(concept)
    absent_value = np.quantile(bottleneck.train_values_[:, column], 0.05)
    # A contribution is the weight times the distance of the value from the mean.
    weight = bottleneck.head_.coef_[0, column]
    mean_value = bottleneck.centre_[column]
    return float(weight * (absent_value - mean_value))


def expected_rate(rows: pd.DataFrame, model: Model, *, window_s: float, is_trained_on: bool) -> Rate:
    """Compute the share of a film's time that a model expects to be positive, or say why it is refused.

    The share is sum(duration * p) / sum(duration) over the counted rows. It has two intervals of 80 %:

    - The band of the calibration contains the shares by calibrations drawn from their posterior: it says how
      well the conversion of logits to probabilities is known.
    - The bracket is meant to contain the true share of a new film, and is wider. Its usual width comes from
      the errors of the expected shares of the films left out of training. If the film has few windows, its
      share varies more, and the bracket is wider than usual.

    Parameters
    ----------
    rows : DataFrame
        The model's rows.
    model : Model
    window_s : float
        Length of the film's windows.
    is_trained_on : bool
        Whether the model was trained on the film: then it gives no rate.
    """
    counted = is_counted(rows)
    counted_seconds = durations(rows)[counted]
    counted_s = float(counted_seconds.sum())
    unreliable_share = _unreliable_share(rows)
    reason = _why_no_rate(rows, model, unreliable_share, is_trained_on=is_trained_on)
    if reason or model.calibration is None:  # without a calibration there is always a reason
        return Rate(
            value=None,
            bracket_low=None,
            bracket_high=None,
            calibration_low=None,
            calibration_high=None,
            reason=reason,
            unreliable=unreliable_share,
            counted_s=counted_s,
            n_windows=None,
        )

    logits = rows.loc[counted, "logit"].to_numpy(dtype=np.float64)
    value, band_low, band_high = model.calibration.expected_share(logits, counted_seconds)

    # The bracket of this film, and the usual one, of a film of many windows. In few windows, chance decides
    # more on the share: this adds a variance.
    n_windows = counted_s / window_s
    extra_variance = _extra_variance(model, rows.loc[counted, "p"], counted_seconds, n_windows)
    bracket_low, bracket_high = model.calibration.bracket(value, extra_variance)
    usual_low, usual_high = model.calibration.bracket(value)
    wider_below = usual_low - bracket_low
    wider_above = bracket_high - usual_high
    is_clearly_wider = max(wider_below, wider_above) >= MIN_ADDED_WIDTH

    return Rate(
        value=value,
        bracket_low=bracket_low,
        bracket_high=bracket_high,
        calibration_low=band_low,
        calibration_high=band_high,
        reason="",
        unreliable=unreliable_share,
        counted_s=counted_s,
        # The number of windows is told only if it explains why the bracket is wider than usual.
        n_windows=n_windows if is_clearly_wider else None,
    )


def _unreliable_share(rows: pd.DataFrame) -> float:
    """Return the share of a film's content that is unlike the training or missing; 0 without content."""
    seconds = durations(rows)
    has_content = ~has_flag(rows, *NO_CONTENT)
    content_s = float(seconds[has_content].sum())
    unreliable_s = float(seconds[has_content & has_flag(rows, UNLIKE, MISSING)].sum())
    return unreliable_s / content_s if content_s else 0.0


def _why_no_rate(rows: pd.DataFrame, model: Model, unreliable_share: float, *, is_trained_on: bool) -> str:
    """Say why a model gives no rate of a film; "" if it gives one.

    If there are several reasons, the first one in this order is returned: what the model is, what the film
    shows, and how the model was calibrated, which alone can be mended by another run of `evaluate`.

    Parameters
    ----------
    rows : DataFrame
        The model's rows.
    model : Model
    unreliable_share : float
        Share of the film's content that is unlike any training clip or missing.
    is_trained_on : bool
    """
    if not model.decides:  # it gives no logit
        return "the model finds concepts and decides nothing"
    if is_trained_on:
        return "the model was trained on this film"
    if has_flag(rows, *NO_CONTENT).all():
        return "the film is black pictures or credits alone"
    if unreliable_share > MAX_UNRELIABLE_SHARE:
        return f"more than a fifth of what the film shows {_what_is_unreliable(rows)}"
    uncalibrated = _why_uncalibrated(model)
    if uncalibrated:
        return uncalibrated
    return "" if is_counted(rows).any() else "no part of the film is counted"


def _why_uncalibrated(model: Model) -> str:
    """Say why a model's probabilities cannot be averaged over a film; "" if they can."""
    if model.calibration is None:
        return "the model has no calibration"
    left_out = model.card.levels_left_out
    if left_out is None:
        return "the model's file does not say which levels it was calibrated on: save it again"
    if left_out:
        return (
            f"the model was calibrated without clips of {', '.join(left_out)}, which films have: "
            "save it again by evaluate with a --test of all levels"
        )
    return ""


def _what_is_unreliable(rows: pd.DataFrame) -> str:
    """Say what is wrong with the content without a probability, as the end of a sentence.

    It is unlike the training, could not be read, or some of it is the one and some the other.
    """
    has_content = ~has_flag(rows, *NO_CONTENT)
    is_unlike = has_flag(rows, UNLIKE)
    is_unread = has_flag(rows, MISSING) & ~is_unlike
    if not (has_content & is_unread).any():
        return "is unlike any clip of the training"
    if not (has_content & is_unlike).any():
        return "could not be read"
    return "is unlike any clip of the training, or could not be read"


def _extra_variance(model: Model, p: pd.Series, seconds: NDArray[np.float64], n_windows: float) -> float:
    """Compute the variance that the share of a film has because it has fewer windows than the films left out.

    The fewer windows a film has, the more its true share varies around the expected one by chance
    (`few_windows_variance`). 0 if the model's card does not say how many clips the films left out had.

    Parameters
    ----------
    model : Model
    p, seconds : shape [N]
        Probabilities and lengths of the film's counted rows.
    n_windows : float
        Length of these rows, in windows.
    """
    population = model.card.population
    if population is None or not population["clips"]:
        return 0.0
    mean_clips_of_film = sum(population["clips"].values()) / population["n_movies"]
    return few_windows_variance(p.to_numpy(dtype=np.float64), seconds, n_windows, mean_clips_of_film)


def traces_of(model: Model, key: str, store: Store, movie: str, clip_ids: Sequence[str]) -> pd.DataFrame:
    """Make the trace of a model: its values of single frames, averaged over short steps of a film.

    A model that reads frames gives each frame a weight in its window's logit, a contribution to it, and
    probabilities of concepts. All frames in a step (`_step_length_s`) are averaged, those of overlapping
    windows too.

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
        the store's frames, or gives the frames no probability of some concept.
    """
    all_concepts_have_p = model.concepts == model.concepts_with_probability
    if not all_concepts_have_p or not reads_frames(model, store):
        return NO_TRACES
    all_frames = frames_of(model, store, _usable_rows(store, model.card.backbone, clip_ids))
    frames = all_frames[all_frames["time_s"].notna()]

    # Average the frames of each step; `means` and `n_frames` are indexed by the step.
    step_s = _step_length_s(frames)
    step_of_frame = np.floor(frames["time_s"] / step_s)  # 0, 1, 2, ...
    frames_of_step = frames.groupby(step_of_frame, sort=True)
    concept_columns = [f"{concept}_p" for concept in model.concepts_with_probability]
    means = frames_of_step[[*TRACE_MEANS, *concept_columns]].mean()
    n_frames = frames_of_step.size().astype("Int64")

    # A row for each step
    starts = means.index.to_numpy(dtype=np.float64) * step_s
    trace = means.assign(movie=movie, model=key, start_s=starts, end_s=starts + step_s, n_frames=n_frames)
    trace = trace.reset_index(drop=True)
    return trace[[*TRACE_COLUMNS, *concept_columns]]


def _usable_rows(store: Store, backbone: str, clip_ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the rows of some clips in a store's group of features; clips without features are left out.

    Parameters
    ----------
    store : Store
    backbone : str
        Name of the group.
    clip_ids : sequence of str
    """
    group = store[backbone]
    wanted_ids = set(clip_ids)
    rows = []
    for row, clip_id in enumerate(group.clip_ids):
        if clip_id in wanted_ids and group.usable[row]:
            rows.append(row)
    return np.array(rows, dtype=np.intp)


def _step_length_s(frames: pd.DataFrame) -> float:
    """Return the length of a step of a trace: the typical time between frames, from 1 to 60 whole seconds."""
    gaps_s = frames.groupby("clip_id")["time_s"].diff()
    typical_gap_s = float(gaps_s[gaps_s > 0].median())  # NaN if no clip has two frames
    if not np.isfinite(typical_gap_s):
        return 1.0
    return float(min(max(1.0, np.ceil(typical_gap_s)), LONGEST_STEP_S))
