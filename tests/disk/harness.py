"""Start runner.py under interpose.c, ask it to do work, and compare what is then on the disk."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from obygaze_features.io import is_temporary

HERE = Path(__file__).parent
Tree = dict[str, bytes]


def compiled(folder: Path) -> Path:
    """Compile interpose.c."""
    library = folder / "interpose.so"
    words = ["cc", "-O1", "-shared", "-fPIC", "-Wall", "-o", library, HERE / "interpose.c", "-lpthread"]
    subprocess.run(list(map(str, words)), check=True)
    return library


class Runner:
    """The process that does work in forks of itself."""

    def __init__(self, library: Path) -> None:
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "runner.py")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, root: Path, **asked: Any) -> dict[str, Any]:
        """Have work done below a folder."""
        self._process.stdin.write(json.dumps({"root": str(root), **asked}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the runner is gone"
        return json.loads(answer)

    def close(self) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True)
class Work:
    """Something that writes to the disk.

    Attributes
    ----------
    asked
        What the runner gets, for a folder of inputs and the folder of a trial.
    result
        The file or folder that is to be there in the end.
    copied
        Inputs that it changes: name there -> name in the folder of a trial.
    old
        Files that it replaces: path -> bytes.
    exits
        Whether the end of the process is part of the work.
    talks
        Whether notes may come before the line of an error.
    grows
        Whether parts of the result are there before it is whole.
    by_file
        Whether the result is a folder of which some files are replaced or added, each at once.
    """

    asked: Callable[[Path, Path], dict[str, Any]]
    result: str
    copied: Mapping[str, str] = field(default_factory=dict)
    old: Mapping[str, bytes] = field(default_factory=dict)
    exits: bool = False
    talks: bool = False
    grows: bool = False
    by_file: bool = False


def _command(text: str) -> Callable[[Path, Path], dict[str, Any]]:
    """Make a command; {at} are the inputs, {out} is the folder of the trial."""
    return lambda at, out: {"words": [word.format(at=at, out=out) for word in text.split()]}


def _call(name: str) -> Callable[[Path, Path], dict[str, Any]]:
    return lambda *_: {"call": name}


LICENCE = "--licence CC0-1.0"
CUT = "manifest import film {at}/d.mp4 --window 2 --hop 2 --force --out {out}/d.csv"
EVALUATE = (
    "evaluate {at}/labelled.csv {at}/abc-1.0.0 --task en_s --model linear --save linear --out {out}/run"
)
SCORE = "film score {at}/mlp.model {at}/d-1.0.0 --shots {at}/d.shots.csv --out {out}/scored"
RUN = "film run {at}/d.mp4 --model {at}/linear.model --window 2 --hop 2 --workers 1 --out {out}/o"


def _works_of(store: str, features: str, end: str = "") -> dict[str, Work]:
    """List the commands on a store, its stage, zip and partial copy, and on the features of an import.

    Parameters
    ----------
    store
        Name of the store in the folder of inputs.
    features
        Folder there of the features, and what they are.
    end
        End of the names of the works.
    """
    pull = f"store pull {{at}}/{store}-1.0.0 {{out}}/out-1.0.0"
    taken = f"store import {{at}}/clips.csv {{at}}/{features} --from npy --backbone toy {LICENCE}"
    export = f"store export {{at}}/{store}-1.0.0 {{out}}/o.h5 --to hdf5"
    unpack = f"store unpack {{at}}/{store}-1.0.0.zip --out {{out}}/out-1.0.0"
    merge = f"store merge {{at}}/{store}-a {{at}}/{store}-b --out {{out}}/out"
    staged = {f"{store}.staging": "toy.staging"}
    works = {
        "seal": Work(_command(f"store seal {{out}}/toy {LICENCE}"), "toy-1.0.0", staged),
        "pack": Work(_command(f"store pack {{at}}/{store}-1.0.0 --out {{out}}/out.zip"), "out.zip"),
        "unpack": Work(_command(unpack), "out-1.0.0"),
        "pull": Work(_command(pull), "out-1.0.0"),
        "pull-more": Work(_command(pull), "out-1.0.0", {f"part-{store}-1.0.0": "out-1.0.0"}),
        "push": Work(_command(f"store push {{at}}/{store}-1.0.0 {{out}}/out-1.0.0"), "out-1.0.0"),
        "merge": Work(_command(merge), "out-1.0.0"),
        "import": Work(_command(taken), "out-1.0.0"),
        "hdf5": Work(_command(export), "o.h5", exits=True),
    }
    return {f"{name}{end}": work for name, work in works.items()}


RAGGED = "-ragged"
"""End of the names of works on clips with any number of frames."""
WORKS = {
    "stage": Work(_call("stage"), "new/toy-1.0.0"),
    "retry": Work(_call("retry"), "new/toy-1.0.0", {"failed/toy.staging": "new/toy.staging"}),
    "join": Work(_call("join"), "new/toy-1.0.0", {"scattered/toy.staging": "new/toy.staging"}),
    "grow": Work(_call("grow"), "new/toy-1.1.0", {"small-1.0.0": "toy-1.0.0"}),
    **_works_of("toy", "npy {out}/out"),
    **_works_of("ragged-toy", "npy-frames {out}/out --array frames", RAGGED),
    "anndata": Work(_command("store export {at}/toy-1.0.0 {out}/o.h5ad --to h5ad"), "o.h5ad", exits=True),
    "score": Work(_command(f"{SCORE} --force"), "scored", {"scored": "scored"}),
    "film-run": Work(_command(RUN), "o/report.html", talks=True),
    "decide": Work(_call("decide"), "decided.txt", {"scored": "scored"}),
    "cut": Work(_command(CUT), "d.csv"),
    "evaluate": Work(_command(EVALUATE), "run", talks=True),
    "manifest": Work(_call("manifest"), "films.csv", old={"films.csv": b"old"}),
    "model": Work(_call("model"), "a.model", old={"a.model": b"old"}),
    "model-push": Work(_command("model push words-s {out}/zoo --name ours"), "zoo/zoo.toml"),
    "model-pull": Work(_command("model pull words-s {out}/theirs"), "theirs/words-s-1.0.0.model"),
    "run": Work(_call("run"), "run", old={"run/run.json": b"old"}),
}
"""Every kind of work, and what must come out of it."""


def _work_in_lab(command: str, result: str, *, by_file: bool = False) -> Work:
    """Make a work whose inputs are in the trial's folder too: calls that read them are counted, and fail."""
    return Work(_command(command), result, {"lab": "lab"}, talks=True, by_file=by_file)


LEARN = "film learn {out}/lab/judged --manifest {out}/lab/labelled.csv --store {out}/lab/abc-1.0.0"
EXPORT = "film export {out}/lab/judged --people"
PAGE = "film report {out}/lab/judged --people --film {out}/lab/d.mp4"
FILM_WORKS = {
    "lab-run": _work_in_lab(RUN.replace("{at}", "{out}/lab"), "o/report.html"),
    "lab-next": _work_in_lab("film next {out}/lab/scored --blind --n 4 --out {out}/drawn.csv", "drawn.csv"),
    "lab-judge": WORKS["decide"],
    "lab-rate": _work_in_lab("film rate {out}/lab/scored {out}/lab/blind.csv", "lab/scored", by_file=True),
    "lab-import": _work_in_lab(
        "film import {out}/lab/changed.eaf --into {out}/lab/judged", "lab/judged", by_file=True
    ),
    "lab-learn": _work_in_lab(f"{LEARN} --out {{out}}/learnt", "learnt"),
    "lab-evaluate": _work_in_lab(
        "film evaluate {out}/lab/scored --truth {out}/lab/blind.csv --out {out}/agreement", "agreement"
    ),
    "lab-page": _work_in_lab(f"{PAGE} --out {{out}}/page.html", "page.html"),
    "lab-eaf": _work_in_lab("film export {out}/lab/judged --as eaf --people --out {out}/d.eaf", "d.eaf"),
    "lab-qdpx": _work_in_lab(
        "film export {out}/lab/judged --as refi-qda --people --out {out}/d.qdpx", "d.qdpx"
    ),
}
"""What people do with a film, from its first scores to a model that learnt from their judgements."""

TRAIN = (
    "train xclip-lsmdc --clip {at}/clip --annotations {at}/lsmdc/annotations --videos {at}/lsmdc/videos "
    "--batch 4 --epochs 2 --save-every 1 --workers 1 --device cpu --resume --out {out}/run"
)
RARE = {
    "evaluate-again": Work(_command(f"{EVALUATE} --force"), "run", {"run": "run"}, talks=True),
    "extract": Work(_command(f"extract {{at}}/d.csv {{out}}/d --workers 1 {LICENCE}"), "d-1.0.0", talks=True),
    "append": Work(
        _command("extract {at}/d.csv {out}/d --append {at}/abc-1.0.0 --store-version 1.1.0 --workers 1"),
        "d-1.1.0",
        talks=True,
    ),
    "predict": Work(_command("predict {at}/mlp.model {at}/d-1.0.0 --out {out}/p.csv"), "p.csv", talks=True),
    "report": Work(_command("film report {at}/scored --out {out}/page.html"), "page.html", talks=True),
    "eaf": Work(_command("film export {at}/scored --as eaf --out {out}/d.eaf"), "d.eaf", talks=True),
    "paper": Work(
        _command(
            "paper all {at}/paper.csv {at}/paper-1.0.0 --only table2 --protocol strict --policy raw "
            "--out {out}/t"
        ),
        "t",
        talks=True,
    ),
    "train": Work(_command(TRAIN), "run", talks=True, grows=True),
    "demo": Work(_command("demo --out {out}/demo --workers 1"), "demo/film/report.html", talks=True),
}
"""Works that take seconds each time, or are of the same few steps: `benchmarks/calls.py` alone tries them."""


def tree(place: Path) -> Tree | None:
    """Read a file or a folder: path -> bytes; None if there is nothing."""
    if place.is_file():
        return {"": place.read_bytes()}
    if not place.is_dir():
        return None
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def lost_records(marks: Iterable[str], later_marks: Iterable[str]) -> list[str]:
    """List what one run had recorded and the run after it did not find any more.

    A run marks "found X" for each record that it finds when it begins, and "had X" as soon as X is recorded
    for good, so that a user may rely on it. X is a clip, a clip and "ok", or a judgement.
    """
    recorded = {text.removeprefix("had ") for text in marks if text.startswith("had ")}
    found = {text.removeprefix("found ") for text in later_marks if text.startswith("found ")}
    return sorted(recorded - found)


def is_sound_partial_copy(found: Tree | None, old: Tree | None, truth: Tree) -> bool:
    """Whether the work completes a partial copy, and so far no file of it is lost or wrong.

    Parameters
    ----------
    found
        What is there now.
    old
        What was there before the work. A partial copy has a fetch.txt, which lists the files not copied yet.
    truth
        What is there when the work is done.
    """
    if found is None or old is None or "fetch.txt" not in old:
        return False
    for name, data in found.items():
        # fetch.txt is not in the whole copy: until it goes, it is as it was.
        expected = truth[name] if name in truth else old.get(name)
        if data != expected:
            return False
    return old.keys() <= found.keys()


def is_whole_by_file(found: Tree | None, old: Tree | None, truth: Tree) -> bool:
    """Whether each file that was there is still there, and each file is as before the work or after it.

    Unfinished files do not count: whoever writes into their folder next removes them.
    """
    if found is None or old is None:
        return False
    for name, data in found.items():
        expected = (old.get(name), truth.get(name))
        if data not in expected and not is_temporary(Path(name)):
            return False
    return old.keys() <= found.keys()


def begin(work: Work, inputs: Path, trial: Path) -> None:
    """Put into a trial's folder what the work finds there."""
    trial.mkdir()
    for there, here in work.copied.items():
        shutil.copytree(inputs / there, trial / here)
    for name, data in work.old.items():
        (trial / name).parent.mkdir(exist_ok=True)
        (trial / name).write_bytes(data)


ERRORS = {
    **{
        name: getattr(errno, name)
        for name in ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EACCES", "EINTR", "ENOLCK")
    },
    "KILL": 0,
}
"""What a call is made to fail with; KILL ends the process in its place."""
