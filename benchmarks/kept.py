"""Frames that are kept (`extract --keep-frames`): what reading them costs, and what features lose by them.

Cost: what a decode worker does for 32 frames of a clip of 60 s and one network, CPU milliseconds, the least
of runs in turn: exact frames; decoding and keeping them; reading those that are kept (the digest of the
video, the file of frames, its JPEGs, the network's resizing, which all three do).

Features: EfficientNet-Lite0 on real windows of 2 s, from exact and from kept frames: the cosine of a window's
vectors, and the AUC, videos left out in turn, of a linear probe that tells windows that move more than the
median one, by `descriptors` of the exact frames.

    python benchmarks/kept.py [--videos FOLDER] [--seconds 60] [--repeats 5] [--check]

With --check, exit code 1 if reading takes over a tenth of decoding, or the median cosine is below .97.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from decode_clips import VIDEOS, make
from measure import arguments, in_turn, show, verdict
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import VideoError
from obygaze_features.extraction import Job
from obygaze_features.extraction.decode_clips import (
    DecodedClip,
    decode_clips,
    decode_with_av,
    group_into_passes,
)
from obygaze_features.extraction.encode import encode_batch
from obygaze_features.extraction.keep_frames import with_frame_cache
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.video import index as video_index
from obygaze_features.video import probe

FRAMES = 32
WINDOW_S = 2.0
HOP_S = 0.5
OF_WINDOW = 8
CLIPS = ("h264.mp4", "h264-1280x544.mp4")
NETWORK = "efficientnet-lite0"
MAX_OF_DECODING = 0.1
MIN_COSINE = 0.97


def worked(job: Job) -> list[DecodedClip]:
    """Do what a decode worker does for all clips of a job, cold."""
    video_index._tables.clear()
    ids = [clip.clip_id for clip in job.manifest]
    every = [
        decode_clips(tasks, with_frame_cache(decode_with_av))
        for tasks in group_into_passes(job.tasks(ids), workers=1)
    ]
    return [clip for tasks in every for _, clip in tasks]


def costs(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """Measure the three ways on clips of two sizes."""
    rows = []
    for number, name in enumerate(CLIPS):
        manifest = Manifest((Clip("tt1-0", "tt1", name),), folder)
        network = (load_backbone(NETWORK, FRAMES),)
        store = folder / f"kept-{number}"
        ways = {"exact": None, "kept anew": folder / "anew", "read": store}
        jobs = {way: Job(manifest, "kept", network, keep_frames=where) for way, where in ways.items()}
        worked(jobs["read"])
        works: dict[str, Callable[[], object]] = {
            way: lambda job=job, way=way: (
                forget(folder / "anew") if way == "kept anew" else None,
                worked(job),
            )
            for way, job in jobs.items()
        }
        took = in_turn(works, repeats, least=True)
        (file,) = (path for path in store.rglob("*") if path.is_file())
        row = {"clip": name, "kB a frame": file.stat().st_size / 1e3 / FRAMES}
        row |= {f"{way}, CPU ms": 1e3 * took[way].cpu_s for way in works}
        rows.append(row | {"read / exact": took["read"].cpu_s / took["exact"].cpu_s})
    return rows


def forget(folder: Path) -> None:
    """Remove what was kept."""
    for file in folder.rglob("*.frames"):
        file.unlink()


def windows(videos: Path) -> Manifest:
    """Cut the videos into windows."""
    clips = []
    for path in sorted(videos.iterdir()):
        try:
            length_s = probe(path).duration_s
        except VideoError:
            continue
        starts = np.arange(0, length_s - WINDOW_S, HOP_S).tolist()
        clips += [Clip(f"{path.stem}-{s:05.1f}", path.stem, path.name, s, s + WINDOW_S) for s in starts]
    return Manifest(tuple(clips), videos)


def vectors(manifest: Manifest, name: str, windows: Path | None) -> dict[str, NDArray[np.float64]]:
    """Return the pooled vector of each window that could be read."""
    job = Job(manifest, "kept", (load_backbone(name, OF_WINDOW),), keep_frames=windows)
    results = [result for clip in worked(job) for result in encode_batch(job.backbones, [clip])]
    return {
        result.clip_id: np.asarray(result.groups[name].arrays["pooled"], np.float64)
        for result in results
        if result.status != "failed"
    }


def auc(X: NDArray[np.float64], y: NDArray[np.bool_], videos: NDArray[np.str_]) -> float:
    """Score every window by a probe trained on the other videos; the AUC within videos, the mean of them."""
    values = []
    for video in np.unique(videos):
        out = videos == video
        if 0 < y[out].sum() < out.sum():
            probe_ = make_pipeline(StandardScaler(), LogisticRegression(C=1e-3, max_iter=2_000))
            probe_.fit(X[~out], y[~out])
            values.append(roc_auc_score(y[out], probe_.decision_function(X[out])))
    return float(np.mean(values))


def features(videos: Path, folder: Path) -> tuple[list[dict[str, Any]], float]:
    """Compare the features; return a table, and the median cosine."""
    manifest = windows(videos)
    exact = vectors(manifest, NETWORK, None)
    from_kept = vectors(manifest, NETWORK, (folder / "windows"))
    measured = vectors(manifest, "descriptors", None)
    names = load_backbone("descriptors", OF_WINDOW).provenance["architecture"]["features"]
    ids = sorted(exact)
    moves = np.array([measured[clip_id][names.index("motion")] for clip_id in ids])
    movie_of = np.array([clip_id.rpartition("-")[0] for clip_id in ids])
    y = np.concatenate(
        [moves[movie_of == video] > np.median(moves[movie_of == video]) for video in np.unique(movie_of)]
    )
    a = np.array([exact[clip_id] for clip_id in ids])
    b = np.array([from_kept[clip_id] for clip_id in ids])
    cosine = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    row = {"windows": len(ids), "median cosine": f"{np.median(cosine):.4f}", "least": f"{cosine.min():.4f}"}
    row |= {f"AUC, {name}": f"{auc(X, y, movie_of):.3f}" for name, X in (("exact", a), ("kept", b))}
    return [row], float(np.median(cosine))


def main() -> None:
    """Measure and print two tables."""
    options = arguments(__doc__, videos=VIDEOS, seconds=60, repeats=5, check=False)
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), CLIPS, options.videos, options.seconds)
        rows = costs(Path(name), options.repeats)
        show(rows, title=f"{FRAMES} frames of a clip of {options.seconds} s")
        table, cosine = features(options.videos, Path(name))
        show(table, title=f"{NETWORK} on windows of {WINDOW_S:g} s")
    wrong = [
        f"{row['clip']}: reading is {row['read / exact']:.3f} of decoding"
        for row in rows
        if row["read / exact"] > MAX_OF_DECODING
    ]
    wrong += [f"the median cosine is {cosine:.4f}"] if cosine < MIN_COSINE else []
    verdict(wrong, check=options.check)


if __name__ == "__main__":
    main()
