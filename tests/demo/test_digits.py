"""The demo gives the digits of README.md and docs/first-hour.md on any processor.

Their table is of films that the demo draws and encodes. `features.npy` holds the features that the table was
made of, float32 `[168, 103]`, in the order of manifests/demo.csv.
"""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from obygaze.demo_corpus import CORRUPT, MISSING, RATE, draw_clip, plan_corpus, write_video
from obygaze_features.backbones.descriptors import encode, prepare
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_features.video import read_frames, uniform
from tests.command import obygaze
from tests.files import rows_of

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
PAGES = ("README.md", "docs/first-hour.md")
ROW_OF_TABLE = re.compile(r"^ *((?:linear|mlp|pcbm_\w+|\(chance\)) +\d\.\d{3} .*?)(?: +#.*)?$", re.MULTILINE)
"""A row of the table, in a page or as it is printed."""

SOME_CLIPS = [3, 50, 100]
STEPS = {"drawn": "8349447029a0743b", "encoded": "81b124179079ec50", "scores": "7e023ea0be2f039f"}
"""The first 16 digits of SHA-256: of frames and files of `SOME_CLIPS`, and of all scores to four decimals."""
TABLE = """\
linear            0.932 [0.867, 0.966]  0.862  0.586
mlp               0.876 [0.759, 0.941]  0.781  0.548
pcbm_lr           0.959 [0.900, 0.984]  0.893  0.774
pcbm_dt           0.886 [0.799, 0.939]  0.743  0.799
pcbm_lr_random    0.734 [0.562, 0.856]  0.619  0.431
pcbm_lr_shuffled  0.755 [0.413, 0.931]  0.636  0.448
(chance)          0.500                 0.351  0.402
""".splitlines()
"""What the demo prints."""


def digest(*parts):
    """Return the first 16 digits of the SHA-256 of bytes, or of what is printed of others."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else str(part).encode())
    return whole.hexdigest()[:16]


def assert_digests_are_those_of_the_pages(**steps):
    """Print the digest of each step, and fail with the first that differs from `STEPS`."""
    found = {name: digest(*parts) for name, parts in steps.items()}
    print(found)  # noqa: T201
    assert [name for name, one in found.items() if one != STEPS[name]][:1] == []


def skip_with_another_encoder():
    """Skip a test where the films are encoded by another version than those of the pages."""
    constraints = REPOSITORY.joinpath("constraints.txt").read_text(encoding="utf-8")
    if f"av=={version('av')}\n" not in constraints:
        pytest.skip("films of another encoder than the pages'")


@pytest.fixture(scope="module")
def features():
    """The features of the 168 clips of which the pages' table was made."""
    return np.load(HERE / "features.npy")


@pytest.fixture(scope="module")
def drawn_clips():
    """The frames of SOME_CLIPS."""
    clips = [clip for film in plan_corpus() for clip in film.clips]
    return {row: list(draw_clip(clips[row])) for row in SOME_CLIPS}


@pytest.fixture(scope="module")
def encoded_clips(drawn_clips, tmp_path_factory):
    """The video files of SOME_CLIPS."""
    folder = tmp_path_factory.mktemp("clips")
    for row, frames in drawn_clips.items():
        write_video(folder / f"{row}.mp4", frames, RATE)
    return [folder / f"{row}.mp4" for row in SOME_CLIPS]


def test_frames_of_some_clips_are_those_of_the_pages(drawn_clips):
    frames = [frame.tobytes() for clip in drawn_clips.values() for frame in clip]
    assert_digests_are_those_of_the_pages(drawn=frames)


def test_video_files_of_some_clips_are_those_of_the_pages(encoded_clips):
    skip_with_another_encoder()
    assert_digests_are_those_of_the_pages(encoded=[path.read_bytes() for path in encoded_clips])


def test_features_of_some_clips_are_those_of_the_pages(encoded_clips, features):
    skip_with_another_encoder()
    vectors = []
    for path in encoded_clips:
        images = read_frames(path, uniform(32)).images
        vectors.append(encode(np.stack([[prepare(image) for image in images]]))["pooled"][0])
    assert np.array_equal(vectors, features[SOME_CLIPS])


def table_of(features, folder, capsys):
    """Evaluate the features [168, 103] as the demo does; gives the table's rows and the clips' scores."""
    movie_of = {clip.clip_id: film.movie for film in plan_corpus() for clip in film.clips}
    lost = dict.fromkeys((CORRUPT, MISSING), "planted")
    store = seal_arrays(folder / "films", movie_of, {"descriptors": {"pooled": features}}, failed=lost)
    manifest, run = REPOSITORY / "manifests" / "demo.csv", folder / "run"
    assert obygaze("evaluate", manifest, store, "--task", "hn_s", "--test", "enhn_s", "--out", run) == 0
    rows = rows_of(run / "predictions.csv")
    scores = [f"{row['model']} {row['clip_id']} {float(row['score']):.4f}" for row in rows]
    return ROW_OF_TABLE.findall(capsys.readouterr().out), scores


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_rows_of_the_table_that_the_demo_prints(page):
    rows = ROW_OF_TABLE.findall(REPOSITORY.joinpath(page).read_text(encoding="utf-8"))
    names = {row.split()[0] for row in rows}
    assert {"linear", "pcbm_lr", "(chance)"} <= names
    assert [row for row in TABLE if row.split()[0] in names] == rows


def test_evaluate_prints_the_table_and_the_scores_of_the_pages_from_their_features(
    features, tmp_path, capsys
):
    table, scores = table_of(features, tmp_path, capsys)
    assert_digests_are_those_of_the_pages(scores=scores)
    assert table == TABLE


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_the_last_bit_of_the_features_moves_no_digit_of_the_table(features, tmp_path, capsys, seed):
    noise = np.random.default_rng(seed).choice([-1e-7, 1e-7], features.shape)
    moved = (features * (1 + noise)).astype(np.float32)
    assert not np.array_equal(moved, features)
    assert table_of(moved, tmp_path, capsys)[0] == TABLE


@pytest.mark.long  # of the demo, as a user runs it
def test_the_store_of_the_demo_has_the_features_of_the_pages(demo_folder, features):
    skip_with_another_encoder()
    found = open_store(demo_folder / "store-1.0.0")["descriptors"].pooled()
    has_features = ~np.isnan(found).any(axis=1)
    assert has_features.sum() == len(features) - len((CORRUPT, MISSING))
    differs = (found != features).any(axis=1)
    assert np.flatnonzero(differs & has_features).tolist() == []
