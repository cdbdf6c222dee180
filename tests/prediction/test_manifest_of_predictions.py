"""A manifest gives predictions their videos; one of another store would give them none, or wrong ones."""

from dataclasses import replace

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.predict_remarks import manifest_remarks

LEVELS = ("HN", "S")


@pytest.fixture(scope="module")
def clips():
    """Six clips of each of four films, HN and S in turn, with their spans and videos."""
    return [
        of.Clip(
            clip_id=f"{movie}-{index}",
            movie=movie,
            video=f"{movie}.mp4",
            start_s=5.0 * index,
            end_s=5.0 * index + 5,
            level=LEVELS[index % 2],
        )
        for movie in ("a", "b", "c", "d")
        for index in range(6)
    ]


@pytest.fixture(scope="module")
def store(clips, tmp_path_factory):
    """A store of these clips."""
    features = np.random.default_rng(0).normal(size=(len(clips), 5)).astype(np.float32)
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    folder = tmp_path_factory.mktemp("stores")
    return of.open_store(seal_arrays(folder / "films", movie_of, {"net": {"pooled": features}}, spans=spans))


@pytest.fixture(scope="module")
def model(store, clips, tmp_path_factory):
    """A model that was trained on the store."""
    folder = tmp_path_factory.mktemp("kept")
    data = om.load_dataset(store, of.Manifest(tuple(clips), folder))
    run = om.evaluate(data, ["linear"], task="hn_s")
    return om.load_model(om.save_models(run, data, ["linear"], folder)["linear"])


@pytest.fixture
def remarks(store, model, tmp_path):
    """What is said of a manifest of some clips that is given for the videos."""

    def remarks_on(clips):
        manifest = of.Manifest(tuple(clips), tmp_path)
        return manifest_remarks(om.predict(model, store, manifest), [store], manifest)

    return remarks_on


def test_nothing_is_said_of_the_manifest_of_the_store(remarks, clips):
    """It has the video of every clip."""
    assert remarks(clips) == []


def test_clips_without_a_video_are_counted(remarks, clips):
    """Their column video is empty: of clips that the manifest lacks, or that have other ids there."""
    without_film_a = clips[6:]
    renamed = [replace(clip, clip_id=f"new-{clip.clip_id}") for clip in clips]

    assert remarks(without_film_a) == ["6 clips have no video in the manifest, of 24 predicted"]
    assert remarks(renamed) == ["24 clips have no video in the manifest, of 24 predicted"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"start_s": 500.0, "end_s": 505.0}, "other times"), ({"movie": "e"}, "another film")],
    ids=["span", "film"],
)
def test_the_same_ids_of_other_clips_are_doubted(remarks, clips, changes, what):
    """Ids such as 001 are of any corpus: the video would be that of another clip."""
    changed = [replace(clips[0], **changes), *clips[1:]]

    (remark,) = remarks(changed)

    assert remark.startswith(f"warning: 1 clip has {what} in the manifest than in the store, such as a-0")
