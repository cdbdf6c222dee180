"""A model of a scale with two levels calls clips by the levels of the scale."""

import numpy as np

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import Codebook, Level, Scale
from obygaze_features.store.testing import seal_arrays
from obygaze_models.prediction.explain import _level_names_of_classes

SOUND = Codebook(
    name="sound",
    version="1",
    levels=(Level("no"), Level("yes")),
    scales=(Scale("loud", (Level("quiet"), Level("noisy"))),),
)


def test_a_clip_is_called_by_the_levels_of_the_scale_and_not_by_those_of_the_codebook(tmp_path):
    """The clips that the model was calibrated on have levels of the codebook too, which it does not tell."""
    generator = np.random.default_rng(0)
    clips = []
    X = []
    for film in range(4):
        for number in range(20):
            is_noisy = number % 2 == 0
            level = "yes" if number % 3 == 0 else "no"
            extras = {"loud": "noisy" if is_noisy else "quiet"}
            clips.append(of.Clip(f"f{film}-{number:02}", f"f{film}", level=level, extras=extras))
            X.append(generator.normal(size=3) + 2 * is_noisy)
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    store = seal_arrays(tmp_path / "store", movie_of, {"lab": {"pooled": np.array(X, np.float32)}})
    data = om.load_dataset(of.open_store(store), of.Manifest(tuple(clips), tmp_path, codebook=SOUND))
    run = om.evaluate(data, ["linear"], "scale:loud")

    card = om.load_model(run.save(data, ["linear"], tmp_path / "kept")["linear"]).card

    assert card.population["clips"] == {"no": 52, "yes": 28}
    assert _level_names_of_classes(card) == [["quiet"], ["noisy"]]
