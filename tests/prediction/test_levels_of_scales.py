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


def dataset_of_noisy_and_quiet_clips(folder):
    """Plant 80 clips of four films whose features tell the scale "loud": every second clip is noisy.

    Every third clip of a film has the level yes, the others no, which no feature tells: 28 and 52 clips.
    """
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
    store = seal_arrays(folder / "store", movie_of, {"lab": {"pooled": np.array(X, np.float32)}})
    return om.load_dataset(of.open_store(store), of.Manifest(tuple(clips), folder, codebook=SOUND))


def test_a_model_of_a_scale_calls_clips_by_the_levels_of_the_scale_and_not_by_those_of_the_codebook(tmp_path):
    """The codebook has the levels no and yes, and beside them a scale "loud" of two levels, quiet and noisy.

    A model learns the scale from 80 clips, of which 52 have the level no and 28 yes. Its card counts these,
    but the classes that it calls clips by are quiet and noisy.
    """
    data = dataset_of_noisy_and_quiet_clips(tmp_path)
    run = om.evaluate(data, ["linear"], "scale:loud")

    card = om.load_model(run.save(data, ["linear"], tmp_path / "kept")["linear"]).card

    assert card.population["clips"] == {"no": 52, "yes": 28}
    assert _level_names_of_classes(card) == [["quiet"], ["noisy"]]
