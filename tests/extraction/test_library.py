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


@pytest.fixture
def films(tmp_path):
    """Two videos and a file that is none."""
    for i in range(2):
        frames = (np.full((48, 64, 3), 20 * i + t, np.uint8) for t in range(12))
        write_video(tmp_path / f"{i}.mp4", frames, 24)
    (tmp_path / "2.mp4").write_bytes(b"no video")
    clips = tuple(of.Clip(f"tt1-{i}", "tt1", f"{i}.mp4") for i in range(3))
    of.write_manifest(of.Manifest(clips, tmp_path), tmp_path / "films.csv")
    return tmp_path


def test_it_gives_the_very_bytes_of_the_command(films, obygaze, tree):
    told, how = [], {"n_frames": 2, "workers": 1, "licence": "CC0-1.0"}
    store = of.extract(films / "films.csv", films / "mine", progress=lambda *at: told.append(at), **how)
    assert told[-1] == (3, 3)
    assert [clip.status for clip in store.clips] == ["ok", "ok", "failed"]
    command = ("extract", "films.csv", "theirs", "--n", 2, "--workers", 1, "--licence")
    said = obygaze(films, *command, "CC0-1.0")
    assert said.returncode == 3, said.stderr
    assert tree(films / "mine-1.0.0") == tree(films / "theirs-1.0.0")
    said = obygaze(films, *command, "MIT")
    assert "keeps licence" in said.stderr
    assert "--store-version 1.0.1" in said.stderr


def test_a_licence_is_asked_for_before_anything_is_read(films):
    told = []
    how = {"n_frames": 2, "workers": 1, "note": told.append, "progress": lambda *at: told.append(at)}
    of.extract(films / "films.csv", films / "none", **how)
    assert "--licence SPDX" in told[0]
    told.clear()
    of.extract(films / "films.csv", films / "stated", licence="CC0-1.0", **how)
    assert not [note for note in told if "--licence" in str(note)]


def test_a_limit_leaves_clips_for_the_next_call_which_gives_the_store(films):
    notes = []
    settings = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0", "progress": False, "note": notes.append}
    assert of.extract(films / "films.csv", films / "few", limit=1, **settings) is None
    assert "2 clips" in notes[-1]
    store = of.extract(films / "films.csv", films / "few", **settings)
    assert [clip.status for clip in store.clips] == ["ok", "ok", "failed"]
    again = of.extract(films / "films.csv", films / "whole", limit=3, **settings)
    assert np.array_equal(again["descriptors"].pooled(), store["descriptors"].pooled(), equal_nan=True)


def test_a_store_lists_what_its_files_state_of_their_pictures_with_the_number_of_clips(films):
    """Part of no clip's row: two films of one kind are one entry, and a file that was not read is none."""
    store = of.extract(films / "films.csv", films / "mine", n_frames=2, workers=1, licence="CC0-1.0")
    (stream,) = store.attributes["streams"]
    assert (stream["codec"], stream["pixels"], stream["clips"]) == ("h264", "yuv420p", 2)
    assert {name: value for name, value in stream.items() if name != "clips"} == of.read_frames(
        films / "0.mp4", of.uniform(1)
    ).stream
    more = of.Manifest((of.Clip("more", "tt9", "0.mp4"),), films)
    of.write_manifest(more, films / "more.csv")
    how = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0", "note": str}
    grown = of.extract(films / "more.csv", films / "mine", append=store.path, version="1.1.0", **how)
    assert grown.attributes["streams"] == [{**stream, "clips": 3}]
    other = of.extract(films / "more.csv", films / "other", **how)
    merged = of.open_store(of.merge([store, other], films / "both", corpus="films"))
    assert merged.attributes["streams"] == grown.attributes["streams"]
    assert (
        "streams" not in of.open_store(of.merge([grown, other], films / "twice", corpus="films")).attributes
    )


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


def test_a_script_without_a_guard_runs_once_and_keeps_what_its_workers_would_need(films):
    (films / "script.py").write_text(SCRIPT, encoding="utf-8")
    done = python("script.py", cwd=films)
    once, refusal, statuses = done.stdout.splitlines()
    assert (once, statuses) == ("once", "['ok', 'ok', 'failed']")
    assert refusal.startswith("backbone 'mine' cannot be sent to worker processes: 'prepare' is defined in")
    assert "Traceback" not in done.stderr
    assert not list(films.glob("refused*"))


def test_an_estimate_writes_nothing_and_counts_what_is_left(films):
    found = estimate(films / "films.csv", films / "mine", n_frames=2)
    assert (found.clips, found.files, found.absent) == (3, 3, 0)
    assert not list(films.glob("mine*"))
    of.extract(films / "films.csv", films / "mine", n_frames=2, workers=1, licence="CC0-1.0")
    assert estimate(films / "films.csv", films / "mine", n_frames=2).clips == 0
    with pytest.raises(StoreError, match="other settings"):
        estimate(films / "films.csv", films / "mine", n_frames=3)
    shutil.rmtree(films / "mine.staging")
    with pytest.raises(ExtractError, match="is sealed"):
        estimate(films / "films.csv", films / "mine", n_frames=2)


def test_an_estimate_encodes_one_clip_where_no_card_takes_several(films, monkeypatch):
    module = import_module("obygaze_features.extraction.cost_estimate")
    n_clips = []
    encode = module.encode_batch
    monkeypatch.setattr(
        module, "encode_batch", lambda of, clips: n_clips.append(len(clips)) or encode(of, clips)
    )
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
    clips = tuple(of.Clip(f"w{i:02d}", "m", "film.mp4", 0.5 * i, 0.5 * i + 2) for i in range(n))
    return of.Manifest(clips, folder)


def test_windows_of_a_film_are_counted_by_the_passes_they_share(film, monkeypatch):
    module = import_module(
        "obygaze_features.extraction.cost_estimate"
    )  # the package has a function of this name
    monkeypatch.setattr(module, "LONGEST_S", float("inf"))
    found = estimate(windows(film, 32), film / "s", n_frames=2, workers=1)
    assert (found.clips, found.files, found.passes, found.tried) == (32, 1, 2, 32)
    assert found.seconds > 0
    assert found.cpu_s > 0
    assert found.gpu_s is None
    alone = 32 * estimate(windows(film, 1), film / "s", n_frames=2, workers=1).cpu_s
    assert found.cpu_s < alone
