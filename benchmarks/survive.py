"""Kill work on stores (SIGKILL, at a random step), start it again, compare with undisturbed work.

The works are those of tests/disk that are commands on stores, which the power is cut to there, and what needs
more than one disk: an extraction with its decoder, copies from a server and to S3. A step is a file opened,
written, renamed or removed. The whole group or the first process alone is killed, up to three times a trial;
then the command is let finish. A reader looks all the while: whatever it can open must hold nothing but whole
clips. Then the same is started twice at once, as if by mistake. Needs Linux and a C compiler.

    python benchmarks/survive.py [WORK...] [--number 50] [--seed 0]

Exit code 1 if anything was torn, wrong or left behind.
"""

import contextlib
import ctypes
import importlib
import io
import json
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from calls import test_package
from measure import arguments

from obygaze.cli import main as obygaze
from obygaze.demo_corpus import write_corpus
from obygaze_features.errors import StoreError
from obygaze_features.io import sha256_of
from obygaze_features.store import open_store, verify
from obygaze_features.store.arrays import row_view

# Every command runs in a fork of this process, which has imported all and opens no store itself: zarr's
# threads would not survive a fork. A start costs milliseconds then, and a kill hits work, not imports.
FORK = multiprocessing.get_context("fork")
for module in (
    *(
        f"commands.{name}"
        for name in ("extract_command", "store_combine", "store_exchange", "store_transfer")
    ),
    *(f"exchange.{name}" for name in ("export", "import_features", "merge", "publish", "transfer")),
):
    importlib.import_module(f"obygaze_features.{module}")
for room in ("manifest", "store", "exchange", "extraction"):
    offered = importlib.import_module(f"obygaze_features.{room}")
    for each in offered.__all__:  # rooms load a module when one of its names is asked for
        getattr(offered, each)

harness = test_package("disk", "harness")
STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""What Python's audit knows of work on files."""
N_CLIPS = 12


def works(site: str) -> dict[str, Any]:
    """Name every piece of work; `site` serves the inputs over HTTP."""
    works_by_name = {
        name: work
        for name, work in harness.WORKS.items()
        if work.asked(Path("at"), Path("out")).get("words", [""])[0] == "store"
    }

    def command(*words: str) -> Callable[[Path, Path], dict[str, Any]]:
        return lambda at, out: {"words": [word.format(at=at, out=out, name=out.name) for word in words]}

    options = ("--licence", "CC0-1.0", "--corpus", "few", "--batch-size", "2", "--workers", "1")
    extract = command("extract", "{at}/films/few.csv", "{out}/out", *options)
    works_by_name["extract"] = harness.Work(extract, "out-1.0.0")
    for name, source in (("pull-http", "toy-1.0.0"), ("pull-zip", "toy-1.0.0.zip")):
        pull = command("store", "pull", f"{site}/{source}", "{out}/out-1.0.0")
        works_by_name[name] = harness.Work(pull, "out-1.0.0")
    push = command("store", "push", "{at}/toy-1.0.0", "s3://bucket/{name}/toy-1.0.0")
    return {**works_by_name, "push-s3": harness.Work(push, "s3://bucket/{}/toy-1.0.0")}


# --- processes
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Steps:
    """Count what a command does to files, in its own process, and kill it at one step: no clock decides.

    Threads share the work, so two runs may differ a little in their number.
    """

    folder: Path
    kill_at: int = 0
    group: bool = False
    done: Any = field(default_factory=lambda: FORK.Value(ctypes.c_long))

    def __call__(self) -> None:
        """Begin to count; called in the process."""
        write = os.write

        def counted(descriptor: int, data: Any, /) -> int:
            self._step()
            return write(descriptor, data)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in STEPS and str(arguments[0]).startswith(str(self.folder)):
                self._step()

        os.write = counted
        sys.addaudithook(hook)

    def _step(self) -> None:
        with self.done:
            self.done.value += 1
            if self.done.value != self.kill_at:
                return
        (os.killpg if self.group else os.kill)(os.getpid(), signal.SIGKILL)


class Running:
    """A command in a process of its own, and what it said."""

    def __init__(self, words: list[str], log: Path, first: Callable[[], None] = lambda: None) -> None:
        self.said = log
        self.process = FORK.Process(target=self._run, args=(words, first))
        self.process.start()

    def _run(self, words: list[str], first: Callable[[], None]) -> None:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.stdout = os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w")
        first()
        obygaze(words)

    def finish(self, codes: tuple[int, ...]) -> int:
        """Wait for the end; fail if it ends with another code."""
        self.process.join()
        code = self.process.exitcode
        if code is None or (code not in codes and code != -signal.SIGKILL):
            raise SystemExit(f"exit code {code}\n{self.said.read_text(encoding='utf-8')}")
        return code


def ask(function: Callable[..., Any], *words: Any) -> Any:
    """Call a function in a process of its own."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=lambda: theirs.send(function(*words)))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise SystemExit(f"{function.__name__}{words} failed") from None
    finally:
        process.join()


def content(place: str) -> str:
    """Digest what work made: all bytes on this machine, elsewhere what the store's digests say."""
    if "://" in place:
        report = verify(place, "full")
        assert report.ok, report.problems
        return report.fingerprint
    files = harness.tree(Path(place)) or {}
    return sha256_of(json.dumps({name: sha256_of(data) for name, data in files.items()}).encode())


def watch(place: str, truth: str, good: str, stop: Event, counts: Any) -> None:
    """Open what is there again and again; count what opens, and every clip that is not as in `truth`."""
    if Path(place).suffix in (".h5", ".h5ad"):
        while not stop.wait(0.005):
            if Path(place).exists():
                counts[0] += 1
                counts[1] += content(place) != good
        return
    digests = {clip.clip_id: clip.digests for clip in open_store(truth).clips}
    absent = contextlib.suppress(StoreError, OSError)  # not there yet, and said so
    while not stop.wait(0.005):
        with absent:
            store = open_store(place)
            counts[0] += 1
            for name in store:
                group = store[name]
                for clip in np.array(group.clip_ids)[group.usable].tolist():
                    for array in group.arrays:
                        with absent:
                            digest = sha256_of(row_view(group.read(clip, array)))
                            counts[1] += digest != digests[clip][f"{name}/{array}"]


def serve(inputs: Path, pipe: Connection) -> None:
    """Serve the inputs over HTTP and an empty bucket, until something comes through the pipe."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for every request
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    s3 = "http://{}:{}".format(*server.get_host_and_port())
    put = Request(f"{s3}/bucket", headers={"Host": "s3.amazonaws.com"}, method="PUT")  # noqa: S310 - our own server
    urlopen(put).close()  # noqa: S310 - our own server
    with test_package("store", "serving").serving(inputs) as site:  # the tests' server answers ranges
        pipe.send((site.url, s3))
        pipe.recv()


@contextlib.contextmanager
def served(inputs: Path) -> Iterator[str]:
    """Have the inputs served at the URL that is given; the environment says where S3 is."""
    ours, theirs = FORK.Pipe()
    server = FORK.Process(target=serve, args=(inputs, theirs))
    server.start()
    site, s3 = ours.recv()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": "us-east-1",
    }
    os.environ |= {"AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true"}
    try:
        yield site
    finally:
        ours.send("")
        server.join(5)
        server.kill()


def make_films(folder: Path) -> None:
    """Draw films and write a manifest of some of their clips."""
    labels = write_corpus(folder, workers=1)
    table = folder / "all.csv"
    words = ["manifest", "import", "spans", labels, "--videos", folder / "films", "--out", table]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        obygaze([str(word) for word in words])
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "few.csv").write_text("".join(lines[:1] + lines[1::7][:N_CLIPS]), encoding="utf-8")


# --- trials
# ---------------------------------------------------------------------------
class Trials:
    """One kind of work, killed again and again, each trial in a folder of its own."""

    def __init__(self, name: str, work: Any, inputs: Path, folder: Path) -> None:
        self.name = name
        self.work = work
        self.inputs = inputs
        self.folder = folder
        self.codes = (0, 3) if name == "extract" else (0,)
        trial = self.begin("undisturbed")
        steps = Steps(folder)
        self.start(trial, steps).finish(self.codes)
        self.truth = self.place(trial)
        self.steps = steps.done.value
        self.good = ask(content, self.truth)
        self.beside = names_in(trial)

    def begin(self, called: str) -> Path:
        """Make the folder of a trial."""
        trial = self.folder / f"{self.name}-{called}"
        harness.begin(self.work, self.inputs, trial)
        return trial

    def place(self, trial: Path) -> str:
        """Say where the result of a trial will be."""
        result: str = self.work.result
        return result.format(trial.name) if "://" in result else str(trial / result)

    def start(self, trial: Path, first: Callable[[], None] = lambda: None, said: str = "said") -> Running:
        """Start the command."""
        return Running(self.work.asked(self.inputs, trial)["words"], self.folder / said, first)

    def is_done(self, trial: Path) -> bool:
        """Whether it was killed after the end: a second run would be refused."""
        return self.work.result not in self.work.copied.values() and Path(self.place(trial)).exists()

    def kill(self, number: int, rng: np.random.Generator) -> bool:
        """Kill the command so often; say whether all went well."""
        kills = trials = wrong = litter = 0
        counts = FORK.Array(ctypes.c_long, 2, lock=False)
        while kills < number:
            trials += 1
            trial = self.begin(str(trials))
            stop = FORK.Event()
            words = (self.place(trial), self.truth, self.good, stop, counts)
            reader = FORK.Process(target=watch, args=words, daemon=True)
            reader.start()
            for _ in range(min(3, number - kills)):
                # If alone, its decoders live on for a moment, beside the next run.
                steps = Steps(self.folder, int(rng.integers(1, self.steps + 1)), group=rng.random() < 0.5)
                if self.start(trial, steps).finish((1, *self.codes)) != -signal.SIGKILL:
                    break
                kills += 1
                if self.is_done(trial):
                    break
            is_finished = self.is_done(trial)
            self.start(trial).finish((1, *self.codes) if is_finished else self.codes)
            stop.set()
            reader.join()
            assert reader.exitcode == 0
            wrong += ask(content, self.place(trial)) != self.good
            litter += not names_in(trial) <= self.beside
            shutil.rmtree(trial)
        print(
            f"{self.name}: {kills} kills in {trials} trials of {self.steps} steps; {wrong} wrong, {litter} "
            f"with litter; a reader opened it {counts[0]} times and found {counts[1]} torn",
            flush=True,
        )
        return not (wrong or litter or counts[1])

    def twins(self) -> bool:
        """Start the same work twice at once; the result must be right, and who is refused be told so."""
        trial = self.begin("twins")
        processes = [self.start(trial, said=f"said-{i}") for i in range(2)]
        codes = [running.finish((0, 1, 3)) for running in processes]
        logs = [running.said.read_text(encoding="utf-8").strip().splitlines() for running in processes]
        errors = [lines[-1] for lines, code in zip(logs, codes, strict=True) if code == 1]
        for running in processes:
            running.said.unlink()
        if 1 in codes and not self.is_done(trial):  # both were refused: each by what the other began
            self.start(trial).finish((1, *self.codes))
        fine = ask(content, self.place(trial)) == self.good
        print(
            f"{self.name}, twice at once: {'right' if fine else 'WRONG'}, {codes}; {'; '.join(errors)}",
            flush=True,
        )
        return fine and all(line.startswith("obygaze: error: ") for line in errors)


def names_in(trial: Path) -> set[str]:
    """List what lies in a trial's folder."""
    return {path.name for path in trial.iterdir()}


def main() -> None:
    """Run the trials asked for and print two lines for each."""
    parser = arguments(__doc__, parse=False, number=50, seed=0)
    parser.add_argument("works", nargs="*")
    options = parser.parse_args()
    os.fsync = lambda _descriptor: None  # a kill is not a power cut
    fine = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        inputs = folder / "inputs"
        inputs.mkdir()
        runner = harness.Runner(harness.compiled(folder))
        for call in ("make_inputs", "make_films"):
            runner.ask(inputs, call=call)
        runner.close()
        with served(inputs) as site:
            works_run = works(site)
            for kind in options.works or works_run:
                if kind == "extract":
                    ask(make_films, inputs / "films")
                trials = Trials(kind, works_run[kind], inputs, folder)
                fine &= trials.kill(options.number, np.random.default_rng(options.seed))
                if kind != "push-s3":  # the others work on this machine's files alone
                    fine &= trials.twins()
    sys.exit(not fine)


if __name__ == "__main__":
    main()
