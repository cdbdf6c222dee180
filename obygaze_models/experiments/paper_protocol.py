"""Every prediction behind the papers' tables and figures, under the `paper` protocol.

Models and settings are the original code's; see `obygaze_models.protocol.paper` for its folds and
`obygaze_models.concepts.paper` for its concept models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_models.concepts import Hyperplanes, Problem, svm_hyperplanes
from obygaze_models.concepts.bottleneck import ABOVE_ZERO
from obygaze_models.concepts.heads import head_scores
from obygaze_models.concepts.paper import CAV_C, elect, logistic_head, tree_head
from obygaze_models.evaluation import Predictions
from obygaze_models.evaluation.metrics import f1_pos
from obygaze_models.experiments.evaluate import seed_of
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.published import CELLS
from obygaze_models.experiments.rows import Rows, gather, predicted
from obygaze_models.probes import MLPProbe, fit_many
from obygaze_models.protocol import TASKS, VISUAL_CONCEPTS
from obygaze_models.protocol.paper import (
    Fold,
    Negatives,
    classifier_folds,
    concept_folds,
    concept_labels,
    head_fold,
    movie_folds,
)

Cell = tuple[str, str]
Progress = Callable[[int, int], None]

FILM_PAIRS: Cell = ("hn_s", "enhn_s")
NEGATIVES = (Negatives.EN, Negatives.ALL)
"""What Figure 3's solid and hatched bars are told from."""


def cell_folds(material: Material) -> dict[Cell, tuple[Fold, ...]]:
    """Make the eight folds of each cell of Table 2."""
    return {
        (train, test): classifier_folds(material.manifest, TASKS[train], TASKS[test]) for train, test in CELLS
    }


def pair_folds(material: Material) -> tuple[Fold, ...]:
    """Make the film pairs of Table 4."""
    train, test = FILM_PAIRS
    return movie_folds(material.manifest, TASKS[train], TASKS[test])


def classifiers(
    material: Material, source: Source, seed: int, progress: Progress | None = None
) -> Predictions:
    """Train the perceptron on the eight folds of each training task, and test it on both test tasks."""
    folds = cell_folds(material)
    first = {train: folds[train, test] for train, test in CELLS}
    every = [fold for own in first.values() for fold in own]
    probes = _probes(material, source, every, [seed_of(seed, place) for place in range(len(every))], progress)
    fitted = iter(probes)
    models = {train: [next(fitted) for _ in own] for train, own in first.items()}
    return gather(
        [
            _tested(material, source, probe, fold, task=f"{train}>{test}", number=number, seed=seed)
            for (train, test), own in folds.items()
            for number, (probe, fold) in enumerate(zip(models[train], own, strict=True))
        ]
    )


def film_pairs(
    material: Material, source: Source, seed: int, progress: Progress | None = None
) -> Predictions:
    """Train the perceptron for each pair of films; fold i of the table is the i-th pair.

    Testing on film i and validating on j, and the reverse, have the same training clips. They have the same
    seed too, and so are one training that each validation film stops on its own.
    """
    folds = pair_folds(material)
    first: dict[tuple[str, ...], int] = {}
    seeds = [seed_of(seed, first.setdefault(fold.train, place)) for place, fold in enumerate(folds)]
    probes = _probes(material, source, folds, seeds, progress)
    task = f"films:{'>'.join(FILM_PAIRS)}"
    return gather(
        [
            _tested(material, source, probe, fold, task=task, number=number, seed=seed)
            for number, (probe, fold) in enumerate(zip(probes, folds, strict=True))
        ]
    )


def _probes(
    material: Material,
    source: Source,
    folds: Sequence[Fold],
    seeds: Sequence[int],
    progress: Progress | None,
) -> list[MLPProbe]:
    probes = [MLPProbe(variant="paper", random_state=seed) for seed in seeds]
    fit_many(
        probes,
        source.X,
        material.y,
        [material.rows(fold.train) for fold in folds],
        validation=[material.rows(fold.validation) for fold in folds],
        progress=progress,
    )
    return probes


def _tested(
    material: Material,
    source: Source,
    probe: MLPProbe,
    fold: Fold,
    *,
    task: str,
    number: int,
    seed: int,
) -> Rows:
    rows = material.rows(fold.test)
    score = probe.decision_function(source.X[rows])
    return predicted(
        material,
        source,
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


def concepts(material: Material, source: Source) -> PaperConcepts:
    """Fit the nine CAVs of each concept against each choice of negatives, and elect one."""
    asked = [(negatives, concept) for negatives in NEGATIVES for concept in VISUAL_CONCEPTS]
    labels = {
        (negatives, concept): concept_labels(material.manifest, concept, negatives)
        for negatives, concept in asked
    }
    folds = {
        (negatives, concept): concept_folds(material.manifest, concept, negatives)
        for negatives, concept in asked
    }

    def side(one: tuple[Negatives, str], clips: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        kept = [clip_id for clip_id in clips if clip_id in material.row_of]
        return material.rows(kept), np.array([labels[one][clip_id] for clip_id in kept], dtype=np.int64)

    problems = []
    for one in asked:
        for fold in folds[one]:
            rows, label = side(one, fold.train)
            problems.append(Problem(rows, label == 1, CAV_C[one[1]]))
    planes = svm_hyperplanes(source.X, problems)
    blocks, elected, chosen = [], {}, {}
    number = 0
    for one in asked:
        negatives, concept = one
        validated = []
        for k, fold in enumerate(folds[one]):
            plane = Hyperplanes(planes.weights[[number + k]], planes.intercepts[[number + k]])
            rows, label = side(one, fold.validation)
            validated.append(
                float(np.nan_to_num(f1_pos(label, plane.distances(source.X[rows])[:, 0] >= ABOVE_ZERO)))
            )
            rows, label = side(one, fold.test)
            blocks.append(
                predicted(
                    material,
                    source,
                    rows,
                    model="cav_svm",
                    task=f"{concept}|{negatives}",
                    fold=k,
                    seed=0,
                    score=plane.distances(source.X[rows])[:, 0],
                    threshold=ABOVE_ZERO,
                    label=label,
                )
            )
        elected[concept, negatives] = elect(validated)
        chosen[concept, negatives] = number + elected[concept, negatives]
        number += len(folds[one])
    of = {negatives: [chosen[concept, negatives] for concept in VISUAL_CONCEPTS] for negatives in NEGATIVES}
    return PaperConcepts(
        gather(blocks),
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


def heads(material: Material, source: Source, found: PaperConcepts) -> PaperHeads:
    """Fit the PCBM heads on raw decision values, as the original code does, and test them on fold 9."""
    blocks, trees = [], {}
    for negatives in NEGATIVES:
        values = found.planes[negatives].decisions(source.X)
        for name, make in HEADS.items():
            for train in dict.fromkeys(train for train, _ in CELLS):
                rows = material.rows(head_fold(material.manifest, TASKS[train], TASKS[train]).train)
                # Plain numbers: the original code hands its heads float64.
                head = make(train).fit(values[rows], material.y[rows])
                if name == "pcbm_dt":
                    trees[train, negatives] = head
                for test in (test for other, test in CELLS if other == train):
                    fold = head_fold(material.manifest, TASKS[train], TASKS[test])
                    seen = material.rows(fold.test)
                    blocks.append(
                        predicted(
                            material,
                            source,
                            seen,
                            model=f"{name}|{negatives}",
                            task=f"{train}>{test}",
                            fold=0,
                            seed=0,
                            score=head_scores(head, values[seen]),
                            threshold=ABOVE_ZERO,
                        )
                    )
    return PaperHeads(gather(blocks), trees)
