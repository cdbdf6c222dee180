"""The predictions of one source under one protocol, each computed when first asked for, and once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ParamSpec, TypeVar

import pandas as pd

from obygaze_models.blas import one_blas_thread
from obygaze_models.evaluation import Predictions, summarise
from obygaze_models.experiments import paper_protocol, strict_concepts, strict_protocol
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.paper_protocol import PaperConcepts, PaperHeads
from obygaze_models.experiments.strict_concepts import FilmBanks, Heads
from obygaze_models.experiments.strict_protocol import Classified

Progress = Callable[[int, int], None]
P = ParamSpec("P")
T = TypeVar("T")


def one_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run with one BLAS thread: a product's rounding, and so a result's bytes, depend on their number."""
    with one_blas_thread():
        return work(*arguments, **options)


@dataclass(frozen=True, eq=False)
class Results:
    """One source under one protocol."""

    material: Material
    source: Source
    seed: int = 0
    progress: Progress | None = None

    @property
    def computed(self) -> list[Predictions]:
        """What was computed, and nothing that was not."""
        raise NotImplementedError

    def predictions(self) -> Predictions:
        """Gather what was computed in one table."""
        return Predictions(pd.concat([one.table for one in self.computed], ignore_index=True))


@dataclass(frozen=True, eq=False)
class PaperResults(Results):
    """One source under the `paper` protocol."""

    @cached_property
    def classifiers(self) -> Predictions:
        """The perceptron in the four cells of Table 2."""
        return one_thread(paper_protocol.classifiers, self.material, self.source, self.seed, self.progress)

    @cached_property
    def film_pairs(self) -> Predictions:
        """The perceptron on the film pairs of Table 4."""
        return one_thread(paper_protocol.film_pairs, self.material, self.source, self.seed, self.progress)

    @cached_property
    def concepts(self) -> PaperConcepts:
        """The CAVs of Figure 3."""
        return one_thread(paper_protocol.concepts, self.material, self.source)

    @cached_property
    def heads(self) -> PaperHeads:
        """The PCBM heads of Table 2."""
        return one_thread(paper_protocol.heads, self.material, self.source, self.concepts)

    @property
    def computed(self) -> list[Predictions]:
        """What was computed, and nothing that was not."""
        done = self.__dict__
        whole = [done[name] for name in ("classifiers", "film_pairs") if name in done]
        return whole + [done[name].predictions for name in ("heads", "concepts") if name in done]


@dataclass(frozen=True, eq=False)
class StrictResults(Results):
    """One source under the `strict` protocol."""

    @cached_property
    def trained(self) -> Classified:
        """The probe and the baselines, one film left out at a time, and what chose the epochs."""
        return one_thread(strict_protocol.classifiers, self.material, self.source, self.seed, self.progress)

    @property
    def classifiers(self) -> Predictions:
        """The predictions of the probe and the baselines."""
        return self.trained.predictions

    @cached_property
    def banks(self) -> list[FilmBanks]:
        """The CAVs of each film left out."""
        return one_thread(strict_concepts.film_banks, self.material, self.source, self.seed)

    @cached_property
    def concepts(self) -> Predictions:
        """The CAVs' predictions, one film left out at a time."""
        return one_thread(strict_concepts.concept_predictions, self.material, self.source, self.banks)

    @cached_property
    def fitted_heads(self) -> Heads:
        """The PCBM heads and their controls, and how they were chosen."""
        return one_thread(strict_concepts.head_predictions, self.material, self.source, self.banks, self.seed)

    @property
    def heads(self) -> Predictions:
        """The predictions of the heads, one film left out at a time."""
        return self.fitted_heads.predictions

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
        done = self.__dict__
        found = [done[name].predictions for name in ("trained", "fitted_heads") if name in done]
        return [*found, self.concepts] if "concepts" in done else found

    @property
    def selections(self) -> dict[str, pd.DataFrame]:
        """How what was computed was chosen: `inner-curves` of the probe, `inner-losses` of all else."""
        done, found = self.__dict__, {}
        if "trained" in done:
            found["inner-curves"] = self.trained.inner_curves
        if "banks" in done:
            tables = [strict_concepts.selection(self.material, self.banks)]
            tables += [self.fitted_heads.selection] if "fitted_heads" in done else []
            found["inner-losses"] = pd.concat(tables, ignore_index=True)
        return found
