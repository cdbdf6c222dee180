"""List the settings of the paper's concept models, behind Figure 3 and the PCBM rows of Table 2.

From the original code of Tores et al. (CVPR 2024); the papers print none of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

CAV_C: Mapping[str, float] = {
    "Type of shot": 0.01,
    "Look": 0.05,
    "Body": 0.05,
    "Posture": 0.01,
    "Clothing": 0.01,
    "Appearance": 0.01,
    "Expression of emotion": 0.01,
    "Activity": 0.05,
}
"""C of each concept's SVM; its class weight is balanced."""

C_GRID: tuple[float, ...] = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
"""Values of C to choose from by cross-validation; neither the papers nor the code print theirs."""

SEED = 42


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """Limits of a decision tree."""

    max_depth: int
    min_samples_leaf: int


@dataclass(frozen=True, slots=True)
class LogisticSettings:
    """Penalty of a logistic regression and its inverse strength C."""

    penalty: Literal["l1", "l2"]
    C: float


TREES: Mapping[str, TreeSettings] = {
    "en_s": TreeSettings(8, 6),
    "hn_s": TreeSettings(10, 10),
    "enhn_s": TreeSettings(4, 6),
}
"""PCBM-DT by the task trained on."""

LOGISTICS: Mapping[str, LogisticSettings] = {
    "en_s": LogisticSettings("l2", 0.1),
    "hn_s": LogisticSettings("l2", 0.1),
    "enhn_s": LogisticSettings("l1", 0.01),
}
"""PCBM-LR by the task trained on."""


def tree_head(task: str, depth: int | None = None) -> DecisionTreeClassifier:
    """Make the PCBM-DT head of a training task; `depth` replaces the code's limit."""
    settings = TREES[task]
    return DecisionTreeClassifier(
        max_depth=depth or settings.max_depth, min_samples_leaf=settings.min_samples_leaf, random_state=SEED
    )


def logistic_head(task: str) -> LogisticRegression:
    """Make the PCBM-LR head of a training task."""
    settings = LOGISTICS[task]
    return LogisticRegression(
        C=settings.C,
        l1_ratio=1.0 if settings.penalty == "l1" else 0.0,
        solver="liblinear",
        random_state=SEED,
    )


def elect(validation_f1: Sequence[float]) -> int:
    """Choose the split whose CAV has the highest f1_pos on its validation fold, the first of equals."""
    return int(np.argmax(validation_f1))
