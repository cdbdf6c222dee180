"""How far clips lie from those that a model was trained on: what it says of farther ones is a guess."""

import numpy as np
from numpy.typing import NDArray

from obygaze_models.probes import MLPProbe


def distances(probe: MLPProbe, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """Measure each clip's distance [N] from the mean of the training clips.

    Root mean square over the features of X [N, D], each in standard deviations of the training clips: about 1
    for a clip like them. It takes features one by one, and so misses clips that are strange in combination.
    """
    standard = (X.astype(np.float64) - probe.mean_) / probe.scale_
    found: NDArray[np.float64] = np.sqrt(np.mean(standard * standard, axis=1))
    return found
