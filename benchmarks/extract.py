"""Clips into features: our pipeline against the published way, and one pass for three backbones or three.

The published way: decord with one thread, cv2.resize, one clip at a time through the network, torch.save a
clip. Ours: `run_local` with all cores, into a stage and a sealed store. Both run the same networks, tiny
untrained ones in the hub's format (what a real network costs is the same for both, and hides the rest on a
CPU), and read the same clips, which the page cache holds. The runs take turns, so that a busy machine
disturbs all of them; look at the ratios.

    python benchmarks/extract.py [--clips 8] [--seconds 30] [--repeats 3] [--workers N]
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from tabulate import tabulate

from obygaze_features.backbones import Backbone, load_backbone
from obygaze_features.cores import usable_cores
from obygaze_features.extraction import Job, run_local
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Stage, seal, staging_path

NETWORKS = ("xclip", "vivit", "xclip-lsmdc")


@dataclass(frozen=True)
class Cost:
    """What one run took.

    Parameters
    ----------
    wall_s, cpu_s
        Of this process and all that it waited for.
    decoded
        Frames that our decoders decoded; 0 for the published way, which does not say.
    """

    wall_s: float
    cpu_s: float
    decoded: int = 0


def published(manifest: Manifest, backbones: Sequence[Backbone], folder: Path) -> int:
    """Extract as the published features were made, a pass over the clips for each backbone."""
    import cv2
    import decord
    import torch

    for backbone in backbones:
        for clip in manifest:
            path = manifest.video_path(clip)
            assert path is not None
            reader = decord.VideoReader(str(path), num_threads=1)
            n = backbone.n_frames
            frames = reader.get_batch([int(i * len(reader) / n) for i in range(n)]).asnumpy()
            if backbone.name == "descriptors":
                images = [backbone.prepare(frame) for frame in frames]
            else:
                images = [cv2.resize(frame, (224, 224)) for frame in frames]
            features = backbone.encode(np.stack(images)[None])
            tensors = {name: torch.from_numpy(values) for name, values in features.items()}
            torch.save(tensors, folder / f"{backbone.name}-{clip.clip_id}.pth")
    return 0


def ours(manifest: Manifest, backbones: Sequence[Backbone], folder: Path, workers: int) -> int:
    """Extract into a sealed store."""
    job = Job(manifest, "benchmark", tuple(backbones))
    store = folder / "-".join(backbone.name for backbone in backbones)
    stage = Stage.open(staging_path(store), job.planned_clips(), job.groups(), job.corpus_record())
    report = run_local(job, stage, stage.missing(), workers=workers, batch_size=8, timeout_s=600)
    assert report.ok == len(manifest)
    seal(None, store, licence="NOASSERTION")
    return report.n_decoded


def three_passes(manifest: Manifest, backbones: Sequence[Backbone], folder: Path, workers: int) -> int:
    """Extract into a sealed store a backbone, one after the other."""
    return sum(ours(manifest, [backbone], folder, workers) for backbone in backbones)


def measure(run: Callable[[Path], int]) -> Cost:
    """Run once, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = cpu_seconds(), time.perf_counter()
        decoded = run(Path(folder))
        return Cost(time.perf_counter() - wall, cpu_seconds() - cpu, decoded)


def cpu_seconds() -> float:
    """Processor seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def make_clips(folder: Path, clips: int, seconds: float) -> Manifest:
    """Write movie-like clips of 640x272, encoded as films are."""
    import av
    from decode import H264, RATE, scenes

    for i in range(clips):
        with av.open(str(folder / f"{i}.mp4"), "w") as output:
            stream = output.add_stream("libx264", rate=RATE, options=H264)
            stream.width, stream.height, stream.pix_fmt = 640, 272, "yuv420p"
            for picture in scenes(640, 272, int(seconds * RATE), seed=i):
                output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            output.mux(stream.encode(None))
    return Manifest(tuple(Clip(f"clip-{i}", "film", f"{i}.mp4") for i in range(clips)), folder)


def compare(peers: dict[str, Callable[[Path], int]], repeats: int) -> dict[str, Cost]:
    """Run the peers in turn and take the medians."""
    costs: dict[str, list[Cost]] = {name: [] for name in peers}
    for _ in range(repeats):
        for name, run in peers.items():
            costs[name].append(measure(run))
    return {
        name: Cost(median(c.wall_s for c in some), median(c.cpu_s for c in some), some[0].decoded)
        for name, some in costs.items()
    }


def main() -> None:
    """Make clips and networks, measure, print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=usable_cores())
    given = parser.parse_args()
    n, workers = given.clips, given.workers
    with tempfile.TemporaryDirectory() as folder:
        manifest = make_clips(Path(folder), n, given.seconds)
        sys.path.append(str(Path(__file__).parents[1]))
        from tests.tiny_checkpoints import tiny_checkpoint

        weights = {name: str(tiny_checkpoint(name, Path(folder) / name)) for name in NETWORKS}
        networks = [load_backbone(name, weights=weights[name], tokens="none") for name in NETWORKS]
        rows = []
        for backbone in (networks[0], load_backbone("descriptors")):
            cost = compare(
                {
                    "published": lambda to, b=backbone: published(manifest, [b], to),
                    "ours": lambda to, b=backbone: ours(manifest, [b], to, workers),
                },
                given.repeats,
            )
            old, new = cost["published"], cost["ours"]
            name = backbone.name if backbone.name == "descriptors" else f"{backbone.name}, tiny"
            rows.append(
                (name, n / old.wall_s, n / new.wall_s, old.wall_s / new.wall_s, old.cpu_s / new.cpu_s)
            )
        headers = ("backbone", "published, clips/s", "ours, clips/s", "ratio", "ratio of CPU time")
        print(tabulate(rows, headers=headers, floatfmt=".2f", tablefmt="github"), end="\n\n")
        cost = compare(
            {
                "one pass": lambda to: ours(manifest, networks, to, workers),
                "three passes": lambda to: three_passes(manifest, networks, to, workers),
                "published": lambda to: published(manifest, networks, to),
            },
            given.repeats,
        )
        table = [(name, n / c.wall_s, c.cpu_s / n, c.decoded or None) for name, c in cost.items()]
        headers = ("three backbones in", "clips/s", "CPU s a clip", "frames decoded")
        print(tabulate(table, headers=headers, floatfmt=".2f", tablefmt="github"))


if __name__ == "__main__":
    main()
