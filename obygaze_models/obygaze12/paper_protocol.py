"""Compute every prediction behind the papers' tables and figures under the `paper` protocol.

Models and settings are the original code's; `obygaze_models.obygaze12.folds` has its folds and
`obygaze_models.obygaze12.settings` the settings of its concept models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.manifest import Manifest
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts import Hyperplanes, SVMTask, svm_hyperplanes
from obygaze_models.concepts.heads import head_scores
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.evaluation.evaluate import seed_of
from obygaze_models.evaluation.metrics import f1_pos
from obygaze_models.models import MLPProbe, fit_many
from obygaze_models.models.selection import ABOVE_ZERO
from obygaze_models.obygaze12.corpus import TASKS, VISUAL_CONCEPTS, Corpus
from obygaze_models.obygaze12.folds import (
    Negatives,
    classifier_folds,
    concept_folds,
    concept_labels,
    head_fold,
    movie_folds,
)
from obygaze_models.obygaze12.published import CELLS, MOVIE_PAIRS, Cell
from obygaze_models.obygaze12.settings import CAV_C, elect, logistic_head, tree_head
from obygaze_models.protocol import Fold

Progress = Callable[[int, int], None]
Rows = dict[str, NDArray[Any]]
"""The columns of some rows of the table of predictions; a thousand of them cost less than as many tables."""

NEGATIVES = (Negatives.EN, Negatives.ALL)
"""Negatives of Figure 3's solid and hatched bars."""


def cell_folds(manifest: Manifest) -> dict[Cell, tuple[Fold, ...]]:
    """Make the eight folds of each cell of Table 2."""
    return {(train, test): classifier_folds(manifest, TASKS[train], TASKS[test]) for train, test in CELLS}


def pair_folds(manifest: Manifest) -> tuple[Fold, ...]:
    """Make the film pairs of Table 4."""
    train, test = MOVIE_PAIRS
    return movie_folds(manifest, TASKS[train], TASKS[test])


def positive(data: Dataset) -> NDArray[np.int64]:
    """Assign 1 for S clips, 0 for the others [N]."""
    return TASKS["enhn_s"].labels(data.levels)


def _predicted(
    data: Dataset,
    rows: NDArray[np.intp],
    *,
    model: str,
    task: str,
    fold: int,
    seed: int,
    score: NDArray[np.floating],
    threshold: float,
    label: NDArray[np.int64] | None = None,
) -> Rows:
    """Make the rows of one model tested on some clips; labels are those of S unless given."""
    columns: dict[str, Any] = {
        "model": model,
        "task": task,
        "fold": fold,
        "seed": seed,
        "clip_id": data.clip_ids[rows],
        "movie": data.movies[rows],
        "label": positive(data)[rows] if label is None else label,
        "score": score.astype(np.float64),
        "threshold": threshold,
        "store": data.store,
    }
    return {name: np.broadcast_to(columns[name], len(rows)) for name in COLUMNS}


def _gather(blocks: list[Rows]) -> Predictions:
    """Stack blocks into one table, model by model and task by task, folds in the order given."""
    stacked = pd.DataFrame({name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS})
    rank = {name: place for place, name in enumerate(dict.fromkeys(stacked["model"]))}
    order = np.lexsort((np.arange(len(stacked)), stacked["task"].to_numpy(str), stacked["model"].map(rank)))
    return Predictions(stacked.iloc[order].reset_index(drop=True))


def classifiers(
    manifest: Manifest, data: Dataset, seed: int, progress: Progress | None = None
) -> Predictions:
    """Train the perceptron on the eight folds of each training task, and test it on both test tasks."""
    folds = cell_folds(manifest)
    first = {train: folds[train, test] for train, test in CELLS}
    every = [fold for own in first.values() for fold in own]
    probes = _probes(data, every, [seed_of(seed, place) for place in range(len(every))], progress)
    fitted = iter(probes)
    models = {train: [next(fitted) for _ in own] for train, own in first.items()}
    return _gather(
        [
            _tested(data, probe, fold, task=f"{train}>{test}", number=number, seed=seed)
            for (train, test), own in folds.items()
            for number, (probe, fold) in enumerate(zip(models[train], own, strict=True))
        ]
    )


def movie_pairs(
    manifest: Manifest, data: Dataset, seed: int, progress: Progress | None = None
) -> Predictions:
    """Train the perceptron for each pair of films; fold i of the table is the i-th pair.

    Testing on film i and validating on j, and the reverse, have the same training clips. They have the same
    seed too, and so are one training that each validation film stops on its own.
    """
    folds = pair_folds(manifest)
    first: dict[tuple[str, ...], int] = {}
    seeds = [seed_of(seed, first.setdefault(fold.train, place)) for place, fold in enumerate(folds)]
    probes = _probes(data, folds, seeds, progress)
    task = f"movies:{'>'.join(MOVIE_PAIRS)}"
    return _gather(
        [
            _tested(data, probe, fold, task=task, number=number, seed=seed)
            for number, (probe, fold) in enumerate(zip(probes, folds, strict=True))
        ]
    )


def _probes(
    data: Dataset,
    folds: Sequence[Fold],
    seeds: Sequence[int],
    progress: Progress | None,
) -> list[MLPProbe]:
    probes = [MLPProbe(variant="paper", random_state=seed) for seed in seeds]
    fit_many(
        probes,
        data.X,
        positive(data),
        [data.rows(fold.train) for fold in folds],
        validation=[data.rows(fold.validation) for fold in folds],
        progress=progress,
    )
    return probes


def _tested(
    data: Dataset,
    probe: MLPProbe,
    fold: Fold,
    *,
    task: str,
    number: int,
    seed: int,
) -> Rows:
    rows = data.rows(fold.test)
    score = probe.decision_function(data.X[rows])
    return _predicted(
        data,
        rows,
        model="mlp",
        task=task,
        fold=number,
        seed=seed,
        score=score,
        threshold=probe.threshold_,
    )


@dataclass(frozen=True, eq=False)
class PaperConcepts:
    """The CAVs of one source.

    Attributes
    ----------
    predictions : Predictions
        Task ``concept|negatives``, fold k the split validated on fold k; the score is the signed distance.
    elected : dict of (str, Negatives) to int
        The split whose CAV has the highest f1_pos on its validation fold.
    planes : dict of Negatives to Hyperplanes
        Of the elected CAVs, in the concepts' order.
    """

    predictions: Predictions
    elected: Mapping[tuple[str, Negatives], int]
    planes: Mapping[Negatives, Hyperplanes]


def concepts(manifest: Manifest, data: Dataset) -> PaperConcepts:
    """Fit the nine CAVs of each concept against each choice of negatives, and elect one."""
    asked = [(negatives, concept) for negatives in NEGATIVES for concept in VISUAL_CONCEPTS]
    labels = {
        (negatives, concept): concept_labels(manifest, concept, negatives) for negatives, concept in asked
    }
    folds = {
        (negatives, concept): concept_folds(manifest, concept, negatives) for negatives, concept in asked
    }

    def side(one: tuple[Negatives, str], clips: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        kept = [clip_id for clip_id in clips if clip_id in data.row_of]
        return data.rows(kept), np.array([labels[one][clip_id] for clip_id in kept], dtype=np.int64)

    problems = []
    for one in asked:
        for fold in folds[one]:
            rows, label = side(one, fold.train)
            problems.append(SVMTask(rows, label == 1, CAV_C[one[1]]))
    planes = svm_hyperplanes(data.X, problems)
    blocks, elected, chosen = [], {}, {}
    number = 0
    for one in asked:
        negatives, concept = one
        validated = []
        for k, fold in enumerate(folds[one]):
            plane = Hyperplanes(planes.weights[[number + k]], planes.intercepts[[number + k]])
            rows, label = side(one, fold.validation)
            validated.append(
                float(np.nan_to_num(f1_pos(label, plane.distances(data.X[rows])[:, 0] >= ABOVE_ZERO)))
            )
            rows, label = side(one, fold.test)
            blocks.append(
                _predicted(
                    data,
                    rows,
                    model="cav_svm",
                    task=f"{concept}|{negatives}",
                    fold=k,
                    seed=0,
                    score=plane.distances(data.X[rows])[:, 0],
                    threshold=ABOVE_ZERO,
                    label=label,
                )
            )
        elected[concept, negatives] = elect(validated)
        chosen[concept, negatives] = number + elected[concept, negatives]
        number += len(folds[one])
    of = {negatives: [chosen[concept, negatives] for concept in VISUAL_CONCEPTS] for negatives in NEGATIVES}
    return PaperConcepts(
        _gather(blocks),
        elected,
        {
            negatives: Hyperplanes(planes.weights[which], planes.intercepts[which])
            for negatives, which in of.items()
        },
    )


HEADS = {"pcbm_dt": tree_head, "pcbm_lr": logistic_head}


@dataclass(frozen=True, eq=False)
class PaperHeads:
    """The heads on the elected CAVs: their predictions, and the trees by training task and negatives."""

    predictions: Predictions
    trees: Mapping[tuple[str, Negatives], object]


def heads(manifest: Manifest, data: Dataset, found: PaperConcepts) -> PaperHeads:
    """Fit the PCBM heads on raw decision values, as the original code does, and test them on fold 9."""
    y = positive(data)
    blocks, trees = [], {}
    for negatives in NEGATIVES:
        values = found.planes[negatives].decisions(data.X)
        for name, make in HEADS.items():
            for train in dict.fromkeys(train for train, _ in CELLS):
                rows = data.rows(head_fold(manifest, TASKS[train], TASKS[train]).train)
                # Plain numbers: the original code hands its heads float64.
                head = make(train).fit(values[rows], y[rows])
                if name == "pcbm_dt":
                    trees[train, negatives] = head
                for test in (test for other, test in CELLS if other == train):
                    fold = head_fold(manifest, TASKS[train], TASKS[test])
                    seen = data.rows(fold.test)
                    blocks.append(
                        _predicted(
                            data,
                            seen,
                            model=f"{name}|{negatives}",
                            task=f"{train}>{test}",
                            fold=0,
                            seed=0,
                            score=head_scores(head, values[seen]),
                            threshold=ABOVE_ZERO,
                        )
                    )
    return PaperHeads(_gather(blocks), trees)


@dataclass(frozen=True, eq=False)
class PaperResults:
    """One source under the `paper` protocol: each table of predictions made once, when asked for."""

    corpus: Corpus
    source: Dataset
    seed: int = 0
    progress: Progress | None = None

    @cached_property
    def classifiers(self) -> Predictions:
        """The perceptron in the four cells of Table 2."""
        with one_blas_thread():
            return classifiers(self.corpus.manifest, self.source, self.seed, self.progress)

    @cached_property
    def movie_pairs(self) -> Predictions:
        """The perceptron on the film pairs of Table 4."""
        with one_blas_thread():
            return movie_pairs(self.corpus.manifest, self.source, self.seed, self.progress)

    @cached_property
    def concepts(self) -> PaperConcepts:
        """The CAVs of Figure 3."""
        with one_blas_thread():
            return concepts(self.corpus.manifest, self.source)

    @cached_property
    def heads(self) -> PaperHeads:
        """The PCBM heads of Table 2."""
        with one_blas_thread():
            return heads(self.corpus.manifest, self.source, self.concepts)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """What was computed, and nothing that was not, by the stem of the file that keeps it."""
        done = self.__dict__
        whole = [done[name] for name in ("classifiers", "movie_pairs") if name in done]
        whole += [done[name].predictions for name in ("heads", "concepts") if name in done]
        return {"predictions": pd.concat([one.table for one in whole], ignore_index=True)} if whole else {}
