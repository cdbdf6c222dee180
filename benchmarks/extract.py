"""Clips into features: our pipeline against the published way, and one pass for three backbones or three.

The published way: decord with one thread, cv2.resize, one clip at a time through the network, torch.save a
clip. Ours: `run_local` with two workers, into a stage and a sealed store. Both run the same networks, tiny
untrained ones in the hub's format (what a real network costs is the same for both, and hides the rest on a
CPU), and read the same clips (copies of H.264 640x272 as in decode.py), which the page cache holds. The runs
take turns, so that a busy machine disturbs all of them; look at the ratios.

    python benchmarks/extract.py [--clips 8] [--seconds 60] [--repeats 3] [--workers 2] [--videos FOLDER]
"""

import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from decode_clips import VIDEOS, make
from measure import arguments, in_turn, show

from obygaze_features.backbones import Backbone, load_backbone
from obygaze_features.extraction import Job, run_local
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Stage, seal, staging_path

sys.path.append(str(Path(__file__).parents[1]))
from tests.tiny_checkpoints import tiny_checkpoint

NETWORKS = ("xclip", "vivit", "xclip-lsmdc")


def published(manifest: Manifest, backbones: Sequence[Backbone]) -> None:
    """Extract as the published features were made, a pass over the clips for each backbone."""
    import cv2
    import decord
    import torch

    with tempfile.TemporaryDirectory() as folder:
        for backbone in backbones:
            for clip in manifest:
                reader = decord.VideoReader(str(manifest.video_path(clip)), num_threads=1)
                n = backbone.n_frames
                frames = reader.get_batch([int(i * len(reader) / n) for i in range(n)]).asnumpy()
                if backbone.name == "descriptors":
                    images = [backbone.prepare(frame) for frame in frames]
                else:
                    images = [cv2.resize(frame, (224, 224)) for frame in frames]
                features = backbone.encode(np.stack(images)[None])
                tensors = {name: torch.from_numpy(values) for name, values in features.items()}
                torch.save(tensors, f"{folder}/{backbone.name}-{clip.clip_id}.pth")


def ours(manifest: Manifest, backbones: Sequence[Backbone], workers: int) -> None:
    """Extract into a sealed store, in one pass."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(manifest, "benchmark", tuple(backbones))
        store = Path(folder, "s")
        stage = Stage.open(staging_path(store), job.planned_clips(), job.groups(), job.corpus_record())
        run = run_local(job, stage, stage.missing(), workers=workers, batch_size=8, timeout_s=600)
        report = deque(run, maxlen=1).pop()[0]
        assert report.ok == len(manifest)
        seal(stage_path=None, destination=store, licence="NOASSERTION")


def main() -> None:
    """Make clips and networks, measure, print two tables."""
    options = arguments(__doc__, clips=8, seconds=60, repeats=3, workers=2, videos=VIDEOS)
    n = options.clips
    workers = options.workers
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, ["h264.mp4"], options.videos, options.seconds)
        for number in range(n):
            shutil.copy(folder / "h264.mp4", folder / f"{number}.mp4")
        manifest = Manifest(tuple(Clip(f"clip-{i}", "film", f"{i}.mp4") for i in range(n)), folder)
        networks = [
            load_backbone(name, weights=str(tiny_checkpoint(name, folder / name)), tokens="none")
            for name in NETWORKS
        ]
        rows = []
        for backbone in (networks[0], load_backbone("descriptors")):
            taken = in_turn(
                {
                    "published": lambda b=backbone: published(manifest, [b]),
                    "ours": lambda b=backbone: ours(manifest, [b], workers),
                },
                options.repeats,
            )
            old = taken["published"]
            new = taken["ours"]
            rows.append(
                {"backbone": backbone.name, "published, clips/s": n / old.wall_s}
                | {"ours, clips/s": n / new.wall_s, "ratio": old.wall_s / new.wall_s}
                | {"ratio of CPU time": old.cpu_s / new.cpu_s}
            )
        show(rows)
        taken = in_turn(
            {
                "one pass": lambda: ours(manifest, networks, workers),
                "three passes": lambda: [ours(manifest, [network], workers) for network in networks],
                "published": lambda: published(manifest, networks),
            },
            options.repeats,
        )
        show(
            {"three backbones in": way, "clips/s": n / took.wall_s, "CPU s a clip": took.cpu_s / n}
            for way, took in taken.items()
        )


if __name__ == "__main__":
    main()
