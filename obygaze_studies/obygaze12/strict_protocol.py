"""Run the evaluations behind the papers' tables and figures under the `strict` protocol."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from obygaze_models.concepts import ConceptBottleneck
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import Run, evaluate, seed_of, varying
from obygaze_models.models import BUILTIN_MODELS, fit
from obygaze_models.protocol import Target, concept_target, find_target
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, PaperCorpus
from obygaze_studies.obygaze12.paper_folds import Negatives
from obygaze_studies.obygaze12.printed_values import CELLS, MOVIE_PAIRS, Cell

Progress = Callable[[int, int], None]

AGAINST: Mapping[Negatives, tuple[str, ...]] = {Negatives.EN: ("EN",), Negatives.ALL: ()}
"""The levels of the clips without a concept; empty for all of them."""

TRAINED = tuple(dict.fromkeys(train for train, _ in CELLS))


@dataclass(frozen=True, eq=False)
class StrictResults:
    """One source under the `strict` protocol: each run made once, when asked for."""

    corpus: PaperCorpus
    source: Dataset
    seed: int = 0
    progress: Progress | None = None

    @cached_property
    def runs(self) -> Mapping[str, Run]:
        """The zoo's models by the task that they are trained on, each tested on all test tasks of Table 2."""
        found = {}
        for train in TRAINED:
            tests = [test for other, test in CELLS if other == train]
            found[train] = evaluate(
                self.source, None, train, tests, seed=self.seed, origin=self._origin(), progress=self.progress
            )
        return found

    @cached_property
    def concepts(self) -> Mapping[tuple[Negatives, str], Run]:
        """The CAV of each concept that can be learnt, by its negatives."""
        return {
            (negatives, concept): evaluate(
                self.source, ["cav"], target, seed=self.seed, origin=self._origin(), progress=self.progress
            )
            for (negatives, concept), target in self.concept_targets.items()
        }

    @cached_property
    def tree(self) -> ConceptBottleneck:
        """PCBM-DT for EN vs S, trained on all movies; its depth is chosen by inner folds of movies."""
        data, target = self.source, find_target("en_s", self.source.codebook)
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
    def concept_targets(self) -> Mapping[tuple[Negatives, str], Target]:
        """The target of each concept that enough movies have clips with and without."""
        codebook = self.source.codebook
        every = {
            (negatives, concept): concept_target(concept, codebook, levels)
            for negatives, levels in AGAINST.items()
            for concept in VISUAL_CONCEPTS
        }
        return {one: target for one, target in every.items() if learnable(target, self.source)}

    def pair_rows(self, model: str = "mlp", cell: Cell = MOVIE_PAIRS) -> pd.DataFrame:
        """Return a model's predictions on a cell, with what each clip is called."""
        predictions = self.runs[cell[0]].predictions
        table = predictions.table.assign(called=predictions.called)
        return table[(table["model"] == model) & (table["task"] == ">".join(cell))]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """What was computed, and nothing that was not, by the stem of the file that keeps it."""
        done = self.__dict__
        runs = [run for name in ("runs", "concepts") for run in done.get(name, {}).values()]
        if not runs:
            return {}
        found = {
            "predictions": [run.predictions.table for run in runs],
            "selection": [run.selection for run in runs],
            "curves": [run.curves for run in runs],
        }
        filled = {name: [part for part in parts if len(part)] for name, parts in found.items()}
        return {name: pd.concat(parts, ignore_index=True) for name, parts in filled.items() if parts}

    def _origin(self) -> dict[str, object]:
        return {"manifest_sha256": self.corpus.digest, "label_policy": str(self.corpus.policy)}


def learnable(target: Target, data: Dataset) -> bool:
    """Return whether a concept can be learnt and tested whatever movie is left out.

    Both classes must be left whatever two movies are taken away, for the CAV's penalty is chosen by leaving
    out a second one; and two movies must have clips of both, for the permutation test.
    """
    codes = target.of(data.labels)
    names, movie_of = np.unique(data.movies, return_inverse=True)
    counts = np.stack([np.bincount(movie_of[codes == rank], minlength=names.size) for rank in (0, 1)])
    left = counts.sum(axis=1) - np.sort(counts, axis=1)[:, -2:].sum(axis=1)
    return bool((left > 0).all() and (counts > 0).all(axis=0).sum() > 1)
