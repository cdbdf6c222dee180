"""Feeding of the networks: what the main process costs a clip.

Three pretended networks take the frames of xclip, vivit (the same 32) and xclip-lsmdc (12) and give arrays of
the full-size networks' shapes, at no cost: what is left is the main process, from the workers' results to the
stage. Clips are small, so that decoding costs the workers little; frames that travel have their real size.

    python benchmarks/feed.py [--clips 200] [--repeats 3] [--check]

The main process's time is the least of some runs, with two workers and batches of eight.
"""

import hashlib
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from measure import arguments, in_turn, show, verdict

from obygaze.demo_corpus import write_video
from obygaze_features.backbones import Backbone, BackboneOutput
from obygaze_features.backbones.descriptors import descriptors
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.extraction import Job, run_local
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Stage, staging_path

MEASURES: tuple[tuple[str, dict[str, bool], float | None], ...] = (
    ("without tokens", {}, 3.0),
    ("with ViViT's tokens", {"tokens": True}, 8.0),
    ("without tokens, frames copied for each network as for a card", {"copies": True}, None),
)
HEADERS = ("what", "found", "at most")
MAX_AT_ONCE = 64
TOKENS = BackboneOutput("tokens", (3137, 768), "float16")


class Pretended:
    """Gives the same arrays at every call, at once or as a network on a card: begun, and waited for later.

    Parameters
    ----------
    copies
        Copy the frames into memory that is kept, as is done for a card.
    """

    compute = SimpleNamespace(initial_batch_size=lambda: 1)
    card = "cpu"

    def __init__(self, n_frames: int, outputs: tuple[BackboneOutput, ...], *, copies: bool) -> None:
        rng = np.random.default_rng(0)
        arrays = {output.name: rng.normal(size=(1, *output.shape)).astype(output.dtype) for output in outputs}
        self._arrays = {name: np.repeat(values, MAX_AT_ONCE, axis=0) for name, values in arrays.items()}
        self._kept = np.ones((MAX_AT_ONCE, n_frames, 224, 224, 3), np.uint8) if copies else None
        self._n = 0

    def __call__(self, batch: Any) -> dict[str, Any]:
        """Encode a batch."""
        return self.start(batch).result().arrays

    def start(self, clips: Any) -> "Pretended":
        """Begin to encode clips."""
        self._n = len(clips)
        if self._kept is not None:
            for index, clip in enumerate(clips):
                self._kept[index] = clip
        return self

    def result(self) -> Any:
        """Wait for them."""
        arrays = {name: values[: self._n] for name, values in self._arrays.items()}
        return SimpleNamespace(arrays=arrays, finite=np.ones(self._n, bool), at_once=np.ones(self._n, int))


def networks(*, tokens: bool = False, copies: bool = False) -> tuple[Backbone, ...]:
    """Make the three."""

    def make(name: str, n_frames: int, preset: str, *shapes: BackboneOutput) -> Backbone:
        encode = Pretended(n_frames, shapes, copies=copies)
        geometry = choose_preset(preset, ("clip", preset)).geometry
        return Backbone(name, n_frames, geometry, encode, shapes, descriptors().provenance)

    return (
        make("xclip", 32, "obygaze12", BackboneOutput("frames", (32, 512)), BackboneOutput("pooled", (512,))),
        make(
            "vivit",
            32,
            "obygaze12",
            BackboneOutput("frames", (16, 768)),
            BackboneOutput("pooled", (768,)),
            *([TOKENS] if tokens else []),
        ),
        make(
            "xclip-lsmdc", 12, "clip", BackboneOutput("frames", (12, 512)), BackboneOutput("pooled", (512,))
        ),
    )


def corpus(folder: Path, clips: int) -> Manifest:
    """Write one small clip and name it many times."""
    noise = np.random.default_rng(0).integers(0, 256, (40, 48, 64, 3), dtype=np.uint8)
    write_video(folder / "clip.mp4", iter(noise), rate=24)
    return Manifest(tuple(Clip(f"tt1-{i:05d}", "tt1", "clip.mp4") for i in range(clips)), folder)


def main_process_ms(manifest: Manifest, backbones: tuple[Backbone, ...]) -> float:
    """Measure the processor time of this process a clip, all threads, after the first quarter of them."""
    job = Job(manifest, "feed", backbones)
    began: list[tuple[float, int]] = []
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - no disk in the measure
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        place = staging_path(Path(folder) / "s")
        stage = Stage.open(place, job.planned_clips(), job.groups(), job.corpus_record())
        for report, _ in run_local(job, stage, stage.missing(), workers=2, batch_size=8, timeout_s=600):
            if report.clips >= len(manifest.clips) // 4 and not began:
                began.append((time.process_time(), report.clips))
        assert report.ok == len(manifest.clips)
        ended = time.process_time()  # before the stage is removed
    cpu, before = began[0]
    return 1e3 * (ended - cpu) / (report.ok - before)


def main() -> None:
    """Measure and print a table."""
    options = arguments(__doc__, clips=200, repeats=3, check=False)
    rows: list[tuple[str, float, float | None]] = []
    tokens = np.ones(TOKENS.shape, TOKENS.dtype)
    with tempfile.TemporaryDirectory() as folder:
        manifest = corpus(Path(folder), options.clips)
        for measure, compute, most in MEASURES:
            cost = min(main_process_ms(manifest, networks(**compute)) for _ in range(options.repeats))
            rows.append((f"main process, CPU ms a clip, {measure}", cost, most))
        # The part of the tokens' cost that no code of ours can change: a busy machine shows in it.
        alone = in_turn({"digest": lambda: hashlib.sha256(tokens).digest()}, 20)["digest"]
        rows.append(("SHA-256 of a clip's tokens alone, CPU ms", 1e3 * alone.cpu_s, None))
    show([(measure, value, "" if most is None else most) for measure, value, most in rows], HEADERS)
    verdict([measure for measure, value, most in rows if most and value > most], check=options.check)


if __name__ == "__main__":
    main()
