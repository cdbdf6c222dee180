"""Evaluate models strictly: each movie is tested by models trained on the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.screen import Progress, shown_progress
from obygaze_models.dataset.dataset import Dataset, refuse_labels
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.experts import SHARES, Experts, Tested, asked_of, variants, without_noise
from obygaze_models.evaluation.metrics import Metric, metrics_of, rows_by_movie
from obygaze_models.evaluation.predictions import records
from obygaze_models.evaluation.run import (
    CURVES,
    SELECTION,
    FoldRecord,
    Run,
    SeededFold,
    curves_of,
    gather,
    record_of,
    rows_of,
    selection_of,
)
from obygaze_models.evaluation.summary import summarise
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.names import OTHER
from obygaze_models.models.registry import models_for
from obygaze_models.models.spec import Fitted, ModelSpec, OrdinalModel, fit, fit_ordinal
from obygaze_models.protocol.folds import GAP, Split, leave_movies_out, scene_blocks, splits
from obygaze_models.protocol.targets import NOT_ASKED, Target, choose_targets

ROUNDING = 1e-12
"""By how much less a refit may be, and still as good."""


@checked
def evaluate(
    data: Dataset,
    models: str | Mapping[str, Any] | Sequence[str | ModelSpec] | None = None,
    task: str | Target = "",
    test: str | Target | Sequence[str | Target] | None = None,
    *,
    seed: int = 0,
    n_seeds: int = 1,
    seen: bool = False,
    imbalance: Imbalance = "none",
    test_seen_scores: bool = False,
    experts: Experts | None = None,
    metrics: Sequence[Metric] = (),
    origin: Mapping[str, object] | None = None,
    progress: Progress | bool | None = None,
) -> Run:
    """Train models on the other movies' clips and test them on each movie's.

    Each movie is a fold of its own; of more than 100 movies, 20 folds of whole movies are made, so that the
    work grows with the clips. The record says which.

    Parameters
    ----------
    data : Dataset
    models : sequence of str, mapping of str to estimator, sequence of ModelSpec, or None
        Names of the zoo's models, of entry points, or ``[name=]module:factory``; or estimators, factories and
        specs by name. None for the zoo's own. The baselines are always added.
    task : str or Target
        What is asked in training: a task of the codebook, ``concept:NAME``, ``levels`` or ``scale:NAME``.
    test : str or Target, or a sequence of them, optional
        What is asked of the clips tested; several share the models. By default as in training.
    seed : int
        With the name of the movie left out, or the block, it seeds every draw.
    n_seeds : int
        How many seeds, from `seed` on, every model that draws is trained with.
    seen : bool
        Whether movies are on both sides of every fold instead (`obygaze_models.protocol.folds`).
    imbalance : {"none", "weights", "subsample"}
        How the zoo's own perceptron handles class imbalance, in training clips alone.
    test_seen_scores : bool
        Whether clips that were judged with a model's score in sight are tested as well; such judgements lean
        towards the model's, so that they are trained on and not tested by default.
    experts : {"merged", "each", "soft", "noisy"}, optional
        What models are trained on where clips are there once for each annotator (`asked_of`); by default
        merged labels.
    metrics : sequence of Metric, optional
        Further metrics beside ours and those of installed packages (`obygaze.metrics`).
    origin : mapping, optional
        JSON values to record of where the labels come from, e.g. the manifest's digest and the label policy.
    progress : callable or bool, optional
        Called now and then with the numbers of models trained and of all; or whether to show a bar, by
        default in a notebook alone.

    Raises
    ------
    ProtocolError
        Fewer than 3 movies, a side of a fold without both classes, a leak, or targets that don't go together.
    ModelError
        A model that can't be found or trained.
    ConceptError
        A model that reads concepts was asked for, and none varies in enough movies.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.evaluate(data, {"bayes": GaussianNB()}, task="hn_s", test="enhn_s")
    >>> pooled = run.metrics.set_index(["model", "metric"])["pooled"]
    >>> bool(pooled["bayes", "average_precision"] > pooled["movie_prior", "average_precision"])
    True
    """
    train = _target(task, data)
    several = (test,) if isinstance(test, str | Target) else test or ()
    targets = [_target(name, data) for name in several] or [train]
    for wanted in targets:
        if (wanted.kind, wanted.n_classes, wanted.scale) != (train.kind, train.n_classes, train.scale):
            what = f"{train.name} ({train.kind}) can't be tested on {wanted.name} ({wanted.kind})"
            raise ProtocolError(f"a model trained on {what}")
        negative, positive = map(set, train.classes) if train.kind == "levels" else (set(), set())
        if turned := (negative & {*wanted.classes[-1]}) | (positive & {*wanted.classes[0]}):
            raise ProtocolError(
                f"{min(turned)!r} is on one side of {train.name}, which is trained, and on the other of "
                f"{wanted.name}, which is tested: the test would be upside down"
            )
    specs = models_for(train.kind, (models,) if isinstance(models, str) else models, imbalance=imbalance)
    asked = asked_of(data, train, targets, experts)
    learnt = {  # a label of each clip, whichever of several it counts with
        end: np.select([codes != NOT_ASKED for codes in several], several, NOT_ASKED)
        for end, several in asked.learnt.items()
    }
    tests, kept_out = (asked.tests, 0) if test_seen_scores else _without_seen_scores(data, asked.tests)
    _check_classes(data, train, learnt, tests)
    folds = list(_folds(data, learnt, tests, range(seed, seed + n_seeds), seen=seen))
    concepts = {fold.name: varying(data, fold.context_rows) for fold in folds}
    specs, left_out = _with_concepts(specs, concepts, explicit=models is not None)
    trained = list(variants(specs, asked, data))
    specs = [spec for _, spec in trained]
    read = dict.fromkeys((spec.reads, spec.streams) for spec in specs)
    features = {(reads, stream): data.read(reads, stream=stream) for reads, stream in read}
    blocks, selection, curves = list[dict[str, Any]](), list[dict[str, Any]](), list[pd.DataFrame]()
    found: dict[SeededFold, FoldRecord] = {
        fold: {
            "fold": fold.split.fold,
            "movie": fold.name,
            "seed": fold.seed,
            "train_clips": len(fold.split.train),
            "train_positives": int(
                np.any([codes[fold.split.train] == 1 for codes in learnt.values()], axis=0).sum()
            ),
            "tested": {
                test.target.name: int((test.codes[fold.split.test] != NOT_ASKED).sum()) for test in tests
            },
            "thresholds": {},
            "zeros": {},
            "concepts_left_out": sorted(set(data.labels.concepts) - set(concepts[fold.name])),
        }
        for fold in folds
    }
    cleaned = {fold: without_noise(asked, data, fold.split.train) for fold in folds if asked.noisy}
    todo = [
        (fold, spec, cleaned[fold][0] if asked.noisy and spec.looks_at_features else asked.learnt[end])
        for fold in folds
        for end, spec in trained
        if fold.seed == seed or spec.draws()
    ]
    with shown_progress(progress, "training", "model") as show:
        for done, (fold, spec, codes) in enumerate(todo):
            X = features[spec.reads, spec.streams]
            model = _fit(spec, fold, data, X, learnt=(train, codes), concepts=concepts[fold.name])
            found[fold]["thresholds"][spec.name] = model.threshold
            if isinstance(model, Fitted) and spec.looks_at_features:
                found[fold]["zeros"][spec.name] = model.mean_score(X, fold.split.train, data.movies)
            scores = model.scores(X[fold.split.test], data.movies[fold.split.test])
            about: dict[str, Any] = {"model": spec.name, "train": train.name, "threshold": model.threshold}
            blocks += [rows_of(data, fold, test, scores, **about) for test in tests]
            where = about | {"fold": fold.split.fold, "movie": fold.name, "seed": fold.seed}
            selection += selection_of(model, where)
            curves += curves_of(model, where)
            show(done + 1, len(todo))
    blocks += [
        rows_of(data, fold, test, test.others[fold.split.test], model=OTHER, train=train.name, threshold=0.5)
        for fold in folds
        for test in tests
        if test.others is not None
    ]
    yardstick = {OTHER: "the other annotators"} if any(test.others is not None for test in tests) else {}
    predictions = gather(blocks, [*(spec.name for spec in specs), *yardstick], train.n_classes)
    table = summarise(predictions, metrics_of(train.n_classes, metrics))
    record = record_of(
        data,
        train,
        tests,
        specs=specs,
        seeds=range(seed, seed + n_seeds),
        folds=[*found.values()],
        seen=seen,
        left_out=left_out,
        origin=origin,
    )
    if kept_out:
        record["clips"]["seen_score"] = kept_out
    if asked.by_annotator:
        noise = _noise(asked.noisy, [shares for _, shares in cleaned.values()])
        record |= {"experts": experts or "merged"} | noise
        record["models"] |= {name: {"title": title} for name, title in yardstick.items()}
    return Run(
        predictions,
        table,
        pd.DataFrame(selection, columns=list(SELECTION)),
        pd.concat(curves or [pd.DataFrame(columns=list(CURVES))], ignore_index=True)[list(CURVES)],
        record,
        {spec.name: spec.title for spec in specs} | yardstick,
        tuple(metrics),
        tuple(specs),
    )


def _noise(annotators: Iterable[str], folds: Sequence[NDArray[np.float64]]) -> dict[str, Any]:
    """Average over folds how often each annotator is right, for the record; nothing where it is not asked."""
    means = np.stack(folds, axis=-1).mean(axis=-1).tolist() if folds else []
    own = {name: dict(zip(SHARES, each, strict=True)) for name, each in zip(annotators, means, strict=True)}
    return {"noise": own} if own else {}


@checked
def seed_of(seed: int, fold: int | str) -> int:
    """Derive a fold's seed from a run's, so that no two folds draw alike.

    A fold is named by its number, or by the movie that it leaves out: a movie's seed is then the same
    whatever other movies there are.
    """
    name = (fold,) if isinstance(fold, int) else tuple(fold.encode("utf-8"))
    return int(np.random.SeedSequence((seed, *name)).generate_state(1)[0])


@checked
def varying(data: Dataset, rows: NDArray[np.intp]) -> list[str]:
    """List the concepts that can be learnt from some clips: varying whatever movie of theirs is left out."""
    _, movie = np.unique(data.movies[rows], return_inverse=True)
    present = data.labels.present[rows]
    clips = np.bincount(movie)
    marked = np.empty((present.shape[1], len(clips)))
    for concept, column in enumerate(present.T):
        marked[concept] = np.bincount(movie, weights=column, minlength=len(clips))
    rest = marked.sum(axis=1, keepdims=True) - marked  # of the other movies, [concepts, movies]
    kept = ((rest > 0) & (rest < clips.sum() - clips)).all(axis=1)
    return [concept for concept, good in zip(data.labels.concepts, kept, strict=True) if good]


def _target(given: str | Target, data: Dataset) -> Target:
    return given if isinstance(given, Target) else choose_targets(data.codebook, given or None, None)[0]


def _without_seen_scores(data: Dataset, tests: list[Tested]) -> tuple[list[Tested], int]:
    """Leave out of all tests the clips that were judged with a model's score in sight; count them."""
    seen = data.labels.seen_score
    if seen is None:
        return tests, 0
    tested = np.any([test.codes != NOT_ASKED for test in tests], axis=0)
    without = [test._replace(codes=np.where(seen, NOT_ASKED, test.codes)) for test in tests]
    return without, int((seen & tested).sum())


def _folds(
    data: Dataset,
    learnt: Mapping[str, NDArray[np.int64]],
    tests: Sequence[Tested],
    seeds: Sequence[int],
    *,
    seen: bool,
) -> Iterator[SeededFold]:
    """Cut the clips into folds, each under each seed."""
    learnable, testable = (
        np.any([codes != NOT_ASKED for codes in several], axis=0)
        for several in (learnt.values(), [test.codes for test in tests])
    )
    used = np.flatnonzero(learnable | testable)
    ids, movies = tuple(data.clip_ids[used].tolist()), tuple(data.movies[used].tolist())
    cut = (learnable[used], testable[used])
    table = (scene_blocks if seen else leave_movies_out)(ids, movies)
    cuts = list(splits(table, *cut))
    for number in seeds:
        for split in cuts:
            own = Split(split.fold, used[split.train], used[split.test])
            tested = np.unique(data.movies[own.test])
            grouped = seen or len(tested) > 1
            name = f"{'block' if seen else 'fold'} {split.fold}" if grouped else str(tested[0])
            left_out = name if grouped else f"movie {name}"
            for end, codes in learnt.items():
                _check_learnable(codes[own.train], left_out, end, seen=seen)
            context_rows = own.train
            if not seen:
                context_rows = np.flatnonzero(np.isin(data.movies, np.unique(data.movies[own.train])))
            yield SeededFold(name, own, context_rows, number)


def _check_learnable(codes: NDArray[np.int64], left_out: str, end: str, *, seen: bool) -> None:
    """Refuse a fold whose training clips, of these codes, are none or of one class alone."""
    missing = ""
    if not len(codes):
        missing = "no clip"
    elif codes.max() <= 1 and not (codes == 1).any():
        missing = "no positive clip"
    elif codes.max() <= 1 and not (codes == 0).any():
        missing = "no negative clip"
    if not missing:
        return
    advice = "both classes must be in at least 3 movies"
    if seen:
        left_out += f" and the {GAP} clips on either side of it in each movie"
        advice = "movies are too short for blocks; leave whole movies out instead"
    raise ProtocolError(f"without {left_out} there is {missing}{_by(end)} to learn from: {advice}")


def _check_classes(
    data: Dataset,
    train: Target,
    learnt: Mapping[str, NDArray[np.int64]],
    tests: Sequence[Tested],
) -> None:
    sides = {f"trained on{_by(end)}": codes for end, codes in learnt.items()}
    sides |= {f"tested on ({test.target.name})": test.codes for test in tests}
    for side, codes in sides.items():
        rows = codes != NOT_ASKED
        for rank in range(train.n_classes) if train.kind != "ordinal" else (0, train.n_classes - 1):
            if not (codes == rank).any():
                kind = ("negative", "positive")[rank] if train.kind != "ordinal" else train.classes[rank][0]
                raise ProtocolError(
                    f"no {kind} clip to be {side}: {int(rows.sum())} clips with features, "
                    f"of the levels {', '.join(np.unique(data.levels[rows])) or 'none'}"
                )
    labels = {f"{train.name}{end}": codes for end, codes in learnt.items()}
    refuse_labels(data, labels | {test.target.name: test.codes for test in tests})


def _by(end: str) -> str:
    """Name the annotator whose labels models with this end of their names are trained on."""
    return f" by {end.removeprefix('@')}" if end else ""


def _with_concepts(
    specs: Sequence[ModelSpec], concepts: Mapping[str, list[str]], *, explicit: bool
) -> tuple[list[ModelSpec], dict[str, str]]:
    """Leave out the models that read concepts where some fold has none to read.

    Raises
    ------
    ConceptError
        They were asked for by name.
    """
    reading = [spec for spec in specs if "present" in spec.requests()]
    if not reading or all(concepts.values()):
        return list(specs), {}
    fold = next(name for name, learnable in concepts.items() if not learnable)
    reason = f"no concept is marked in enough movies to be learnt without {fold}"
    if explicit:
        raise ConceptError(f"model {reading[0].name}: {reason}")
    return [spec for spec in specs if spec not in reading], {spec.name: reason for spec in reading}


def _fit(
    spec: ModelSpec,
    fold: SeededFold,
    data: Dataset,
    X: NDArray[Any],
    *,
    learnt: tuple[Target, Sequence[NDArray[np.int64]]],
    concepts: Sequence[str],
) -> Fitted | OrdinalModel:
    """Fit a model on a fold's training side; X is all clips'.

    `learnt` is the target and every clip's label; of several labels, rows count once for each.
    """
    target, several = learnt
    requests = spec.requests()
    rows = fold.context_rows if "unlabelled" in requests else fold.split.train
    inside = np.isin(rows, fold.split.train)
    y = np.concatenate([np.where(inside, labels[rows], NOT_ASKED) for labels in several])
    rows = np.concatenate([rows] * len(several))
    given: dict[str, Any] = {"movies": data.movies[rows]}
    if "present" in requests:
        given["present"] = data.present.loc[rows, list(concepts)]
    number = seed_of(fold.seed, fold.name)
    try:
        if target.kind == "ordinal":
            return fit_ordinal(spec, number, X[rows], y, n_levels=target.n_classes, **given)
        return fit(spec, number, X[rows], y, **given)
    except ProtocolError as error:
        raise ProtocolError(f"model {spec.name}, without {fold.name}: {error}") from error


# --- refits: films exchange their whole sequences of labels, and everything is trained again
# ---------------------------------------------------------------------------
# Where features and labels change slowly, t over films, shifts of labels within films and clips exchanged
# freely call too many models significant. A whole film's labels keep their course, and where films are about
# alike any film's labels could have been another's. `benchmarks/planted/in_time.py` measures it.
def exchanged_films(movies: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw for each clip [N] the clip whose labels it takes: of one other film, at the same place in it.

    A film's clips are in the order of the film. Of films of another length labels are repeated or skipped.
    """
    films, rows = rows_by_movie(movies), np.empty(len(movies), np.intp)
    for own, giver in zip(films, rng.permutation(len(films)), strict=True):
        rows[own] = films[giver][np.arange(len(own)) * len(films[giver]) // len(own)]
    return rows


def with_refits(
    run: Run,
    data: Dataset,
    models: Sequence[ModelSpec],
    n: int,
    each: Callable[[int], object] = lambda _: None,
    **how: Any,
) -> Run:
    """Add p of models to a run's record (`refits`): the share of refits that do as well by movie, or better.

    The run counts as one of them, so that no p is below 1 / (n + 1). A refit that leaves a fold without what
    models are trained on is left out.

    Parameters
    ----------
    run : Run
    data : Dataset
    models : sequence of ModelSpec
        Models of the run.
    n : int
        How many refits.
    each : callable
        Called with the number of refits done.
    **how
        The further arguments of `evaluate` that made the run, task and test among them.

    Raises
    ------
    ProtocolError
        No refit could be trained.
    """
    alone = [replace(spec, beside=()) for spec in models]
    names = {spec.name for spec in models}
    metric = next(one for one in metrics_of(run.predictions.n_classes).values() if one.answers)

    def values(of: Run) -> "pd.Series[float]":
        own = of.metrics[[name.partition("@")[0] in names for name in of.metrics["model"]]]
        return own[own["metric"] == metric.name].set_index(["task", "model"])["movie_mean"]

    rng, drawn, reason = np.random.default_rng(how.get("seed", 0)), [], None
    for number in range(n):
        labels = data.labels.take(exchanged_films(data.movies, rng))
        labels = replace(labels, clip_ids=data.clip_ids, movies=data.movies)
        try:
            drawn.append(values(evaluate(replace(data, labels=labels), alone, progress=False, **how)))
        except (ConceptError, ProtocolError) as error:
            reason = error
        each(number + 1)
    if not drawn:
        raise ProtocolError(f"no refit could be trained: {reason}")
    refits, observed = pd.concat(drawn, axis=1), values(run)
    sign = 1 if metric.higher_is_better else -1
    better = (sign * refits).ge(sign * observed - ROUNDING, axis=0)
    p = ((1 + better.sum(axis=1)) / (1 + refits.notna().sum(axis=1))).where(observed.notna())
    told = pd.DataFrame({"p": p, "observed": observed, "refits": refits.mean(axis=1)})
    about = {"metric": metric.name, "n": len(drawn), "left_out": n - len(drawn)}
    return replace(run, record=run.record | {"refits": about | {"models": records(told.reset_index())}})
