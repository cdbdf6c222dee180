"""A whole film of six minutes that no model was trained on, from the file to its segments; and F0's film."""

from itertools import chain

import numpy as np
import pytest

from obygaze.demo_corpus import RATE, DemoClip, Look, draw_clip, write_video
from obygaze_film.timeline import Timeline
from tests.film.saying import heading_of

SCENE_S, N_SCENES = 6, 60
SURE = ((4, 7), (18, 22), (33, 36), (50, 53))
"""First scene, and the one after the last, of what is planted as S."""

PLANTED = SCENE_S * np.array(SURE, dtype=np.float64)
ELSEWHERE = (
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
        sure = any(first <= number < after for first, after in SURE)
        concepts = ("Body", str(rng.choice(["Posture", "Clothing", "Appearance"])))
        chosen = concepts if sure else ELSEWHERE[rng.integers(len(ELSEWHERE))]
        seed = int(rng.integers(2**31))
        scenes.append(draw_clip(DemoClip("", "", chosen, look, 1.0, SCENE_S * RATE, seed)))
    write_video(path, chain.from_iterable(scenes), RATE)


def score(obygaze, folder, film, model, code):
    """Cut, extract and score a film, as a user would."""
    obygaze(folder, 0, "manifest", "import", "film", film, "--window", 6, "--hop", 3, "--out", "windows.csv")
    obygaze(folder, 0, "extract", "windows.csv", "features", "--workers", 2)
    obygaze(folder, code, "film", "score", model, "features-1.0.0", "--out", "scored")
    return Timeline.read(folder / "scored")


def test_every_planted_stretch_has_a_segment_and_at_most_one_segment_lies_elsewhere(
    demo_folder, obygaze, tmp_path
):
    look = Look((0.93, 0.97, 0.95), 0.43, 3.5)  # of no film that the model was trained on
    draw_film(tmp_path / "planted.mkv", look)
    timeline = score(obygaze, tmp_path, "planted.mkv", demo_folder / "run" / "pcbm_lr.model", 0)
    segments = timeline.segments()
    segments = segments.loc[segments["reaches"] == 1, ["start_s", "end_s"]].to_numpy(dtype=np.float64)
    # Seconds that each planted stretch (row) and each segment (column) share.
    last_starts = np.maximum(PLANTED[:, None, 0], segments[None, :, 0])
    first_ends = np.minimum(PLANTED[:, None, 1], segments[None, :, 1])
    shared_s = np.maximum(first_ends - last_starts, 0)
    lengths_s = segments[:, 1] - segments[:, 0]
    # Windows of 8 s end where scenes don't, so that a segment may leave its scene by a quarter.
    segment_is_inside = shared_s.max(axis=0) >= 0.75 * lengths_s
    stretch_is_found = (shared_s[:, segment_is_inside] > 0).any(axis=1)
    assert stretch_is_found.all(), segments
    assert (~segment_is_inside).sum() <= 1, segments
    planted_share = (PLANTED[:, 1] - PLANTED[:, 0]).sum() / (SCENE_S * N_SCENES)
    assert timeline.rate().value == pytest.approx(planted_share, abs=0.1)


def noise(n):
    """Pictures that no film of the demo resembles: coloured noise that changes with every frame."""
    rng = np.random.default_rng(11)
    for _ in range(n):
        yield rng.integers(0, 256, (96, 160, 3), dtype=np.uint8)


def test_a_film_unlike_the_training_films_gets_no_probability_no_rate_and_exit_3(
    demo_folder, obygaze, tmp_path
):
    """The model would give it logits of 700 and more, and call 56 of 57 windows positive."""
    write_video(tmp_path / "odd.mkv", noise(30 * RATE), RATE)
    timeline = score(obygaze, tmp_path, "odd.mkv", demo_folder / "run" / "pcbm_lr.model", 3)
    rows = timeline.rows()
    assert rows["flags"].str.contains("unlike").all()
    assert rows[["p", "p_low", "p_high", "called"]].isna().all().all()
    assert timeline.rate().value is None
    assert heading_of(timeline).startswith("odd · no prediction: unlike")
