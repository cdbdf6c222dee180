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


def write_films(folder):
    """Write two videos, a file that is none, and the manifest of all three."""
    for i in range(2):
        frames = (np.full((48, 64, 3), 20 * i + t, np.uint8) for t in range(12))
        write_video(folder / f"{i}.mp4", frames, 24)
    (folder / "2.mp4").write_bytes(b"no video")
    clips = tuple(of.Clip(f"tt1-{i}", "tt1", f"{i}.mp4") for i in range(3))
    of.write_manifest(of.Manifest(clips, folder), folder / "films.csv")
    return folder


@pytest.fixture
def films(tmp_path):
    """A folder with two videos, a file that is none, and their manifest."""
    return write_films(tmp_path)


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    """Such a folder, and the store of its clips."""
    folder = write_films(tmp_path_factory.mktemp("films"))
    return folder, of.extract(folder / "films.csv", folder / "mine", **SETTINGS)


@pytest.fixture
def by_call(films):
    """The store of a call, and the progress that it showed."""
    progress = []
    of.extract(
        films / "films.csv",
        films / "by-call",
        progress=lambda n_done, n_clips: progress.append((n_done, n_clips)),
        **SETTINGS,
    )
    return films / "by-call-1.0.0", progress


COMMAND = ("extract", "films.csv", "by-command", "--n", 2, "--workers", 1, "--licence")


def test_a_call_of_extract_shows_its_progress(by_call):
    store, progress = by_call
    assert progress[-1] == (3, 3)
    assert [clip.status for clip in of.open_store(store).clips] == ["ok", "ok", "failed"]


def test_a_call_of_extract_gives_the_very_bytes_of_the_command(films, by_call, obygaze, file_digests):
    store, _ = by_call
    process = obygaze(films, *COMMAND, "CC0-1.0")
    assert process.returncode == 3, process.stderr  # a clip has failed
    assert file_digests(store) == file_digests(films / "by-command-1.0.0")


def test_a_store_keeps_its_licence_and_another_asks_for_a_new_version(films, obygaze):
    obygaze(films, *COMMAND, "CC0-1.0")
    again = obygaze(films, *COMMAND, "MIT")
    assert "keeps licence" in again.stderr
    assert "--store-version 1.0.1" in again.stderr


def test_a_licence_is_asked_for_before_anything_is_read(films):
    events = []  # notes, and pairs of progress
    settings = {
        "n_frames": 2,
        "workers": 1,
        "note": events.append,
        "progress": lambda *progress: events.append(progress),
    }
    of.extract(films / "films.csv", films / "none", **settings)
    assert "--licence SPDX" in events[0]

    events.clear()
    of.extract(films / "films.csv", films / "stated", licence="CC0-1.0", **settings)
    assert not [event for event in events if "--licence" in str(event)]


def test_a_limited_call_leaves_clips_for_the_next_which_gives_the_store(films):
    notes = []
    settings = {**SETTINGS, "progress": False, "note": notes.append}
    assert of.extract(films / "films.csv", films / "few", limit=1, **settings) is None
    assert "2 clips" in notes[-1]
    store = of.extract(films / "films.csv", films / "few", **settings)
    assert [clip.status for clip in store.clips] == ["ok", "ok", "failed"]
    in_one_call = of.extract(films / "films.csv", films / "whole", limit=3, **settings)
    assert np.array_equal(in_one_call["descriptors"].pooled(), store["descriptors"].pooled(), equal_nan=True)


def test_a_store_lists_the_streams_of_its_files_with_the_number_of_clips(extracted):
    """Two films with equal streams are one entry, and a file that was not read is none."""
    folder, store = extracted
    (stream,) = store.attributes["streams"]
    assert (stream["codec"], stream["pixels"]) == ("h264", "yuv420p")
    assert stream == {**of.read_frames(folder / "0.mp4", of.uniform(1)).stream, "clips": 2}


@pytest.fixture
def one_clip_more(extracted):
    """The folder with a list of one more clip, of a film that the store has, the store and its stream."""
    folder, store = extracted
    (stream,) = store.attributes["streams"]
    of.write_manifest(of.Manifest((of.Clip("more", "tt9", "0.mp4"),), folder), folder / "more.csv")
    return folder, store, stream


def test_a_store_that_grows_counts_the_clips_of_a_stream(one_clip_more):
    folder, store, stream = one_clip_more
    grown = of.extract(
        folder / "more.csv", folder / "mine", append=store.path, version="1.1.0", note=str, **SETTINGS
    )
    assert grown.attributes["streams"] == [{**stream, "clips": 3}]


def test_a_merged_store_counts_the_clips_of_a_stream(one_clip_more):
    folder, store, stream = one_clip_more
    other = of.extract(folder / "more.csv", folder / "other", note=str, **SETTINGS)
    merged = of.open_store(of.merge([store, other], folder / "both", corpus="films"))
    assert merged.attributes["streams"] == [{**stream, "clips": 3}]


def test_a_merged_store_of_common_clips_counts_no_streams(one_clip_more):
    """Both have the clip `more`, so that their numbers of clips cannot be added."""
    folder, store, _ = one_clip_more
    other = of.extract(folder / "more.csv", folder / "other", note=str, **SETTINGS)
    merged = of.open_store(of.merge([store, other], folder / "with_more", corpus="films"))
    overlapping = of.open_store(of.merge([merged, other], folder / "twice", corpus="films"))
    assert "streams" not in overlapping.attributes


SCRIPT = """
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


def test_a_script_without_a_main_guard_runs_once(films):
    (films / "script.py").write_text(SCRIPT, encoding="utf-8")
    result = python("script.py", cwd=films)
    once, refusal, statuses = result.stdout.splitlines()
    assert (once, statuses) == ("once", "['ok', 'ok', 'failed']")
    assert refusal.startswith("backbone 'mine' cannot be sent to worker processes: 'prepare' is defined in")
    assert "Traceback" not in result.stderr
    assert not list(films.glob("refused*"))


def test_an_estimate_writes_nothing_and_counts_what_is_left(films):
    cost = estimate(films / "films.csv", films / "mine", n_frames=2)
    assert (cost.clips, cost.files, cost.absent) == (3, 3, 0)
    assert not list(films.glob("mine*"))


@pytest.fixture
def extracted_films(films):
    of.extract(films / "films.csv", films / "mine", **SETTINGS)
    return films


def test_an_estimate_of_a_store_that_is_done_counts_no_clips(extracted_films):
    assert estimate(extracted_films / "films.csv", extracted_films / "mine", n_frames=2).clips == 0


def test_an_estimate_with_other_settings_than_the_stage_is_refused(extracted_films):
    with pytest.raises(StoreError, match="other settings"):
        estimate(extracted_films / "films.csv", extracted_films / "mine", n_frames=3)


def test_an_estimate_of_a_sealed_store_without_its_stage_is_refused(extracted_films):
    shutil.rmtree(extracted_films / "mine.staging")
    with pytest.raises(ExtractError, match="is sealed"):
        estimate(extracted_films / "films.csv", extracted_films / "mine", n_frames=2)


def test_an_estimate_encodes_one_clip_where_no_card_takes_several(films, monkeypatch):
    module = import_module("obygaze_features.extraction.cost_estimate")
    n_clips = []
    encode_batch = module.encode_batch

    def counting(backbones, clips):
        n_clips.append(len(clips))
        return encode_batch(backbones, clips)

    monkeypatch.setattr(module, "encode_batch", counting)
    assert estimate(films / "films.csv", films / "other", n_frames=2).tried == 3
    assert n_clips == [1, 1]


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film of 20 s."""
    folder = tmp_path_factory.mktemp("film")
    frames = (np.full((48, 64, 3), 5 * (t % 40), np.uint8) for t in range(240))
    write_video(folder / "film.mp4", frames, 12)
    return folder


def windows(folder, n):
    """Windows of 2 s of the film, each half a second after the one before."""
    clips = tuple(of.Clip(f"w{i:02d}", "m", "film.mp4", 0.5 * i, 0.5 * i + 2) for i in range(n))
    return of.Manifest(clips, folder)


def test_windows_of_a_film_are_counted_by_the_passes_they_share(film, monkeypatch):
    module = import_module("obygaze_features.extraction.cost_estimate")
    monkeypatch.setattr(module, "LONGEST_TRIAL_S", float("inf"))
    cost = estimate(windows(film, 32), film / "s", n_frames=2, workers=1)
    assert (cost.clips, cost.files, cost.passes, cost.tried) == (32, 1, 2, 32)
    assert cost.seconds > 0
    assert cost.cpu_s > 0
    assert cost.gpu_s is None
    cost_of_one = estimate(windows(film, 1), film / "s", n_frames=2, workers=1)
    assert cost.cpu_s < 32 * cost_of_one.cpu_s
