"""A whole film of six minutes that no model was trained on, from the file to its segments; and F0's film."""

from itertools import chain

import numpy as np
import pytest

from obygaze.demo_corpus import RATE, DemoClip, Look, draw_clip, write_video
from obygaze_film.timeline import Timeline
from tests.film.saying import heading_of

SCENE_S, N_SCENES = 6, 60
SCENES_WITH_BODY = ((4, 7), (18, 22), (33, 36), (50, 53))
"""First scene, and the one after the last, of each stretch that is planted as S, by the concept Body."""
STRETCHES_WITH_BODY = [(SCENE_S * first, SCENE_S * after) for first, after in SCENES_WITH_BODY]
"""Their starts and ends in seconds."""
CONCEPTS_ELSEWHERE = (
    (),
    ("Look",),
    (),
    ("Activity", "Clothing"),
    (),
    ("Type of shot",),
    ("Expression of emotion",),
    (),
)

# From pictures to segments: alone it draws, decodes and scores a whole film.
pytestmark = [pytest.mark.long, pytest.mark.nightly]


def draw_film(path, look):
    """Draw 60 scenes of 6 s each in a look of the film's own, four runs of them with Body."""
    rng = np.random.default_rng(5)
    scenes = []
    for number in range(N_SCENES):
        has_body = any(first <= number < after for first, after in SCENES_WITH_BODY)
        concepts = ("Body", str(rng.choice(["Posture", "Clothing", "Appearance"])))
        if not has_body:
            concepts = CONCEPTS_ELSEWHERE[rng.integers(len(CONCEPTS_ELSEWHERE))]
        seed = int(rng.integers(2**31))
        scenes.append(
            draw_clip(DemoClip("", "", concepts, look, strength=1.0, n_frames=SCENE_S * RATE, seed=seed))
        )
    write_video(path, chain.from_iterable(scenes), RATE)


def score(obygaze, folder, film, model, code):
    """Cut a film into windows, extract and score it, as a user would; scoring must end with an exit code."""
    obygaze(folder, 0, "manifest", "import", "film", film, "--window", 6, "--hop", 3, "--out", "windows.csv")
    obygaze(folder, 0, "extract", "windows.csv", "features", "--workers", 2)
    obygaze(folder, code, "film", "score", model, "features-1.0.0", "--out", "scored")
    return Timeline.read(folder / "scored")


def test_every_planted_stretch_has_a_segment_and_at_most_one_segment_lies_elsewhere(
    demo_folder, obygaze, tmp_path
):
    """A film of 360 s, in a look of its own, shows Body in four stretches of 18 to 24 s, 78 s together.

    The model was trained on other films, in which clips with Body are S. Windows end where scenes don't: a
    segment lies in a stretch if at least three quarters of it do. The share of the film that the model
    expects to be positive is about the planted one.
    """
    look = Look((0.93, 0.97, 0.95), brightness=0.43, grain=3.5)
    draw_film(tmp_path / "planted.mkv", look)

    timeline = score(obygaze, tmp_path, "planted.mkv", demo_folder / "run" / "pcbm_lr.model", code=0)

    segments = timeline.segments()
    segments = segments[segments["reaches"] == 1]  # those that reach the threshold somewhere
    stretches_found = set()
    segments_elsewhere = []
    for start_s, end_s in zip(segments["start_s"], segments["end_s"], strict=True):
        shared_s = {stretch: common_seconds(stretch, (start_s, end_s)) for stretch in STRETCHES_WITH_BODY}
        if max(shared_s.values()) >= 0.75 * (end_s - start_s):
            stretches_found |= {stretch for stretch, seconds in shared_s.items() if seconds > 0}
        else:
            segments_elsewhere.append((start_s, end_s))
    assert stretches_found == set(STRETCHES_WITH_BODY), segments
    assert len(segments_elsewhere) <= 1, segments

    planted_share = 78 / 360
    assert timeline.rate().value == pytest.approx(planted_share, abs=0.1)


def common_seconds(stretch, segment):
    """Return how long two spans of (start, end) in seconds overlap."""
    last_start = max(stretch[0], segment[0])
    first_end = min(stretch[1], segment[1])
    return max(first_end - last_start, 0)


def draw_noise(n_frames):
    """Draw pictures that no film of the demo resembles: coloured noise that changes with every frame."""
    rng = np.random.default_rng(11)
    for _ in range(n_frames):
        yield rng.integers(0, 256, (96, 160, 3), dtype=np.uint8)


def test_a_film_unlike_the_training_films_gets_no_probability_no_rate_and_exit_3(
    demo_folder, obygaze, tmp_path
):
    """The film is 30 s of coloured noise. The model would call nearly all of it positive.

    Code 3 says that something could not be predicted.
    """
    write_video(tmp_path / "odd.mkv", draw_noise(30 * RATE), RATE)

    timeline = score(obygaze, tmp_path, "odd.mkv", demo_folder / "run" / "pcbm_lr.model", code=3)

    rows = timeline.rows()
    assert rows["flags"].str.contains("unlike").all()
    for column in ("p", "p_low", "p_high", "called"):
        assert rows[column].isna().all()
    assert timeline.rate().value is None
    assert heading_of(timeline).startswith("odd · no prediction: unlike")
