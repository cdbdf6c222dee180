"""Fit the CAVs of the `paper` protocol, with the published C or one chosen by eight folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import Manifest
from obygaze_models.concepts import Hyperplanes, SVMTask, svm_hyperplanes
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import Predictions, f1_pos
from obygaze_models.models import ABOVE_ZERO
from obygaze_models.protocol import Fold
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS
from obygaze_studies.obygaze12.paper_folds import VALIDATION_FOLDS, Negatives, concept_folds, concept_labels
from obygaze_studies.obygaze12.paper_rows import check_sides, gather, predicted
from obygaze_studies.obygaze12.settings import C_GRID, CAV_C, elect

NEGATIVES = (Negatives.EN, Negatives.ALL)
"""Negatives of Figure 3's solid and hatched bars."""


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


Asked = tuple[str, Negatives]
"""A concept and its choice of negatives."""

ASKED: tuple[Asked, ...] = tuple(
    (concept, negatives) for negatives in NEGATIVES for concept in VISUAL_CONCEPTS
)


@dataclass(frozen=True, eq=False)
class ConceptFolds:
    """The folds of one concept's CAV, and its labels."""

    folds: tuple[Fold, ...]
    labels: Mapping[str, int]

    @classmethod
    def of(cls, manifest: Manifest, asked: Asked) -> "ConceptFolds":
        """Make the folds of a concept against a choice of negatives."""
        return cls(concept_folds(manifest, *asked), concept_labels(manifest, *asked))

    def side(self, data: Dataset, clips: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the rows and labels of those clips that have features."""
        kept = [clip_id for clip_id in clips if clip_id in data.row_of]
        return data.rows(kept), np.array([self.labels[clip_id] for clip_id in kept], dtype=np.int64)

    def task(self, data: Dataset, fold: Fold, C: float) -> SVMTask:
        """Make the SVM to fit on the training side of a fold."""
        rows, label = self.side(data, fold.train)
        return SVMTask(rows, label == 1, C)

    def drawn(self, data: Dataset, fold: Fold, C: float, seed: int) -> SVMTask:
        """Make the SVM to fit on a training side with as many of its negatives, drawn, as positives."""
        rows, label = self.side(data, fold.train)
        positive, negative = np.flatnonzero(label == 1), np.flatnonzero(label == 0)
        rng = np.random.default_rng((seed, int(fold.name)))
        kept = rng.choice(negative, size=min(len(positive), len(negative)), replace=False)
        places = np.sort(np.concatenate([positive, kept]))
        return SVMTask(rows[places], label[places] == 1, C)

    def validated(self, data: Dataset, fold: Fold, plane: Hyperplanes) -> float:
        """Return f1_pos on the validation side of a fold."""
        rows, label = self.side(data, fold.validation)
        found = f1_pos(label, plane.distances(data.X[rows])[:, 0] >= ABOVE_ZERO)
        return float(np.nan_to_num(found))


def concepts(manifest: Manifest, data: Dataset, chosen: Mapping[Asked, float] | None = None) -> PaperConcepts:
    """Fit the nine CAVs of each concept against each choice of negatives, and elect one.

    `chosen` gives each C; by default it is the published one.
    """
    of = {asked: ConceptFolds.of(manifest, asked) for asked in ASKED}
    for (concept, negatives), one in of.items():
        for fold in one.folds:
            check_sides(data, fold, one.labels, f"{concept} against {negatives}")
    penalty = chosen or {asked: CAV_C[asked[0]] for asked in ASKED}
    problems = [one.task(data, fold, penalty[asked]) for asked, one in of.items() for fold in one.folds]
    planes = svm_hyperplanes(data.X, problems)
    blocks, elected, places = [], {}, {}
    number = 0
    for (concept, negatives), one in of.items():
        validated = []
        for k, fold in enumerate(one.folds):
            plane = planes.one(number + k)
            validated.append(one.validated(data, fold, plane))
            rows, label = one.side(data, fold.test)
            blocks.append(
                predicted(
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
        places[concept, negatives] = number + elected[concept, negatives]
        number += len(one.folds)
    which = {
        negatives: [places[concept, negatives] for concept in VISUAL_CONCEPTS] for negatives in NEGATIVES
    }
    return PaperConcepts(
        gather(blocks),
        elected,
        {
            negatives: Hyperplanes(planes.weights[rows], planes.intercepts[rows])
            for negatives, rows in which.items()
        },
    )


@dataclass(frozen=True, slots=True)
class ChosenC:
    """The C of one concept's SVM, chosen by eight folds.

    Attributes
    ----------
    C : float
        The smallest of those with the highest mean.
    validated : mapping of float to float
        Of each C tried: f1_pos on the validation fold, averaged over the eight folds.
    """

    C: float
    validated: Mapping[float, float]


def choose_c(
    manifest: Manifest,
    data: Dataset,
    grid: Sequence[float] = C_GRID,
    asked: Sequence[Asked] = ASKED,
    *,
    draws: int | None = None,
) -> dict[Asked, ChosenC]:
    """Choose the C of each concept's SVM by eight-fold cross-validation, as section 4.2 describes it.

    The last fold is kept for the test; folds 0 to 7 are validated on in turn.

    Parameters
    ----------
    manifest, data
        Clips with the released folds, and their features.
    grid
        Values of C to try; the published ones are tried too.
    asked
        Concepts and choices of negatives.
    draws
        Seed of draws of negatives: every training side keeps as many as it has positives, other ones in each
        fold, as section 4.2 says. By default classes are balanced by weights, as in the original code.
    """
    of = {one: ConceptFolds.of(manifest, one) for one in asked}
    for (concept, negatives), problem in of.items():
        for fold in problem.folds:
            check_sides(data, fold, problem.labels, f"{concept} against {negatives}")
    tried = sorted({*grid, *(CAV_C[concept] for concept, _ in asked)})
    found: dict[Asked, ChosenC] = {}
    for one, problem in of.items():
        folds = [fold for fold in problem.folds if fold.name in VALIDATION_FOLDS]
        tasks = [
            problem.task(data, fold, C) if draws is None else problem.drawn(data, fold, C, draws)
            for C in tried
            for fold in folds
        ]
        planes = svm_hyperplanes(data.X, tasks, balanced=draws is None)
        means = {}
        for place, C in enumerate(tried):
            values = [
                problem.validated(data, fold, planes.one(place * len(folds) + k))
                for k, fold in enumerate(folds)
            ]
            means[C] = float(np.mean(values))
        found[one] = ChosenC(max(tried, key=means.__getitem__), means)
    return found
