"""What survive.py kills: every piece of work on stores, its inputs, and what must come out of it."""

import importlib.util
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np

from obygaze_features.demo import write_corpus
from obygaze_features.store.testing import seal_arrays

COPIED = {"seal": "toy.staging"}
"""What a trial changes, and so needs a copy of."""
N_CLIPS = 48
COLUMNS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"


@dataclass(frozen=True)
class Work:
    """A command line that may be killed at any time.

    Attributes
    ----------
    words
        The command line, for a folder of inputs and the folder of a trial.
    result
        What it makes, in the folder of a trial; or a URL, in which {} stands for the trial.
    before
        Command lines that are run undisturbed before.
    """

    words: Callable[[Path, Path], list[object]]
    result: str
    before: tuple[Callable[[Path, Path], list[object]], ...] = ()


def works(site: str, bucket: str, extract: list[object]) -> dict[str, Work]:
    """Name every piece of work; `site` serves the inputs over HTTP, `bucket` is S3."""
    licence = ("--licence", "CC0-1.0")

    def pull(*more: object, of: str = "toy-1.0.0") -> Callable[[Path, Path], list[object]]:
        return lambda _, out: ["store", "pull", f"{site}/{of}", out / "out-1.0.0", *more]

    def s3(inputs: Path, out: Path) -> list[object]:
        return ["store", "push", inputs / "toy-1.0.0", f"{bucket}/{out.name}/toy-1.0.0"]

    return {
        "extract": Work(lambda _, out: [extract[0], extract[1], out / "out", *extract[2:]], "out-1.0.0"),
        "seal": Work(lambda _, out: ["store", "seal", out / "toy", *licence], "toy-1.0.0"),
        "pack": Work(
            lambda at, out: ["store", "pack", at / "toy-1.0.0", "--out", out / "out.zip"], "out.zip"
        ),
        "unpack": Work(
            lambda at, out: ["store", "unpack", at / "toy-1.0.0.zip", "--out", out / "out-1.0.0"], "out-1.0.0"
        ),
        "pull": Work(pull(), "out-1.0.0"),
        "pull-zip": Work(pull(of="toy-1.0.0.zip"), "out-1.0.0"),
        "pull-more": Work(pull(), "out-1.0.0", before=(pull("--arrays", "pooled"),)),
        "merge": Work(
            lambda at, out: ["store", "merge", at / "a", at / "b", "--out", out / "out"], "out-1.0.0"
        ),
        "import": Work(
            lambda at, out: [
                *("store", "import", at / "clips.csv", at / "npy", out / "out", "--from", "npy"),
                *("--backbone", "toy", *licence),
            ],
            "out-1.0.0",
        ),
        "export": Work(
            lambda at, out: ["store", "export", at / "toy-1.0.0", out / "out.h5", "--to", "hdf5"], "out.h5"
        ),
        "push": Work(lambda at, out: ["store", "push", at / "toy-1.0.0", out / "out-1.0.0"], "out-1.0.0"),
        "push-s3": Work(s3, f"{bucket}/{{}}/toy-1.0.0"),
    }


def make_inputs(folder: Path, main: Callable[..., None]) -> None:
    """Make a stage and its store with all three kinds of arrays, its halves, its zip, and .npy files."""
    rng = np.random.default_rng(1)
    arrays = {
        "pooled": rng.standard_normal((N_CLIPS, 16)).astype(np.float32),
        "frames": rng.standard_normal((N_CLIPS, 2, 16)).astype(np.float16),
        "tokens": rng.standard_normal((N_CLIPS, 8, 16)).astype(np.float16),
    }
    ids = [f"clip-{i:04d}" for i in range(N_CLIPS)]
    for name, rows in {"toy": slice(None), "a": slice(0, N_CLIPS, 2), "b": slice(1, N_CLIPS, 2)}.items():
        some = {"toy": {array: values[rows] for array, values in arrays.items()}}
        failed = {clip: "no such file" for clip in ids[rows] if clip == "clip-0007"}
        seal_arrays(folder / name, dict.fromkeys(ids[rows], "m"), some, failed=failed)
    main(["store", "pack", str(folder / "toy-1.0.0")])
    (folder / "npy").mkdir()
    for clip, row in zip(ids, arrays["pooled"], strict=True):
        np.save(folder / "npy" / f"{clip}.npy", row)
    table = [COLUMNS, *(f"{clip},m,{clip}.mp4,,,,," for clip in ids)]
    (folder / "clips.csv").write_text("\n".join(table) + "\n", encoding="utf-8")


def make_corpus(folder: Path, n_clips: int, main: Callable[..., None]) -> None:
    """Draw films and write a manifest of some of their clips."""
    labels = write_corpus(folder, 1)
    whole = folder / "all.csv"
    words = ["manifest", "import", "folder", folder / "films", "--spans", labels, "--out", whole]
    main([str(word) for word in words])
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "few.csv").write_text("".join(lines[:1] + lines[1::7][:n_clips]), encoding="utf-8")


def serve(inputs: Path, pipe: Connection, *, s3: bool) -> None:
    """Serve the inputs over HTTP and an empty bucket, until something comes through the pipe."""
    path = Path(__file__).parents[1] / "tests" / "store" / "serving.py"  # the tests' server answers ranges
    spec = importlib.util.spec_from_file_location("serving", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["serving"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.serving(inputs) as site:
        places = {"site": site.url, "s3": ""}
        if s3:
            from moto.server import ThreadedMotoServer

            logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for every request
            server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
            server.start()
            places["s3"] = "http://{}:{}".format(*server.get_host_and_port())
            put = Request(f"{places['s3']}/bucket", headers={"Host": "s3.amazonaws.com"}, method="PUT")  # noqa: S310 - our own server
            urlopen(put).close()  # noqa: S310 - our own server
        pipe.send(places)
        pipe.recv()
