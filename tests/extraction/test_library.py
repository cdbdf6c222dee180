"""`of.extract` is the command's work as one call; `of.estimate` says what it will take."""

import shutil
from importlib import import_module

import numpy as np
import pytest

import obygaze_features as of
from obygaze.demo_corpus import write_video
from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction import estimate
from tests.process import python

SETTINGS = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0"}


@pytest.fixture
def films(tmp_path):
    """A folder with two videos, a file that is none, and their manifest."""
    for i in range(2):
        frames = (np.full((48, 64, 3), 20 * i + t, np.uint8) for t in range(12))
        write_video(tmp_path / f"{i}.mp4", frames, 24)
    (tmp_path / "2.mp4").write_bytes(b"no video")
    clips = tuple(of.Clip(f"tt1-{i}", "tt1", f"{i}.mp4") for i in range(3))
    of.write_manifest(of.Manifest(clips, tmp_path), tmp_path / "films.csv")
    return tmp_path


@pytest.mark.long
def test_a_call_of_extract_shows_its_progress_and_gives_the_very_bytes_of_the_command(
    films, obygaze, file_digests
):
    progress = []

    def show(n_done, n_clips):
        progress.append((n_done, n_clips))

    store = of.extract(films / "films.csv", films / "by-call", progress=show, **SETTINGS)
    assert progress[-1] == (3, 3)
    assert [clip.status for clip in store.clips] == ["ok", "ok", "failed"]

    command = ("extract", "films.csv", "by-command", "--n", 2, "--workers", 1, "--licence")
    process = obygaze(films, *command, "CC0-1.0")
    assert process.returncode == 3, process.stderr  # a clip has failed
    assert file_digests(store.path) == file_digests(films / "by-command-1.0.0")

    with_another_licence = obygaze(films, *command, "MIT")
    assert "keeps licence" in with_another_licence.stderr
    assert "--store-version 1.0.1" in with_another_licence.stderr  # a sealed version never changes


@pytest.mark.long
def test_what_a_killed_sealing_left_beside_its_store_is_removed_by_the_next_call(films):
    """A sealing that is killed as it ends leaves the folder in which it built the store."""
    store = of.extract(films / "films.csv", films / "store", **SETTINGS)
    building = films / "store.building"
    building.mkdir()

    assert of.extract(films / "films.csv", films / "store", **SETTINGS).path == store.path
    assert not building.exists()


@pytest.mark.long
def test_a_licence_is_asked_for_before_the_first_clip_is_done(films):
    """Extraction may take days, and sealing needs a licence: the note comes as the first event."""
    events = []
    settings = {
        "n_frames": 2,
        "workers": 1,
        "note": events.append,
        "progress": lambda *numbers: events.append(numbers),
    }
    of.extract(films / "films.csv", films / "without", **settings)
    assert "--licence SPDX" in events[0]

    events.clear()
    of.extract(films / "films.csv", films / "with", licence="CC0-1.0", **settings)
    assert not [event for event in events if "--licence" in str(event)]


@pytest.mark.long
def test_a_call_after_a_limited_one_makes_the_store_of_one_call(films):
    """Of three clips, the limited call leaves two, and seals nothing."""
    settings = {**SETTINGS, "progress": False}
    notes = []
    limited = of.extract(films / "films.csv", films / "in-two", limit=1, note=notes.append, **settings)
    assert limited is None
    assert "2 clips" in notes[-1]
    with pytest.warns(UserWarning, match="1 clip left"):  # where nobody takes the notes
        of.extract(films / "films.csv", films / "in-two", limit=1, **settings)

    in_two_calls = of.extract(films / "films.csv", films / "in-two", **settings)
    in_one_call = of.extract(films / "films.csv", films / "in-one", **settings)
    assert [clip.status for clip in in_two_calls.clips] == ["ok", "ok", "failed"]
    vectors = in_two_calls["descriptors"].pooled()
    assert np.array_equal(vectors, in_one_call["descriptors"].pooled(), equal_nan=True)


@pytest.mark.long
def test_stores_grown_and_merged_stores_count_the_clips_of_each_stream(films):
    """Films with equal streams are one entry, and a file that was not read is none.

    Clip `more` is of a film that the store has. Where both parts have it, their numbers cannot be added.
    """
    settings = {**SETTINGS, "note": str}
    store = of.extract(films / "films.csv", films / "mine", **settings)
    (stream,) = store.attributes["streams"]
    assert (stream["codec"], stream["pixels"]) == ("h264", "yuv420p")
    assert stream == {**of.read_frames(films / "0.mp4", of.uniform(1)).stream, "clips": 2}

    of.write_manifest(of.Manifest((of.Clip("more", "tt9", "0.mp4"),), films), films / "more.csv")
    grown = of.extract(films / "more.csv", films / "mine", append=store.path, version="1.1.0", **settings)
    assert grown.attributes["streams"] == [{**stream, "clips": 3}]

    other = of.extract(films / "more.csv", films / "other", **settings)
    merged = of.open_store(of.merge([store, other], films / "both", corpus="films"))
    assert merged.attributes["streams"] == [{**stream, "clips": 3}]
    overlapping = of.open_store(of.merge([merged, other], films / "twice", corpus="films"))
    assert "streams" not in overlapping.attributes


SCRIPT_WITHOUT_MAIN_GUARD = """
from dataclasses import replace
import obygaze_features as of

def prepare(frame):
    return frame[:8, :8]

def encode(batch):
    return of.load_backbone("descriptors", 2).encode(batch)

print("once")
in_decoders = replace(of.load_backbone("descriptors", 2), name="mine", prepare=prepare)
here = replace(of.load_backbone("descriptors", 2), name="ours", encode=encode, encode_in_worker=False)
try:
    of.extract("films.csv", "refused", [in_decoders], workers=2, licence="CC0-1.0")
except of.ObygazeError as error:
    print(error)
store = of.extract("films.csv", "films", ["descriptors", here], n_frames=2, workers=2, licence="CC0-1.0")
print([clip.status for clip in store.clips])
"""


@pytest.mark.long
def test_a_script_without_a_main_guard_is_not_run_again_by_its_workers(films):
    """It prints when it begins, why its first extraction is refused, and the clips of its second."""
    (films / "script.py").write_text(SCRIPT_WITHOUT_MAIN_GUARD, encoding="utf-8")
    result = python("script.py", cwd=films)

    beginning, refusal, statuses = result.stdout.splitlines()
    assert beginning == "once"
    assert refusal.startswith("backbone 'mine' cannot be sent to worker processes: 'prepare' is defined in")
    assert statuses == "['ok', 'ok', 'failed']"
    assert "Traceback" not in result.stderr
    assert not list(films.glob("refused*"))


def test_an_estimate_writes_nothing_and_counts_what_is_left(films):
    cost = estimate(films / "films.csv", films / "mine", n_frames=2)
    assert (cost.clips, cost.files, cost.absent) == (3, 3, 0)
    assert not list(films.glob("mine*"))


@pytest.mark.long
def test_an_estimate_of_a_store_that_is_done_counts_no_clips_or_is_refused(films):
    """The stage has two frames of each clip; an estimate for three, or without the stage, is refused."""
    store = films / "mine"
    of.extract(films / "films.csv", store, **SETTINGS)
    assert estimate(films / "films.csv", store, n_frames=2).clips == 0
    with pytest.raises(StoreError, match="other settings"):
        estimate(films / "films.csv", store, n_frames=3)

    shutil.rmtree(films / "mine.staging")
    with pytest.raises(ExtractError, match="is sealed"):
        estimate(films / "films.csv", store, n_frames=2)


def test_an_estimate_without_a_gpu_encodes_one_clip_at_a_time(films, monkeypatch):
    """Of three clips one is no video: two batches of one clip each are encoded."""
    module = import_module("obygaze_features.extraction.cost_estimate")
    sizes_of_batches = []
    encode_batch = module.encode_batch

    def note_size(backbones, clips):
        sizes_of_batches.append(len(clips))
        return encode_batch(backbones, clips)

    monkeypatch.setattr(module, "encode_batch", note_size)

    cost = estimate(films / "films.csv", films / "other", n_frames=2)
    assert cost.tried == 3  # with the one that cannot be decoded
    assert sizes_of_batches == [1, 1]


def test_an_estimate_of_windows_counts_the_passes_over_the_film_that_they_share(tmp_path, monkeypatch):
    """A pass reads the film once for up to 16 windows. So 32 windows cost less than 32 times one.

    Windows of 2 s of a film of 20 s begin half a second after each other. Without a GPU, an estimate has
    seconds of cores alone.
    """
    frames = (np.full((48, 64, 3), 5 * (t % 40), np.uint8) for t in range(240))
    write_video(tmp_path / "film.mp4", frames, 12)
    module = import_module("obygaze_features.extraction.cost_estimate")
    monkeypatch.setattr(module, "LONGEST_TRIAL_S", float("inf"))

    def estimate_of_windows(n):
        clips = tuple(of.Clip(f"w{i:02d}", "m", "film.mp4", 0.5 * i, 0.5 * i + 2) for i in range(n))
        return estimate(of.Manifest(clips, tmp_path), tmp_path / "s", n_frames=2, workers=1)

    of_one = estimate_of_windows(1)
    assert of_one.seconds > 0
    assert of_one.cpu_s > 0
    assert of_one.gpu_s is None

    of_32 = estimate_of_windows(32)
    assert (of_32.clips, of_32.files, of_32.tried, of_32.passes) == (32, 1, 32, 2)
    assert of_32.cpu_s < 32 * of_one.cpu_s
