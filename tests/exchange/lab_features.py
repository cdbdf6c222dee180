"""Features of the clips a, b and c as a lab has them, and their import as those of the backbone `lab`."""

import numpy as np

from obygaze_features.exchange.import_features import Declared, import_features
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import PlannedClip, open_store, verify
from tests.command import obygaze

from ..store.toy_stores import CORPUS

N_FEATURES = 4
CLIPS = [PlannedClip(clip, "m") for clip in ("c", "a", "b")]


def values_of(clip, shape=(N_FEATURES,), dtype=np.float32):
    """Draw the features of a clip: the same numbers at every call, others for each clip."""
    return np.random.default_rng([*clip.encode()]).standard_normal(shape).astype(dtype)


def array_of(item):
    """Load the one array of an item, which has no name in its file."""
    return item.load()[""]


def import_store(
    folder,
    items,
    array="pooled",
    known=None,
    dtype=None,
    clips=CLIPS,
    per_second=None,
    times=None,
    **settings,
):
    """Import the items of clips into the store `films` of a folder; return it."""
    declared = Declared("lab", array, known or {}, dtype, per_second=per_second, times=times)
    settings = {"corpus": CORPUS, "licence": "NOASSERTION"} | settings
    return open_store(import_features(items, clips, declared, folder / "films", **settings))


def write_films(folder, clips):
    """Write the manifest films.csv of clips of one film, of these ids; return the folder."""
    write_manifest(
        Manifest([Clip(clip, "tt1", f"{clip}.mp4") for clip in clips], folder), folder / "films.csv"
    )
    return folder


def import_as_lab(folder, source, *options):
    """Import a file or folder for the clips of films.csv into the store `lab`; gives the exit code."""
    places = (folder / "films.csv", folder / source, folder / "lab")
    return obygaze("store", "import", *places, "--backbone", "lab", "--licence", "MIT", *options)


def import_frames(folder, source, kind, *options):
    """Import a file or folder with --from KIND as frames of the store `lab`; gives the exit code."""
    return import_as_lab(folder, source, "--from", kind, "--array", "frames", *options)


def check_frames(folder, times, truth):
    """Check that the store `lab` is whole, and clips have these frames at these times; return its group."""
    store = open_store(folder / "lab")
    group = store["lab"]
    assert group.row_size.tolist() == [len(truth[clip]) for clip in group.clip_ids]
    for clip, values in truth.items():
        assert group.read(clip, "frames").tobytes() == values.tobytes()
        assert np.array_equal(group.read(clip, "time_s"), times[clip], equal_nan=True)
    assert store.attributes["spec_version"] == "1.3"
    report = verify(store, "full")
    assert report.ok, report.problems
    return group
