"""Fit the concept models of the `paper` protocol: CAVs, and the PCBM heads on them.

The settings are from the original code of Tores et al. (CVPR 2024); the papers print none of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from obygaze_features.manifest import Manifest
from obygaze_models.concepts import Hyperplanes, SVMTask, head_scores, svm_hyperplanes
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import Predictions, f1_pos
from obygaze_models.models import ABOVE_ZERO
from obygaze_models.protocol import Fold
from obygaze_studies.obygaze12 import paper_folds
from obygaze_studies.obygaze12.corpus import TASKS, VISUAL_CONCEPTS
from obygaze_studies.obygaze12.printed_values import CELLS, PUBLISHED

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
    elected : dict of (str, Negatives) to int
        The split whose CAV has the highest f1_pos on its validation fold.
    planes : dict of Negatives to Hyperplanes
        Of the elected CAVs, in the concepts' order.
    """

    predictions: Predictions
    elected: Mapping[tuple[str, paper_folds.Negatives], int]
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
        folds, known = paper_folds.concept_folds(manifest, *task), paper_folds.concept_labels(manifest, *task)
        for fold in folds:
            paper_folds.check_sides(data, fold, known, " against ".join(task))
        problems[task] = folds, np.array([known.get(name, 0) for name in data.clip_ids.tolist()])
    training = [
        (data.rows(fold.train), labels, CAV_C[concept])
        for (concept, _), (folds, labels) in problems.items()
        for fold in folds
    ]
    planes = svm_hyperplanes(data.X, [SVMTask(rows, labels[rows] == 1, C) for rows, labels, C in training])
    blocks, elected, places = [], {}, {}
    first = 0
    for task, (folds, labels) in problems.items():
        validated = []
        for k, fold in enumerate(folds):
            plane, held_out, rows = planes.one(first + k), data.rows(fold.validation), data.rows(fold.test)
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
    y, labels = paper_folds.positive(data), paper_folds.labels_of_s(data)
    blocks, trees = [], {}
    for negatives in NEGATIVES:
        values = concepts.planes[negatives].decisions(data.X)
        for name in ("pcbm_dt", "pcbm_lr"):
            for train in dict.fromkeys(train for train, _ in CELLS):
                learnt = paper_folds.head_fold(manifest, TASKS[train], TASKS[train])
                paper_folds.check_sides(data, learnt, labels, f"the bottlenecks of {train}")
                rows = data.rows(learnt.train)
                # Plain numbers: the original code hands its heads float64.
                head = make_head(name, train).fit(values[rows], y[rows])
                if name == "pcbm_dt":
                    trees[train, negatives] = head
                for test in (test for trained, test in CELLS if trained == train):
                    fold = paper_folds.head_fold(manifest, TASKS[train], TASKS[test])
                    paper_folds.check_sides(data, fold, labels, f"the bottlenecks of {train}>{test}")
                    seen = data.rows(fold.test)
                    about = {"model": f"{name}|{negatives}", "task": f"{train}>{test}"}
                    blocks.append(paper_folds.predicted(data, seen, head_scores(head, values[seen]), **about))
    return PaperHeads(paper_folds.gather(blocks), trees)
