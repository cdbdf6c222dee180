"""The predictions of one source under one protocol, each computed when first asked for, and once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from obygaze_models.evaluation import Predictions, summarise
from obygaze_models.experiments import paper_protocol, strict_concepts, strict_protocol
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.paper_protocol import PaperConcepts, PaperHeads

Progress = Callable[[int, int], None]


def one_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run with one BLAS thread: a product's rounding, and so a result's bytes, depend on their number."""
    with threadpool_limits(limits=1, user_api="blas"):
        return work(*arguments)


@dataclass(frozen=True, eq=False)
class PaperResults:
    """One source under the `paper` protocol."""

    material: Material
    source: Source
    seed: int = 0
    progress: Progress | None = None

    @cached_property
    def classifiers(self) -> Predictions:
        """The perceptron in the four cells of Table 2."""
        found: Predictions = one_thread(
            paper_protocol.classifiers, self.material, self.source, self.seed, self.progress
        )
        return found

    @cached_property
    def film_pairs(self) -> Predictions:
        """The perceptron on the film pairs of Table 4."""
        found: Predictions = one_thread(
            paper_protocol.film_pairs, self.material, self.source, self.seed, self.progress
        )
        return found

    @cached_property
    def concepts(self) -> PaperConcepts:
        """The CAVs of Figure 3."""
        found: PaperConcepts = one_thread(paper_protocol.concepts, self.material, self.source)
        return found

    @cached_property
    def heads(self) -> PaperHeads:
        """The PCBM heads of Table 2."""
        found: PaperHeads = one_thread(paper_protocol.heads, self.material, self.source, self.concepts)
        return found

    @property
    def computed(self) -> list[Predictions]:
        """What was computed, and nothing that was not."""
        whole = [self.__dict__[name] for name in ("classifiers", "film_pairs") if name in self.__dict__]
        return whole + [
            self.__dict__[name].predictions for name in ("heads", "concepts") if name in self.__dict__
        ]

    def predictions(self) -> Predictions:
        """Gather what was computed in one table."""
        return Predictions(pd.concat([one.table for one in self.computed], ignore_index=True))


@dataclass(frozen=True, eq=False)
class StrictResults:
    """One source under the `strict` protocol."""

    material: Material
    source: Source
    seed: int = 0
    progress: Progress | None = None

    @cached_property
    def classifiers(self) -> Predictions:
        """The probe and the baselines, one film left out at a time."""
        found: Predictions = one_thread(
            strict_protocol.classifiers, self.material, self.source, self.seed, self.progress
        )
        return found

    @cached_property
    def concepts(self) -> Predictions:
        """The CAVs, one film left out at a time."""
        found: Predictions = one_thread(strict_concepts.concept_predictions, self.material, self.source)
        return found

    @cached_property
    def heads(self) -> Predictions:
        """The PCBM heads and their controls, one film left out at a time."""
        found: Predictions = one_thread(
            strict_concepts.head_predictions, self.material, self.source, self.seed
        )
        return found

    @property
    def has_concepts(self) -> bool:
        """Whether enough films have concepts marked for CAVs to be fitted."""
        return bool(strict_concepts.enough(self.material))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Every metric of every classifier, as `summarise` gives it."""
        both = [self.classifiers.table] + ([self.heads.table] if self.has_concepts else [])
        return summarise(Predictions(pd.concat(both, ignore_index=True)))

    @property
    def computed(self) -> list[Predictions]:
        """What was computed, and nothing that was not."""
        return [self.__dict__[name] for name in ("classifiers", "heads", "concepts") if name in self.__dict__]

    def predictions(self) -> Predictions:
        """Gather what was computed in one table."""
        return Predictions(pd.concat([one.table for one in self.computed], ignore_index=True))
