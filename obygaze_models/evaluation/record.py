"""Define the record of an evaluation (task, data, folds, models) as one schema.

The checks of a record that is read and docs/run-record.schema.json follow from the classes below.
"""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Annotated, Any, TypedDict, cast

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict
from numpy.typing import NDArray

from obygaze_features.schema import Count, Flag, Hex64, Number, SomeText, Text, Versions, Whole, check
from obygaze_models.dataset import Dataset
from obygaze_models.errors import RunError
from obygaze_models.evaluation.metrics import prevalence
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.folds import MOVIES_ALONE, N_GROUPED, Split
from obygaze_models.protocol.targets import NOT_ASKED, CodebookRecord, Target, TargetRecord

PROTOCOL = "strict: leave one movie out; all that is chosen is chosen by inner folds of movies"

GROUPED = (
    f"strict: {N_GROUPED} folds of whole movies, as there are more than {MOVIES_ALONE}; "
    "all that is chosen is chosen by inner folds of movies"
)

SEEN = (
    "SEEN MOVIES: blocks of scenes with a gap, each tested by models that know the rest of its movie; all "
    "that is chosen is chosen by inner folds of movies"
)

Seed = Annotated[int, Meta(description="a whole number")]
Texts = Annotated[dict[str, str], Meta(description="an object of texts")]


class _StoreCounts(TypedDict, total=False):
    """Numbers of clips where the features are a store's."""

    manifest: Whole
    unlabelled: Whole
    with_features: Whole
    partial: Whole
    in_store_only: Whole
    seen_score: Whole


class ClipCounts(_StoreCounts):
    """Numbers of clips."""

    other_levels: Whole
    tested: Whole


class Excluded(TypedDict):
    """A clip that has labels and no features, and why."""

    clip_id: Text
    reason: Text


class FoldRecord(TypedDict):
    """A fold under one seed: what was trained and tested, and the threshold of each model."""

    fold: Whole
    movie: Text
    seed: Seed
    train_clips: Whole
    train_positives: Whole
    tested: Annotated[dict[str, Whole], Meta(description="an object of numbers of clips")]
    thresholds: Annotated[dict[str, Number | None], Meta(description="an object of numbers")]
    concepts_left_out: list[Text]


class RunRecord(Struct, kw_only=True):
    """The record of a run; other fields may be added and are kept."""

    protocol: SomeText
    codebook: CodebookRecord
    train: TargetRecord
    tests: list[TargetRecord]
    n_classes: Annotated[int, Meta(ge=2, description="a whole number above 1")]
    seeds: list[Seed]
    store: Text
    backbone: Text
    untrained: Flag
    features: Text
    pool: Text
    n_features: Count
    clips: ClipCounts
    movies_tested: Whole
    prevalence: Annotated[dict[str, Number | None], Meta(description="an object of shares, or null")]
    excluded: list[Excluded]
    models_left_out: Texts
    folds: list[FoldRecord]
    models: Annotated[dict[str, dict[str, str]], Meta(description="an object of the models' settings")]
    versions: Versions
    reduced_by: SomeText | UnsetType = UNSET
    """How the tokens were reduced that models of frames and tokens read."""
    manifest_sha256: Hex64 | UnsetType = UNSET
    label_policy: Text | UnsetType = UNSET


class RunDocument(Struct, kw_only=True):
    """The JSON document run.json of a run's folder."""

    record: RunRecord
    metrics: Annotated[list[dict[str, Any]], Meta(description="a list of rows of metrics")]


def check_document(found: object, where: str) -> Mapping[str, Any]:
    """Check the JSON document of a run and return its record.

    Raises
    ------
    RunError
        Naming the fields that are wrong.
    """
    if not isinstance(found, Mapping):
        raise RunError(f"{where}: expected the JSON object of a run; found {found!r:.80}")
    check(found, (RunDocument,), where, error=RunError, page="docs/evaluation.md")
    record: Mapping[str, Any] = found["record"]
    return record


def fold_record(
    split: Split,
    movie: str,
    seed: int,
    learnt: NDArray[np.int64],
    asked: Mapping[str, NDArray[np.int64]],
    *,
    thresholds: Mapping[str, float],
    concepts_left_out: list[str],
) -> FoldRecord:
    """Describe a fold; `movie` is the one left out, or the block."""
    train, test = split.train, split.test
    return {
        "fold": split.fold,
        "movie": movie,
        "seed": seed,
        "train_clips": len(train),
        "train_positives": int((learnt[train] == 1).sum()),
        "tested": {name: int((codes[test] != NOT_ASKED).sum()) for name, codes in asked.items()},
        "thresholds": dict(thresholds),
        "concepts_left_out": concepts_left_out,
    }


def record_of(
    data: Dataset,
    train: Target,
    tests: Sequence[Target],
    asked: Mapping[str, NDArray[np.int64]],
    *,
    specs: Sequence[ModelSpec],
    seeds: Sequence[int],
    folds: list[FoldRecord],
    seen: bool,
    left_out: Mapping[str, str],
    origin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe an evaluation as JSON values; `origin` says where the labels come from."""
    levels = {level for one in (train, *tests) for level in one.levels}
    concerned = [one for one in data.excluded if one.level in levels or train.scale]
    tested = np.any([codes != NOT_ASKED for codes in asked.values()], axis=0)
    n_movies = len(np.unique(data.movies[tested | (train.of(data.labels) != NOT_ASKED)]))
    others = ~(tested | (train.of(data.labels) != NOT_ASKED))
    clips = {**data.counts, "other_levels": int(others.sum()), "tested": int(tested.sum())}
    record = RunRecord(
        protocol=SEEN if seen else GROUPED if n_movies > MOVIES_ALONE else PROTOCOL,
        codebook={"name": data.codebook.name, "digest": data.codebook.digest()},
        train=train.record(),
        tests=[one.record() for one in tests],
        n_classes=train.n_classes,
        seeds=list(seeds),
        store=data.store,
        backbone=data.backbone,
        untrained=data.untrained,
        features=data.features,
        pool=data.pool,
        n_features=int(data.X.shape[1]),
        reduced_by=UNSET if data.reduction is None else data.reduction.rule,
        clips=cast("ClipCounts", clips),
        movies_tested=len(np.unique(data.movies[tested])),
        prevalence={
            name: prevalence(codes[codes != NOT_ASKED]) if train.n_classes == 2 else None
            for name, codes in asked.items()
        },
        excluded=[{"clip_id": clip.clip_id, "reason": clip.reason} for clip in concerned],
        models_left_out=dict(left_out),
        folds=folds,
        models={spec.name: spec.settings() for spec in specs},
        versions={
            "python": platform.python_version(),
            **{name: version(name) for name in ("obygaze", "numpy", "scikit-learn")},
        },
    )
    known = {name: value for name, value in asdict(record).items() if value is not UNSET}
    return {**(origin or {}), **known}
