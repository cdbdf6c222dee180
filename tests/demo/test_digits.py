"""The demo gives the digits of README.md and docs/first-hour.md on any processor.

Their table is of films that the demo draws and encodes. `features.npy` holds the features that the table was
made of, float32 `[168, 103]`, in the order of manifests/demo.csv.
"""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

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


def short_digest(*parts):
    """Return the first 16 digits of the SHA-256 of bytes, or of what is printed of others."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else str(part).encode())
    return whole.hexdigest()[:16]


def assert_digests_are_those_of_the_pages(**steps):
    """Print the digest of each step, and fail with the first that differs from `STEPS`."""
    digests = {name: short_digest(*parts) for name, parts in steps.items()}
    print(digests)  # noqa: T201
    for name, digest in digests.items():
        assert digest == STEPS[name], name


def skip_with_another_encoder():
    """Skip a test where the films are encoded by another version than those of the pages."""
    constraints = REPOSITORY.joinpath("constraints.txt").read_text(encoding="utf-8")
    if f"av=={version('av')}\n" not in constraints:
        pytest.skip("films of another encoder than the pages'")


@pytest.fixture(scope="module")
def features_of_the_pages():
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


def test_frames_of_three_clips_are_those_of_the_pages(drawn_clips):
    """The table on README.md is of films that the demo draws; the digest is of the frames it drew then."""
    frames = [frame.tobytes() for clip in drawn_clips.values() for frame in clip]

    assert_digests_are_those_of_the_pages(drawn=frames)


def test_video_files_of_three_clips_are_those_of_the_pages(encoded_clips):
    """The table on README.md is of files that the demo encodes; the digest is of the files it made then."""
    skip_with_another_encoder()
    files = [path.read_bytes() for path in encoded_clips]

    assert_digests_are_those_of_the_pages(encoded=files)


def test_features_of_three_clips_are_those_of_the_pages(encoded_clips, features_of_the_pages):
    """The table on README.md is of features, which are kept for all 168 clips, in the order of clips."""
    skip_with_another_encoder()

    vectors = []
    for path in encoded_clips:
        images = read_frames(path, uniform(32)).images
        clip = np.stack([prepare(image) for image in images])
        (vector,) = encode(clip[np.newaxis])["pooled"]
        vectors.append(vector)

    assert np.array_equal(vectors, features_of_the_pages[SOME_CLIPS])


class Evaluated(NamedTuple):
    """What `obygaze evaluate` gives: the rows of the table it prints, and "MODEL CLIP SCORE" of each clip."""

    table: list[str]
    scores: list[str]


def evaluate_as_the_demo_does(features, folder, capsys):
    """Evaluate features [168, 103] of the demo's clips by `obygaze evaluate`."""
    movie_of = {clip.clip_id: film.movie for film in plan_corpus() for clip in film.clips}
    lost = dict.fromkeys((CORRUPT, MISSING), "planted")
    store = seal_arrays(folder / "films", movie_of, {"descriptors": {"pooled": features}}, failed=lost)
    manifest, run = REPOSITORY / "manifests" / "demo.csv", folder / "run"
    assert obygaze("evaluate", manifest, store, "--task", "hn_s", "--test", "enhn_s", "--out", run) == 0
    rows = rows_of(run / "predictions.csv")
    scores = [f"{row['model']} {row['clip_id']} {float(row['score']):.4f}" for row in rows]
    return Evaluated(ROW_OF_TABLE.findall(capsys.readouterr().out), scores)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_rows_of_the_table_that_the_demo_prints(page):
    """A page may leave rows out, but has at least three; those that it shows are the demo's, in its order.

    A row begins with the name of a model, such as "linear", and ends with three or four numbers.
    """
    rows_of_page = ROW_OF_TABLE.findall(REPOSITORY.joinpath(page).read_text(encoding="utf-8"))
    models_of_page = {row.split()[0] for row in rows_of_page}
    rows_of_demo = [row for row in TABLE if row.split()[0] in models_of_page]

    assert {"linear", "pcbm_lr", "(chance)"} <= models_of_page
    assert rows_of_page == rows_of_demo


def test_evaluate_prints_the_table_and_the_scores_of_the_pages_from_their_features(
    features_of_the_pages, tmp_path, capsys
):
    """The features that the table on README.md is of are kept: they must give the same digits again."""
    evaluated = evaluate_as_the_demo_does(features_of_the_pages, tmp_path, capsys)

    assert_digests_are_those_of_the_pages(scores=evaluated.scores)
    table_of_the_pages = TABLE
    assert evaluated.table == table_of_the_pages


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_last_bit_of_the_features_moves_no_digit_of_the_table(
    features_of_the_pages, tmp_path, capsys, seed
):
    """Another processor may round features otherwise, in their last bit: about 1e-7 of a float32."""
    noise = np.random.default_rng(seed).choice([-1e-7, 1e-7], features_of_the_pages.shape)
    moved = (features_of_the_pages * (1 + noise)).astype(np.float32)
    assert not np.array_equal(moved, features_of_the_pages)

    evaluated = evaluate_as_the_demo_does(moved, tmp_path, capsys)

    table_of_the_pages = TABLE
    assert evaluated.table == table_of_the_pages


@pytest.mark.long
def test_the_demo_extracts_the_features_of_which_the_manuals_tables_were_made(
    demo_folder, features_of_the_pages
):
    """README.md and docs/first-hour.md show a table of the demo's results, which a user must get as well.

    Here the demo is run as a user runs it. Its store must have, to the bit, the features of 168 clips that
    are kept with the tests, of which that table was made. Two clips, of a corrupt and of a lost file, have
    none. Other versions of the encoder make other films, and are skipped.
    """
    skip_with_another_encoder()

    features_of_the_store = open_store(demo_folder / "store-1.0.0")["descriptors"].pooled()

    has_features = ~np.isnan(features_of_the_store).any(axis=1)
    assert has_features.sum() == 168 - 2
    assert np.array_equal(features_of_the_store[has_features], features_of_the_pages[has_features])
