"""`of.extract` is the command's work as one call; `of.estimate` says what it will take."""

import shutil
from importlib import import_module

import numpy as np
import pytest

import obygaze_features as of
from obygaze.demo_corpus import write_video
from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction import estimate, trial_weights
from obygaze_features.extraction.job import Recipe
from tests.process import python

extraction = import_module("obygaze_features.extraction.extract")  # the package has a function of this name

SETTINGS = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0"}


@pytest.fixture
def folder_of_two_videos(tmp_path):
    """A folder with two videos, a file that is none, and their manifest."""
    for i in range(2):
        frames = (np.full((48, 64, 3), 20 * i + t, np.uint8) for t in range(12))
        write_video(tmp_path / f"{i}.mp4", frames, rate=24)
    (tmp_path / "2.mp4").write_bytes(b"no video")
    clips = tuple(of.Clip(f"tt1-{i}", "tt1", f"{i}.mp4") for i in range(3))
    of.write_manifest(of.Manifest(clips, tmp_path), tmp_path / "films.csv")
    return tmp_path


@pytest.mark.long
def test_a_call_of_extract_shows_its_progress_and_gives_the_very_bytes_of_the_command(
    folder_of_two_videos, obygaze, file_digests
):
    """Three clips, of which the last is no video, are extracted by a call in Python and by a command.

    Both stores have the same bytes. The call tells how many of the clips are done, and the command's exit
    code 3 says that a clip has failed.
    """
    progress = []

    def note_progress(n_done, n_clips):
        progress.append((n_done, n_clips))

    store = of.extract(
        folder_of_two_videos / "films.csv",
        folder_of_two_videos / "by-call",
        progress=note_progress,
        **SETTINGS,
    )
    command = ("extract", "films.csv", "by-command", "--n", 2, "--workers", 1, "--licence", "CC0-1.0")
    process = obygaze(folder_of_two_videos, *command)

    n_done_at_the_end, n_clips = progress[-1]
    assert n_done_at_the_end == 3
    assert n_clips == 3
    assert [clip.status for clip in store.clips] == ["ok", "ok", "failed"]
    assert process.returncode == 3, process.stderr
    assert file_digests(store.path) == file_digests(folder_of_two_videos / "by-command-1.0.0")


@pytest.mark.long
def test_the_licence_of_a_sealed_store_is_changed_by_another_version_alone(folder_of_two_videos, obygaze):
    """Version 1.0.0 is sealed under CC0-1.0, and never changes."""
    of.extract(folder_of_two_videos / "films.csv", folder_of_two_videos / "store", **SETTINGS)

    command = ("extract", "films.csv", "store", "--n", 2, "--workers", 1, "--licence", "MIT")
    process = obygaze(folder_of_two_videos, *command)

    assert "keeps licence" in process.stderr
    assert "--store-version 1.0.1" in process.stderr


@pytest.mark.long
def test_what_a_killed_sealing_left_beside_its_store_is_removed_by_the_next_call(folder_of_two_videos):
    """A sealing that is killed as it ends leaves the folder in which it built the store."""
    store = of.extract(folder_of_two_videos / "films.csv", folder_of_two_videos / "store", **SETTINGS)
    folder_of_killed_sealing = folder_of_two_videos / "store.building"
    folder_of_killed_sealing.mkdir()

    same_store = of.extract(folder_of_two_videos / "films.csv", folder_of_two_videos / "store", **SETTINGS)

    assert same_store.path == store.path
    assert not folder_of_killed_sealing.exists()


@pytest.mark.long
def test_a_licence_is_asked_for_before_the_first_clip_is_done(folder_of_two_videos):
    """Extraction may take days, and sealing needs a licence: the note comes before any progress."""
    notes_and_progress = []
    settings = {
        "n_frames": 2,
        "workers": 1,
        "note": notes_and_progress.append,
        "progress": lambda *numbers: notes_and_progress.append(numbers),
    }

    of.extract(folder_of_two_videos / "films.csv", folder_of_two_videos / "without", **settings)

    assert "--licence SPDX" in notes_and_progress[0]


@pytest.mark.long
def test_a_licence_that_is_given_is_not_asked_for(folder_of_two_videos):
    """The settings of the extraction (`SETTINGS`) have the licence CC0-1.0, so that no note asks for one."""
    notes = []

    of.extract(
        folder_of_two_videos / "films.csv",
        folder_of_two_videos / "with",
        note=notes.append,
        progress=False,
        **SETTINGS,
    )

    assert not any("--licence" in note for note in notes)


@pytest.mark.long
def test_a_call_after_a_limited_one_makes_the_store_of_one_call(folder_of_two_videos):
    """Of three clips, the first limited call leaves two, and the second one leaves one. They seal nothing.

    What is left is noted; where nobody takes the notes, it is a warning.
    """
    settings = {**SETTINGS, "progress": False}
    notes = []
    limited = of.extract(
        folder_of_two_videos / "films.csv",
        folder_of_two_videos / "in-steps",
        limit=1,
        note=notes.append,
        **settings,
    )
    assert limited is None
    assert "2 clips" in notes[-1]
    with pytest.warns(UserWarning, match="1 clip left"):
        of.extract(folder_of_two_videos / "films.csv", folder_of_two_videos / "in-steps", limit=1, **settings)

    made_in_steps = of.extract(
        folder_of_two_videos / "films.csv", folder_of_two_videos / "in-steps", **settings
    )
    made_at_once = of.extract(
        folder_of_two_videos / "films.csv", folder_of_two_videos / "at-once", **settings
    )

    assert [clip.status for clip in made_in_steps.clips] == ["ok", "ok", "failed"]
    vectors = made_in_steps["descriptors"].pooled()
    assert np.array_equal(vectors, made_at_once["descriptors"].pooled(), equal_nan=True)


@pytest.mark.long
def test_a_store_counts_its_clips_by_the_properties_of_their_video_streams(folder_of_two_videos):
    """Two films have equal streams (codec, size and so on), so that there is one entry, with two clips.

    A third clip, whose file cannot be read, has no stream.
    """
    store = extract_films(folder_of_two_videos)

    (stream,) = store.attributes["streams"]
    assert stream["codec"] == "h264"
    assert stream["pixels"] == "yuv420p"
    stream_of_first_film = of.read_frames(folder_of_two_videos / "0.mp4", of.uniform(1)).stream
    assert stream == {**stream_of_first_film, "clips": 2}


@pytest.mark.long
def test_a_grown_store_counts_the_new_clips_of_each_stream_too(folder_of_two_videos):
    """A store of two clips with equal streams is extended by one more clip of the first film."""
    store = extract_films(folder_of_two_videos)
    (stream,) = store.attributes["streams"]

    grown = of.extract(
        write_one_more_clip(folder_of_two_videos),
        folder_of_two_videos / "mine",
        append=store.path,
        version="1.1.0",
        **SETTINGS,
        note=str,
    )

    assert grown.attributes["streams"] == [{**stream, "clips": 3}]


@pytest.mark.long
def test_a_merged_store_adds_up_the_clips_of_each_stream_unless_stores_have_a_clip_in_common(
    folder_of_two_videos,
):
    """A store of two clips is merged with one of a third clip, all with equal streams: that makes three.

    The result is merged with the store of the third clip once more. Which of the counted clips are the same
    is not known then, so that no numbers are stated.
    """
    store = extract_films(folder_of_two_videos)
    (stream,) = store.attributes["streams"]
    manifest_of_third_clip = write_one_more_clip(folder_of_two_videos)
    other = of.extract(manifest_of_third_clip, folder_of_two_videos / "other", **SETTINGS, note=str)

    merged = of.open_store(of.merge([store, other], folder_of_two_videos / "both", corpus="films"))
    assert merged.attributes["streams"] == [{**stream, "clips": 3}]
    overlapping = of.open_store(of.merge([merged, other], folder_of_two_videos / "twice", corpus="films"))
    assert "streams" not in overlapping.attributes


def extract_films(folder):
    """Extract the clips of films.csv in a folder."""
    return of.extract(folder / "films.csv", folder / "mine", **SETTINGS, note=str)


def write_one_more_clip(folder):
    """Write a manifest of one clip, `more`, of the first film in a folder; return its path."""
    manifest = of.Manifest((of.Clip("more", "tt9", "0.mp4"),), folder)
    of.write_manifest(manifest, folder / "more.csv")
    return folder / "more.csv"


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
def test_a_script_without_a_main_guard_is_not_run_again_by_its_workers(folder_of_two_videos):
    """It prints when it begins, why its first extraction is refused, and the clips of its second.

    Its backbone 'mine' prepares frames by a function of the script, which workers cannot import.
    """
    (folder_of_two_videos / "script.py").write_text(SCRIPT_WITHOUT_MAIN_GUARD, encoding="utf-8")

    result = python("script.py", cwd=folder_of_two_videos)

    beginning, refusal, statuses = result.stdout.splitlines()
    assert beginning == "once"
    assert refusal.startswith("backbone 'mine' cannot be sent to worker processes: 'prepare' is defined in")
    assert statuses == "['ok', 'ok', 'failed']"
    assert "Traceback" not in result.stderr
    assert not list(folder_of_two_videos.glob("refused*"))


def test_an_estimate_writes_nothing_and_counts_what_is_left(folder_of_two_videos):
    """The manifest has three clips of three files, all of which are there."""
    cost = estimate(folder_of_two_videos / "films.csv", folder_of_two_videos / "mine", n_frames=2)

    assert cost.clips == 3
    assert cost.files == 3
    assert cost.absent == 0
    assert list(folder_of_two_videos.glob("mine*")) == []


def test_an_estimate_of_a_network_needs_no_weights_unless_it_is_built_already(
    folder_of_two_videos, monkeypatch
):
    """Weights that are not here are replaced by random ones, of backbones by name and by recipe.

    A stand-in for what replaces them notes the backbones that it gets.
    """
    asked_for = []

    def note_and_leave(recipes, _note):
        asked_for.extend(recipes)
        return tuple(recipes)

    monkeypatch.setattr(trial_weights, "with_untrained_networks", note_and_leave)
    manifest, out = folder_of_two_videos / "films.csv", folder_of_two_videos / "mine"
    recipe = Recipe("descriptors", n_frames=2)

    assert estimate(manifest, out, ["descriptors"], n_frames=2).clips == 3
    assert estimate(manifest, out, [recipe], n_frames=2).clips == 3
    assert asked_for == [Recipe("descriptors"), recipe]

    assert estimate(manifest, out, [recipe.build()], n_frames=2).clips == 3
    assert len(asked_for) == 2


@pytest.mark.parametrize("why", ["descriptors on cpu: no GPU is here", None])
def test_that_networks_run_on_the_cpu_for_lack_of_a_gpu_is_noted(folder_of_two_videos, monkeypatch, why):
    """A stand-in for what looks for a GPU finds none, or has nothing to say."""
    monkeypatch.setattr(extraction, "cpu_fallback_note", lambda _backbones: why)
    notes = []

    estimate(folder_of_two_videos / "films.csv", folder_of_two_videos / "mine", n_frames=2, note=notes.append)

    assert notes == [why] * (why is not None)


@pytest.mark.long
def test_an_estimate_of_a_store_that_is_done_counts_no_clips_or_is_refused(folder_of_two_videos):
    """The stage has two frames of each clip; an estimate for three, or without the stage, is refused."""
    store = folder_of_two_videos / "mine"
    of.extract(folder_of_two_videos / "films.csv", store, **SETTINGS)

    assert estimate(folder_of_two_videos / "films.csv", store, n_frames=2).clips == 0
    with pytest.raises(StoreError, match="other settings"):
        estimate(folder_of_two_videos / "films.csv", store, n_frames=3)

    shutil.rmtree(folder_of_two_videos / "mine.staging")
    with pytest.raises(ExtractError, match="is sealed"):
        estimate(folder_of_two_videos / "films.csv", store, n_frames=2)


def test_an_estimate_without_a_gpu_encodes_one_clip_at_a_time(folder_of_two_videos, monkeypatch):
    """An estimate tries three clips, of which one is no video: two batches of one clip each are encoded."""
    module = import_module("obygaze_features.extraction.cost_estimate")
    sizes_of_batches = []
    encode_batch = module.encode_batch

    def note_size(backbones, clips):
        sizes_of_batches.append(len(clips))
        return encode_batch(backbones, clips)

    monkeypatch.setattr(module, "encode_batch", note_size)

    cost = estimate(folder_of_two_videos / "films.csv", folder_of_two_videos / "other", n_frames=2)

    assert cost.tried == 3
    assert sizes_of_batches == [1, 1]


def let_trials_last_as_long_as_they_need(monkeypatch):
    """Let an estimate try all clips, however slow the machine is."""
    module = import_module("obygaze_features.extraction.cost_estimate")
    monkeypatch.setattr(module, "LONGEST_TRIAL_S", float("inf"))


def test_an_estimate_of_32_overlapping_windows_is_of_two_passes_and_less_than_32_times_one_window(
    tmp_path, monkeypatch
):
    """A film of 20 s has windows of 2 s, one every half second. A pass reads the film for up to 16 of them.

    So 32 windows are read in two passes, and cost less than 32 windows read one by one. There is no GPU, so
    that the estimate has seconds of cores alone.
    """
    n_frames = 20 * 12
    frames = (np.full((48, 64, 3), 5 * (number % 40), np.uint8) for number in range(n_frames))
    write_video(tmp_path / "film.mp4", frames, rate=12)
    let_trials_last_as_long_as_they_need(monkeypatch)

    def estimate_windows(n_windows):
        clips = []
        for number in range(n_windows):
            start_s = 0.5 * number
            clips.append(of.Clip(f"w{number:02d}", "m", "film.mp4", start_s, start_s + 2))
        return estimate(of.Manifest(tuple(clips), tmp_path), tmp_path / "s", n_frames=2, workers=1)

    of_one_window = estimate_windows(1)
    of_32_windows = estimate_windows(32)

    assert of_one_window.seconds > 0
    assert of_one_window.cpu_s > 0
    assert of_one_window.gpu_s is None
    assert of_32_windows.clips == 32
    assert of_32_windows.files == 1
    assert of_32_windows.tried == 32
    assert of_32_windows.passes == 2
    assert of_32_windows.cpu_s < 32 * of_one_window.cpu_s
