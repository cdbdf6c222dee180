"""Describe a model of the zoo: how it is made, and what it needs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import get_routing_for_object

from obygaze_features.arguments import made_by
from obygaze_models.dataset.dataset import Reads
from obygaze_models.models.choices import THRESHOLD, Choice
from obygaze_models.models.estimator_scores import refuse_without_scores
from obygaze_models.models.grouped_selection import GroupedSelection
from obygaze_models.protocol.targets import Kind

METADATA = ("groups", "present", "unlabelled")
"""What an estimator may request by scikit-learn's metadata routing; other requests are not met."""


@made_by("ModelSpec(NAME, TITLE, MAKE)")
@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model of the zoo: how it is made, and what it needs.

    Attributes
    ----------
    name : str
        The model's name in commands and in tables of predictions.
    title : str
        The name that people read in tables and reports.
    make : callable
        Seed -> unfitted binary estimator: ``fit(X, y)``, and ``decision_function`` or ``predict_proba``.
    choose : Threshold, Grid, EarlyStopping or None
        What inner folds of movies choose for it (`GroupedSelection`); None for an estimator that sets
        ``threshold_`` itself.
    reads : {"pooled", "frames", "tokens", "seconds", "variables", "present", "answers"}
        What a clip's features are: a vector [D], one vector per sampled frame [F, D], or all tokens [T, D];
        or its length alone, numbers of a table, its annotated concepts, or a machine's answers.
    uses : tuple of str
        What ``fit`` takes in addition to X and y: "groups" (the movie of each clip), "present" (a data frame
        of the presence of each visual concept), "unlabelled" (clips of the training movies that are not in
        the task are passed too, with the label -1). What the estimator requests by scikit-learn's metadata
        routing is added.
    looks_at_features : bool
        Whether it reads features; baselines do not.
    kinds : tuple of str
        The kinds of target for which it is evaluated by default: "levels", "concept", "ordinal".
    control : bool
        Whether it is a control: a model that reads features, and which better models should beat.
    compared_with : tuple of str
        Models of the zoo that are evaluated with this one, for comparison, even if the user did not name
        them.
    streams : bool
        Whether ``fit`` and ``decision_function`` accept `StoredClips` as X, which need not fit in memory.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import obygaze_models as om
    >>> spec = om.ModelSpec("bayes", "naive Bayes", make=lambda seed: GaussianNB())
    >>> spec.estimator(0)
    GroupedSelection(choose=Threshold(), estimator=GaussianNB())
    """

    name: str
    title: str
    make: Callable[[int], Any]
    choose: Choice | None = THRESHOLD
    reads: Reads = "pooled"
    uses: tuple[str, ...] = ()
    looks_at_features: bool = True
    kinds: tuple[Kind, ...] = ("levels", "concept", "ordinal")
    control: bool = False
    compared_with: tuple[str, ...] = ()
    streams: bool = False

    def estimator(self, seed: int) -> Any:
        """Make the unfitted estimator for a seed, in a `GroupedSelection` if there is something to choose."""
        estimator = self.make(seed)
        if self.choose is None:
            return estimator
        refuse_without_scores(estimator)
        return GroupedSelection(estimator, self.choose, pass_groups="groups" in self.requests())

    def requests(self, method: str = "fit") -> frozenset[str]:
        """Return the names of the metadata that a method of the estimator takes in addition to X and y.

        The method is "fit" or one that scores clips. The names are some of `METADATA`. There are two ways to
        ask for them: an estimator may request them itself, as scikit-learn's metadata routing has it, for any
        method; and the spec may list what ``fit`` takes (`uses`), for estimators without such requests.
        """
        requested_by_estimator = _routed_requests(self.make, method)
        if method == "fit":
            return requested_by_estimator.union(self.uses)
        return requested_by_estimator

    def draws(self) -> bool:
        """Tell whether the estimator draws random numbers, so that a seed changes it.

        It does if it, or an estimator nested in it, has a parameter ``random_state`` that is set.
        """
        parameters = _parameters(self.make(0))
        seeds = [value for name, value in parameters.items() if _is_seed(name)]
        return any(seed is not None for seed in seeds)

    def settings(self) -> dict[str, str]:
        """Return title, class, choice and parameters of the estimator as text, for records of evaluations.

        Seeds and nested estimators are left out; parameters of nested estimators are included.
        """
        estimator = self.make(0)  # with any seed, as seeds are left out
        settings = {
            "title": self.title,
            "estimator": type(estimator).__name__,
            "choose": repr(self.choose),
        }
        for name, value in sorted(_parameters(estimator).items()):
            # The parameters of a nested estimator are listed separately, as ``step__name``.
            is_nested = isinstance(value, BaseEstimator | list)
            if not is_nested and not _is_seed(name):
                # Memory addresses differ from run to run.
                settings[name] = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
        return settings


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator and of those nested in it; empty without ``get_params``."""
    if not hasattr(estimator, "get_params"):
        return {}
    parameters: dict[str, Any] = estimator.get_params(deep=True)
    return parameters


def _is_seed(name: str) -> bool:
    """Tell whether a parameter, of an estimator or of a nested one (``step__name``), is a seed."""
    return name.rsplit("__", maxsplit=1)[-1] == "random_state"


@lru_cache(maxsize=64)
def _routed_requests(make: Callable[[int], Any], method: str) -> frozenset[str]:
    """Return the metadata that a method of an estimator requests by scikit-learn's metadata routing.

    `make` is the estimator's factory, which takes a seed. Results are cached, as it may take long.
    """
    estimator = make(0)
    if not hasattr(estimator, "get_metadata_routing"):
        return frozenset()
    with config_context(enable_metadata_routing=True):
        routing = get_routing_for_object(estimator)
        return frozenset(routing.consumes(method, METADATA))
