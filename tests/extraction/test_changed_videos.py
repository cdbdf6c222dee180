"""A video that was replaced after its clips were done: the clips keep what they have, and that is said."""

import numpy as np
import pytest

import obygaze_features as of
from obygaze.demo_corpus import write_video

SETTINGS = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0"}


def write_film(path, n_frames):
    """Write a film whose length, and so the size of its file, depends on `n_frames`."""
    rng = np.random.default_rng(n_frames)
    write_video(path, (rng.integers(0, 255, (48, 64, 3), np.uint8) for _ in range(n_frames)), rate=24)


def write_clips(folder, name, movies):
    """Write a manifest of two clips of each film, and return its path."""
    clips = [
        of.Clip(f"{movie}-{index}", movie, f"{movie}.mp4", index * 0.25, index * 0.25 + 0.25)
        for movie in movies
        for index in range(2)
    ]
    of.write_manifest(of.Manifest(tuple(clips), folder), folder / name)
    return folder / name


@pytest.fixture
def films(tmp_path):
    """A folder with the films a and b."""
    write_film(tmp_path / "a.mp4", n_frames=12)
    write_film(tmp_path / "b.mp4", n_frames=12)
    return tmp_path


@pytest.fixture
def notes():
    """What the user is told."""
    return []


@pytest.mark.long
def test_a_run_that_goes_on_after_a_video_was_replaced_says_which_clips_keep_the_old_one(films, notes):
    """One clip of film a is done when another file takes the place of its video; the other is done then."""
    manifest = write_clips(films, "films.csv", ["a"])
    of.extract(manifest, films / "store", limit=1, note=notes.append, **SETTINGS)
    bytes_before = (films / "a.mp4").stat().st_size
    write_film(films / "a.mp4", n_frames=20)
    notes.clear()

    of.extract(manifest, films / "store", note=notes.append, **SETTINGS)

    (note,) = notes
    assert note.startswith("1 clip keeps the features of an earlier file, such as a-0: ")
    assert f"a.mp4 has {(films / 'a.mp4').stat().st_size:,} bytes, and had {bytes_before:,}" in note


@pytest.mark.long
def test_growing_a_store_says_which_of_its_clips_have_another_video_now(films, notes):
    """Film b is added to a store of film a, whose file was replaced since: its clips are not done again."""
    store = of.extract(write_clips(films, "a.csv", ["a"]), films / "store", **SETTINGS)
    write_film(films / "a.mp4", n_frames=20)
    both = write_clips(films, "both.csv", ["a", "b"])

    grown = of.extract(
        both, films / "store", append=store.path, version="1.1.0", note=notes.append, **SETTINGS
    )

    assert len(grown.clips) == 4
    assert any(note.startswith("2 clips keep the features of an earlier file") for note in notes)


@pytest.mark.long
def test_clips_whose_video_is_unchanged_or_absent_are_not_noted_as_features_of_an_earlier_file(films, notes):
    """Film b is added to a store of film a, whose video is not there any more.

    That is usual: a store is often grown on a machine without the old videos, by a manifest that still names
    them. The same command is run once more, and finds the video of b as it was. Neither run may note that
    clips keep the features of an earlier file, as if their videos had been replaced.
    """
    store = of.extract(write_clips(films, "a.csv", ["a"]), films / "store", **SETTINGS)
    (films / "a.mp4").unlink()
    both = write_clips(films, "both.csv", ["a", "b"])

    def grow():
        of.extract(both, films / "store", append=store.path, version="1.1.0", note=notes.append, **SETTINGS)

    grow()
    grow()

    assert not [note for note in notes if "earlier file" in note]
