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


@pytest.mark.long
def test_a_call_of_extract_shows_its_progress(by_call):
    store, progress = by_call
    assert progress[-1] == (3, 3)
    assert [clip.status for clip in of.open_store(store).clips] == ["ok", "ok", "failed"]


@pytest.mark.long
def test_a_call_of_extract_gives_the_very_bytes_of_the_command(films, by_call, obygaze, file_digests):
    store, _ = by_call
    process = obygaze(films, *COMMAND, "CC0-1.0")
    assert process.returncode == 3, process.stderr  # a clip has failed
    assert file_digests(store) == file_digests(films / "by-command-1.0.0")


@pytest.mark.long
def test_a_sealed_store_keeps_its_licence(films, obygaze):
    """A sealed version never changes; the message names the option that makes a new version."""
    obygaze(films, *COMMAND, "CC0-1.0")
    with_another_licence = obygaze(films, *COMMAND, "MIT")
    assert "keeps licence" in with_another_licence.stderr
    assert "--store-version 1.0.1" in with_another_licence.stderr


@pytest.fixture
def events_of_extraction(films):
    """Extract with a licence, or without; gives the notes and the steps of progress in their order."""

    def extract(**licence):
        events = []
        of.extract(
            films / "films.csv",
            films / "store",
            n_frames=2,
            workers=1,
            note=lambda text: events.append(("note", text)),
            progress=lambda n_done, n_clips: events.append(("progress", n_done, n_clips)),
            **licence,
        )
        return events

    return extract


@pytest.mark.long
def test_a_licence_is_asked_for_before_the_first_clip_is_done(events_of_extraction):
    """Extraction may take days, and sealing needs a licence: the note comes as the first event."""
    kind, text, *_ = events_of_extraction()[0]
    assert kind == "note"
    assert "--licence SPDX" in text


@pytest.mark.long
def test_a_licence_that_is_given_is_not_asked_for(events_of_extraction):
    assert not [event for event in events_of_extraction(licence="CC0-1.0") if "--licence" in str(event)]


@pytest.mark.long
def test_a_call_limited_to_one_clip_says_how_many_are_left(films):
    """Of three clips, two are left, so nothing is sealed."""
    notes = []
    settings = {**SETTINGS, "progress": False, "note": notes.append}
    assert of.extract(films / "films.csv", films / "store", limit=1, **settings) is None
    assert "2 clips" in notes[-1]


@pytest.mark.long
def test_a_call_after_a_limited_one_makes_the_store_of_one_call(films):
    settings = {**SETTINGS, "progress": False}
    with pytest.warns(UserWarning, match="2 clips left"):
        of.extract(films / "films.csv", films / "in-two", limit=1, **settings)
    in_two_calls = of.extract(films / "films.csv", films / "in-two", **settings)
    in_one_call = of.extract(films / "films.csv", films / "in-one", **settings)

    assert [clip.status for clip in in_two_calls.clips] == ["ok", "ok", "failed"]
    vectors = in_two_calls["descriptors"].pooled()
    assert np.array_equal(vectors, in_one_call["descriptors"].pooled(), equal_nan=True)


@pytest.mark.long
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


@pytest.mark.long
def test_a_store_that_grows_counts_the_clips_of_a_stream(one_clip_more):
    """Two clips of the old store and the new one are of films encoded alike."""
    folder, store, stream = one_clip_more
    grown = of.extract(
        folder / "more.csv", folder / "mine", append=store.path, version="1.1.0", note=str, **SETTINGS
    )
    assert grown.attributes["streams"] == [{**stream, "clips": 3}]


@pytest.mark.long
def test_a_merged_store_counts_the_clips_of_a_stream(one_clip_more):
    """Two clips of one store and one of the other are of films encoded alike."""
    folder, store, stream = one_clip_more
    other = of.extract(folder / "more.csv", folder / "other", note=str, **SETTINGS)
    merged = of.open_store(of.merge([store, other], folder / "both", corpus="films"))
    assert merged.attributes["streams"] == [{**stream, "clips": 3}]


@pytest.mark.long
def test_a_merged_store_of_common_clips_counts_no_streams(one_clip_more):
    """Both have the clip `more`, so that their numbers of clips cannot be added."""
    folder, store, _ = one_clip_more
    other = of.extract(folder / "more.csv", folder / "other", note=str, **SETTINGS)
    merged = of.open_store(of.merge([store, other], folder / "with_more", corpus="films"))
    overlapping = of.open_store(of.merge([merged, other], folder / "twice", corpus="films"))

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


@pytest.fixture
def extracted_films(films):
    of.extract(films / "films.csv", films / "mine", **SETTINGS)
    return films


@pytest.mark.long
def test_an_estimate_of_a_store_that_is_done_counts_no_clips(extracted_films):
    assert estimate(extracted_films / "films.csv", extracted_films / "mine", n_frames=2).clips == 0


@pytest.mark.long
def test_an_estimate_with_other_settings_than_the_stage_is_refused(extracted_films):
    """The stage has two frames of each clip, and the estimate is asked for three."""
    with pytest.raises(StoreError, match="other settings"):
        estimate(extracted_films / "films.csv", extracted_films / "mine", n_frames=3)


@pytest.mark.long
def test_an_estimate_of_a_sealed_store_without_its_stage_is_refused(extracted_films):
    shutil.rmtree(extracted_films / "mine.staging")
    with pytest.raises(ExtractError, match="is sealed"):
        estimate(extracted_films / "films.csv", extracted_films / "mine", n_frames=2)


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


@pytest.fixture(scope="module")
def folder_of_film(tmp_path_factory):
    """The folder of a film of 20 s."""
    folder = tmp_path_factory.mktemp("film")
    frames = (np.full((48, 64, 3), 5 * (t % 40), np.uint8) for t in range(240))
    write_video(folder / "film.mp4", frames, 12)
    return folder


def windows(folder, n):
    """Windows of 2 s of the film, each half a second after the one before."""
    clips = tuple(of.Clip(f"w{i:02d}", "m", "film.mp4", 0.5 * i, 0.5 * i + 2) for i in range(n))
    return of.Manifest(clips, folder)


@pytest.fixture
def estimate_of_windows(folder_of_film, monkeypatch):
    """Estimate the cost of so many windows of the film, by trying them all."""
    module = import_module("obygaze_features.extraction.cost_estimate")
    monkeypatch.setattr(module, "LONGEST_TRIAL_S", float("inf"))
    return lambda n: estimate(windows(folder_of_film, n), folder_of_film / "s", n_frames=2, workers=1)


def test_an_estimate_of_windows_counts_the_passes_over_the_film_that_they_share(estimate_of_windows):
    """A pass reads the film once for up to 16 windows. So 32 windows cost less than 32 times one."""
    cost = estimate_of_windows(32)
    assert (cost.clips, cost.files, cost.tried) == (32, 1, 32)
    assert cost.passes == 2
    assert cost.cpu_s < 32 * estimate_of_windows(1).cpu_s


def test_an_estimate_without_a_gpu_has_seconds_of_cores_alone(estimate_of_windows):
    cost = estimate_of_windows(1)
    assert cost.seconds > 0
    assert cost.cpu_s > 0
    assert cost.gpu_s is None
