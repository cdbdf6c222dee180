"""Concept activation vectors (CAVs), concept banks, and concept bottleneck models (PCBMs)."""

from obygaze_models.concepts.bank import ConceptBank, RandomDirections, ShuffledConcepts, crossfit
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.cav import LinearCAV
from obygaze_models.concepts.explanation import Contribution, Explanation, Step
from obygaze_models.concepts.hyperplane import Hyperplanes
from obygaze_models.concepts.ridge import ridge_hyperplanes, ridge_leave_group_out
from obygaze_models.concepts.ridge_tuning import Tuned, tuned_ridge
from obygaze_models.concepts.svm import SVMTask, crossfit_svm, svm_hyperplanes

__all__ = [
    "ConceptBank",
    "ConceptBottleneck",
    "Contribution",
    "Explanation",
    "Hyperplanes",
    "LinearCAV",
    "RandomDirections",
    "SVMTask",
    "ShuffledConcepts",
    "Step",
    "Tuned",
    "crossfit",
    "crossfit_svm",
    "ridge_hyperplanes",
    "ridge_leave_group_out",
    "svm_hyperplanes",
    "tuned_ridge",
]
