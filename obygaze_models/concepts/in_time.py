"""Find concepts in time: which are in a clip and when, by channels that do not mix before the head.

A concept that is present in 2 of 32 frames is lost in the mean over frames, and so is the order of two
concepts. Each concept gets a direction of frames, learnt from labels of whole clips, and of each clip two
numbers: how strongly the concept is present in its strongest frames, and at what time. Whether two concepts
occur at the same moment can't be seen (docs/when.md).
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Options
from sklearn.utils.validation import check_is_fitted

from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.heads import HeadName
from obygaze_models.concepts.time_bank import Disturb, TimeBank
from obygaze_models.models.frames import FrameReader
from obygaze_models.models.spec import ModelSpec


@dataclass(eq=False, repr=False)
class ConceptsInTime(FrameReader, ConceptBottleneck):
    """Classify clips by which concepts occur in their frames, and when.

    A `ConceptBottleneck` on frames [N, F, D], whose head reads two values of each concept, presence and
    position (`TimeBank`). The contribution of a concept is that of both values; `intervene` sets the
    presence.

    Parameters
    ----------
    head, bank, residual, residual_C, inner_folds, random_state
        As of a `ConceptBottleneck`; the head is sparse by default, and there is no residual.

    Attributes
    ----------
    train_values_, centre_ : ndarray, shapes [N, 2 K] and [2 K]
        Presences, then positions.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> frames, present = data.read("frames"), data.present[["Body", "Clothing"]]
    >>> model = om.ConceptsInTime().fit(frames, data.levels == "S", data.movies, present=present)
    >>> model.frame_values(frames).shape == (*frames.shape[:2], 2)
    True
    """

    _n_axes_of_clip: ClassVar[int] = 2
    _default_bank: ClassVar[type[ConceptBank]] = TimeBank

    head: HeadName | BaseEstimator = "elastic_net"
    _: KW_ONLY
    bank: Annotated[Any, HasMethods("frame_scores")] | None = None
    residual: Annotated[bool, Options(bool, {False})] = False

    def frame_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute how strongly each concept is in each frame, [N, F, K], to see when it occurs in a clip.

        A frame's value is the presence that a clip would have if this were its only frame. It is in the units
        of `concept_values`: standardised, so that the training clips' presences have mean 0 and deviation 1.

        Parameters
        ----------
        X : ndarray, shape [N, F, D]
            Frames; those of NaN are absent, and their values are NaN.
        """
        check_is_fitted(self)
        frames = self._check_features(X)
        bank: Any = self.bank_
        # A clip's presence is log(mean(exp(2 s))) / 2 over the scores s of its frames, which is a maximum
        # without a corner (`TimeBank`). For a single frame it is the score itself.
        presences = bank.frame_scores(frames)  # [N, F, K]

        # Of means and deviations [2 K] the first K are of presences; the others are of positions.
        n_concepts = len(self.concepts_)
        mean_of_presences = bank.mean_[:n_concepts]
        deviation_of_presences = bank.scale_[:n_concepts]
        return np.asarray((presences - mean_of_presences) / deviation_of_presences)

    def _check_training(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        """Validate frames X [N, F, D] and labels y [N] to fit on, and return both as arrays."""
        return self._check_frames_to_fit(X, y), np.asarray(y)

    _check_features = FrameReader._check_frames


class ConceptsUnlabelled(ConceptsInTime):
    """`ConceptsInTime` with a bank that needs no labels of concepts: `UnitBank`, or directions of texts."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "present": False}


def _time_bottleneck_spec(
    name: str,
    title: str,
    *,
    disturb: Disturb = "none",
    head: HeadName = "elastic_net",
    compared_with: tuple[str, ...] = (),
) -> ModelSpec:
    """Make the spec of a concept bottleneck on frames, or of a control of it.

    Parameters
    ----------
    name, title : str
    disturb : {"none", "concepts", "time"}
        What is shuffled in training; anything but "none" makes a control.
    head : {"logistic", "elastic_net", "tree"}
    compared_with : tuple of str
        Models that are evaluated with it for comparison.
    """

    def make(seed: int) -> ConceptsInTime:
        """Make the unfitted estimator with a seed."""
        bank = TimeBank(disturb=disturb, random_state=seed)
        return ConceptsInTime(head, bank=bank, random_state=seed)

    return ModelSpec(
        name,
        title,
        make,
        # The bottleneck chooses its parameters itself, by its own inner folds.
        choose=None,
        reads="frames",
        uses=("groups", "present", "unlabelled"),
        # It is a default model for no kind of target, and is evaluated only if it is named.
        kinds=(),
        control=disturb != "none",
        compared_with=compared_with,
    )


MODELS_TO_COMPARE = (
    "pcbm_lr",
    "attention",
    "attentive",
    "pcbm_time_unordered",
    "pcbm_time_shuffled",
    "concept_labels",
)

SPECS = (
    _time_bottleneck_spec("pcbm_time", "PCBM in time", compared_with=MODELS_TO_COMPARE),
    _time_bottleneck_spec("pcbm_time_unordered", "PCBM in time, trained in random order", disturb="time"),
    # A sparse head drops uninformative concepts: its scores would not vary, and could not show a leak.
    _time_bottleneck_spec(
        "pcbm_time_shuffled", "PCBM in time, shuffled concepts", disturb="concepts", head="logistic"
    ),
)
