"""Import features that another tool saved as one .npy file a clip.

The command is `obygaze store import`; this is what it does, in Python.
Run it with: python examples/features_from_another_tool.py
"""

import tempfile
from pathlib import Path

import numpy as np
from toy_films import write_toy_films

import obygaze_features as of
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_features import Declared, import_features
from obygaze_features.exchange.import_files import array_files
from obygaze_features.exchange.import_items import match_to_clips
from obygaze_features.store import PlannedClip


def main(folder: Path) -> None:
    """Save vectors as another tool would, and import them."""
    manifest = of.read_manifest(write_toy_films(folder)[0])
    theirs = folder / "theirs"
    theirs.mkdir()
    rng = np.random.default_rng(1)
    for clip in manifest.clips[:-2]:  # the tool gave nothing for the last two clips
        np.save(theirs / f"{clip.clip_id}.npy", rng.normal(size=16).astype(np.float32))
    np.save(theirs / "trailer.npy", np.zeros(16, dtype=np.float32))

    matched, unknown = match_to_clips(
        array_files(theirs, ArrayChoice()), {clip.clip_id: clip.clip_id for clip in manifest}
    )
    print("of no clip in the manifest:", *unknown)
    print("clips without features:", *(clip_id for clip_id in manifest.by_id if clip_id not in matched))
    path = import_features(
        matched,
        [PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in manifest],
        Declared("theirs", "pooled", {"citation": "Another Tool 2.1"}),
        folder / "stores" / "theirs",
        corpus={"name": "films", "manifest_sha256": manifest.digest()},
        licence="CC-BY-4.0",
        allow_missing=True,
    )
    store = of.open_store(path)
    print(store["theirs"], "verified:", of.verify(store, depth="full").ok)

    # One file, whole, for a tool that reads no Zarr.
    frame = store["theirs"].to_frame(manifest)
    frame.to_csv(folder / "theirs.csv", index=False)
    print(frame.iloc[:3, :5], frame.attrs["left_out"], sep="\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
