"""Compute what stands behind the papers' tables and figures, under the `paper` or the `strict` protocol.

Models and settings of `paper` are the original code's, for the papers print none of its concept models;
`obygaze_studies.obygaze12.paper_folds` has its folds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from obygaze_features.manifest import Manifest
from obygaze_models.concepts import ConceptBottleneck, Hyperplanes, head_scores, svm_hyperplanes
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import Predictions, Run, evaluate, f1_pos, seed_of, varying
from obygaze_models.models import ABOVE_ZERO, BUILTIN_MODELS, MLPProbe, fit, fit_many
from obygaze_models.protocol import Fold, Target, concept_target, find_target
from obygaze_studies.obygaze12 import paper_folds
from obygaze_studies.obygaze12.corpus import TASKS, VISUAL_CONCEPTS, PaperCorpus
from obygaze_studies.obygaze12.printed_values import CELLS, MOVIE_PAIRS, PUBLISHED, Cell
from obygaze_studies.unfinished import kept_result

Progress = Callable[[int, int], None]

TESTS: dict[str, list[str]] = {}
for _train, _test in CELLS:
    TESTS.setdefault(_train, []).append(_test)
"""Task that is trained on -> the tasks that are tested, in Table 2."""


# --- concept models of the paper protocol
# ---------------------------------------------------------------------------
CAV_C: Mapping[str, float] = PUBLISHED["code"]["cav_c"]
"""C of each concept's SVM; its class weight is balanced."""

SEED = 42

NEGATIVES = (paper_folds.Negatives.EN, paper_folds.Negatives.ALL)
"""Negatives of Figure 3's solid and hatched bars."""

ConceptTask = tuple[str, paper_folds.Negatives]
"""A concept and its choice of negatives."""

CONCEPT_TASKS: tuple[ConceptTask, ...] = tuple(
    (concept, negatives) for negatives in NEGATIVES for concept in VISUAL_CONCEPTS
)


TREES: Mapping[str, dict[str, int]] = PUBLISHED["code"]["trees"]
"""Limits of PCBM-DT by the task trained on."""

LOGISTICS: Mapping[str, dict[str, float]] = PUBLISHED["code"]["logistics"]
"""Penalty of PCBM-LR by the task trained on."""


@dataclass(frozen=True, eq=False)
class PaperConcepts:
    """The CAVs of one source.

    Attributes
    ----------
    predictions : Predictions
        Task ``concept|negatives``, fold k the split validated on fold k; the score is the signed distance.
    elected : dict of ConceptTask to int
        The split whose CAV has the highest f1_pos on its validation fold.
    planes : dict of Negatives to Hyperplanes
        Of the elected CAVs, in the concepts' order.
    """

    predictions: Predictions
    elected: Mapping[ConceptTask, int]
    planes: Mapping[paper_folds.Negatives, Hyperplanes]


def concepts(manifest: Manifest, data: Dataset) -> PaperConcepts:
    """Fit the nine CAVs of each concept against each choice of negatives, and elect one.

    Raises
    ------
    FoldsError
        Too few clips of a fold have features.
    """
    problems: dict[ConceptTask, tuple[tuple[Fold, ...], NDArray[np.int64]]] = {}
    for task in CONCEPT_TASKS:
        folds = paper_folds.concept_folds(manifest, *task)
        known = paper_folds.concept_labels(manifest, *task)
        for fold in folds:
            paper_folds.check_sides(data, fold, known, " against ".join(task))
        problems[task] = folds, np.array([known.get(name, 0) for name in data.clip_ids.tolist()])
    training = [
        (data.rows(fold.train), labels, CAV_C[concept])
        for (concept, _), (folds, labels) in problems.items()
        for fold in folds
    ]
    planes = svm_hyperplanes(data.X, [(rows, labels[rows] == 1, C) for rows, labels, C in training])
    blocks = []
    elected = {}
    places = {}
    first = 0
    for task, (folds, labels) in problems.items():
        validated = []
        for k, fold in enumerate(folds):
            plane = planes.one(first + k)
            held_out = data.rows(fold.validation)
            rows = data.rows(fold.test)
            called = plane.distances(data.X[held_out])[:, 0] >= ABOVE_ZERO
            validated.append(float(np.nan_to_num(f1_pos(labels[held_out], called))))
            about = {"model": "cav_svm", "task": "|".join(task), "fold": k, "label": labels[rows]}
            score = plane.distances(data.X[rows])[:, 0]
            blocks.append(paper_folds.predicted(data, rows, score, **about))
        elected[task] = int(np.argmax(validated))  # the first of equals
        places[task] = first + elected[task]
        first += len(folds)
    elected_planes = {}
    for negatives in NEGATIVES:
        rows = np.array([places[concept, negatives] for concept in VISUAL_CONCEPTS])
        elected_planes[negatives] = Hyperplanes(planes.weights[rows], planes.intercepts[rows])
    return PaperConcepts(paper_folds.gather(blocks), elected, elected_planes)


def make_head(name: str, task: str) -> DecisionTreeClassifier | LogisticRegression:
    """Make the head of a bottleneck, PCBM-DT or -LR, for a training task."""
    if name == "pcbm_dt":
        return DecisionTreeClassifier(**TREES[task], random_state=SEED)
    return LogisticRegression(**LOGISTICS[task], solver="liblinear", random_state=SEED)


@dataclass(frozen=True, eq=False)
class PaperHeads:
    """The heads on the elected CAVs: their predictions, and the trees by training task and negatives."""

    predictions: Predictions
    trees: Mapping[tuple[str, paper_folds.Negatives], object]


def paper_heads(manifest: Manifest, data: Dataset, concepts: PaperConcepts) -> PaperHeads:
    """Fit the PCBM heads on raw decision values, as the original code does, and test them on fold 9."""
    y = paper_folds.positive(data)
    labels = paper_folds.labels_of_s(data)
    blocks = []
    trees = {}
    for negatives in NEGATIVES:
        values = concepts.planes[negatives].decisions(data.X)
        for name in ("pcbm_dt", "pcbm_lr"):
            for train, tests in TESTS.items():
                learnt = paper_folds.head_fold(manifest, TASKS[train], TASKS[train])
                paper_folds.check_sides(data, learnt, labels, f"the bottlenecks of {train}")
                rows = data.rows(learnt.train)
                # Plain numbers: the original code hands its heads float64.
                head = make_head(name, train).fit(values[rows], y[rows])
                if name == "pcbm_dt":
                    trees[train, negatives] = head
                for test in tests:
                    fold = paper_folds.head_fold(manifest, TASKS[train], TASKS[test])
                    paper_folds.check_sides(data, fold, labels, f"the bottlenecks of {train}>{test}")
                    tested_rows = data.rows(fold.test)
                    about = {"model": f"{name}|{negatives}", "task": f"{train}>{test}"}
                    blocks.append(
                        paper_folds.predicted(
                            data, tested_rows, head_scores(head, values[tested_rows]), **about
                        )
                    )
    return PaperHeads(paper_folds.gather(blocks), trees)


# --- the two protocols
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Results:
    """One source under a protocol: each result is computed once, at its first use.

    Attributes
    ----------
    kept : path, optional
        Folder where predictions of what is trained are kept, and read where they are kept already.
    """

    corpus: PaperCorpus
    source: Dataset
    seed: int = 0
    progress: Progress | None = None
    kept: Path | None = None


class PaperResults(Results):
    """One source under the `paper` protocol."""

    @cached_property
    def classifiers(self) -> Predictions:
        """The perceptron in the four cells of Table 2, on eight folds each."""
        cells = cell_folds(self.corpus.manifest)
        jobs = [(">".join(cell), k, fold) for cell, folds in cells.items() for k, fold in enumerate(folds)]
        return self._kept("classifiers", jobs)

    @cached_property
    def movie_pairs(self) -> Predictions:
        """The perceptron on the film pairs of Table 4; fold i of the table is the i-th pair."""
        task = f"movies:{'>'.join(MOVIE_PAIRS)}"
        return self._kept(
            "movie_pairs", [(task, k, fold) for k, fold in enumerate(pair_folds(self.corpus.manifest))]
        )

    def _kept(self, name: str, jobs: Sequence[tuple[str, int, Fold]]) -> Predictions:
        compute = partial(perceptrons, self.source, jobs, self.seed, self.progress)
        return kept_result(self.kept, f"paper-{self.source.label}-{name}", compute)

    @cached_property
    def concepts(self) -> PaperConcepts:
        """The CAVs of Figure 3."""
        return concepts(self.corpus.manifest, self.source)

    @cached_property
    def heads(self) -> PaperHeads:
        """The PCBM heads of Table 2."""
        return paper_heads(self.corpus.manifest, self.source, self.concepts)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Tables computed so far, by the stem of their file."""
        computed = self.__dict__
        parts = [computed[name].table for name in ("classifiers", "movie_pairs") if name in computed]
        parts += [computed[name].predictions.table for name in ("heads", "concepts") if name in computed]
        return {"predictions": pd.concat(parts, ignore_index=True)} if parts else {}


def cell_folds(manifest: Manifest) -> dict[Cell, tuple[Fold, ...]]:
    """Make the eight folds of each cell of Table 2."""
    return {
        (train, test): paper_folds.classifier_folds(manifest, TASKS[train], TASKS[test])
        for train, test in CELLS
    }


def pair_folds(manifest: Manifest) -> tuple[Fold, ...]:
    """Make the film pairs of Table 4."""
    train, test = MOVIE_PAIRS
    return paper_folds.movie_folds(manifest, TASKS[train], TASKS[test])


def perceptrons(
    data: Dataset, jobs: Sequence[tuple[str, int, Fold]], seed: int, progress: Progress | None = None
) -> Predictions:
    """Train the perceptron on folds, each a task and its number there, and test it.

    Folds that are trained and validated on the same clips have one model. Those that are trained on the same
    clips have one seed, and so are one training that each validation side stops on its own: as are the two
    film pairs of a film tested and one validated on, and the reverse.
    """
    labels = paper_folds.labels_of_s(data)
    rows = data.rows
    first: dict[tuple[str, ...], int] = {}
    probes: dict[tuple[tuple[str, ...], tuple[str, ...]], MLPProbe] = {}
    for index, (task, _, fold) in enumerate(jobs):
        paper_folds.check_sides(data, fold, labels, task)
        drawn = seed_of(seed, first.setdefault(fold.train, index))
        probes.setdefault((fold.train, fold.validation), MLPProbe(variant="paper", random_state=drawn))
    fit_many(
        list(probes.values()),
        data.X,
        paper_folds.positive(data),
        [rows(train) for train, _ in probes],
        validation=[rows(validation) for _, validation in probes],
        progress=progress,
    )
    blocks = []
    for task, number, fold in jobs:
        probe = probes[fold.train, fold.validation]
        tested = rows(fold.test)
        about = {"model": "mlp", "task": task, "fold": number, "seed": seed, "threshold": probe.threshold_}
        blocks.append(paper_folds.predicted(data, tested, probe.decision_function(data.X[tested]), **about))
    return paper_folds.gather(blocks)


class StrictResults(Results):
    """One source under the `strict` protocol."""

    @cached_property
    def runs(self) -> Mapping[str, Run]:
        """The zoo's models by the task that they are trained on, each tested on all test tasks of Table 2."""
        return {train: self._run(train, None, train, tests) for train, tests in TESTS.items()}

    @cached_property
    def concepts(self) -> Mapping[ConceptTask, Run]:
        """The CAV of each concept that can be learnt, by its negatives."""
        targets = self.concept_targets
        # Against all clips first: on the clips of Table 2's bottlenecks, whose decompositions are kept still.
        order = sorted(targets, key=lambda task: task[1] is not paper_folds.Negatives.ALL)
        runs = {task: self._run("-".join(task), ["cav"], targets[task]) for task in order}
        return {task: runs[task] for task in targets}

    def _run(self, name: str, *arguments: Any) -> Run:
        corpus = self.corpus
        origin = {"manifest_sha256": corpus.digest, "label_policy": str(corpus.policy)}
        compute = partial(
            evaluate, self.source, *arguments, seed=self.seed, origin=origin, progress=self.progress
        )
        return kept_result(self.kept, f"strict-{self.source.label}-{name}", compute)

    @cached_property
    def tree(self) -> ConceptBottleneck:
        """PCBM-DT for EN vs S, trained on all movies; its depth is chosen by inner folds of movies."""
        data = self.source
        target = find_target("en_s", self.source.codebook)
        concepts = varying(data, np.arange(len(data)))
        fitted = fit(
            BUILTIN_MODELS["pcbm_dt"],
            # A fold's seed is of the movie that it leaves out: none here.
            seed_of(self.seed, ""),
            data.X,
            target.of(data.labels),
            movies=data.movies,
            present=data.present[concepts],
        )
        model: ConceptBottleneck = fitted.estimator
        return model

    @property
    def concept_targets(self) -> Mapping[ConceptTask, Target]:
        """The target of each concept that enough movies have clips with and without."""
        every = {
            (concept, negatives): concept_target(concept, self.source.codebook, paper_folds.LEVELS[negatives])
            for concept, negatives in CONCEPT_TASKS
        }
        return {task: target for task, target in every.items() if learnable(target, self.source)}

    def pair_rows(self) -> pd.DataFrame:
        """Return the perceptron's predictions on the cell of Table 4, with what each clip is called."""
        predictions = self.runs[MOVIE_PAIRS[0]].predictions
        table = predictions.table.assign(called=predictions.called)
        return table[(table["model"] == "mlp") & (table["task"] == ">".join(MOVIE_PAIRS))]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Tables computed so far, by the stem of their file."""
        computed = self.__dict__
        runs = [run for name in ("runs", "concepts") for run in computed.get(name, {}).values()]
        if not runs:
            return {}
        parts_of = {
            "predictions": [run.predictions.table for run in runs],
            "selection": [run.selection for run in runs],
            "curves": [run.curves for run in runs],
        }
        tables = {}
        for name, parts in parts_of.items():
            filled = [part for part in parts if len(part)]
            if filled:
                tables[name] = pd.concat(filled, ignore_index=True)
        return tables


def learnable(target: Target, data: Dataset) -> bool:
    """Return whether a concept can be learnt and tested whatever movie is left out.

    Both classes must be left whatever two movies are taken away, for the CAV's penalty is chosen by leaving
    out a second one; and two movies must have clips of both, for the permutation test.
    """
    codes = target.of(data.labels)
    names, movie_of = np.unique(data.movies, return_inverse=True)
    counts = np.stack([np.bincount(movie_of[codes == rank], minlength=names.size) for rank in (0, 1)])
    n_others = counts.sum(axis=1) - np.sort(counts, axis=1)[:, -2:].sum(axis=1)
    return bool((n_others > 0).all() and (counts > 0).all(axis=0).sum() > 1)
