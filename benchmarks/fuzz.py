"""Feed damaged and hostile files to whatever reads files of strangers: no crash, hang, stray write or flood.

Every target takes the bytes of one file and reads it as obygaze would. Allowed are success and the errors
meant for users; anything else is a finding, which is printed with the bytes that cause it. Inputs are mutated
bytes, and for JSON also single values replaced. Every target runs in a process of its own with 1 GB of memory
more than it begins with, 20 s of CPU an input, and an audit of every file that is opened for writing. HDF5 is
read by a process of obygaze's own, with as much memory: its crashes and hangs are counted, but are errors as
they should be; whatever else is raised there is a finding. Files of spans are read by a process of obygaze's
own too, one for all inputs of a target, here with 5 s of CPU and 128 MB above idle: as they are small, one
that needs more is a finding.

    python benchmarks/fuzz.py [targets...] [--seconds 300] [--seed 0]
    python benchmarks/fuzz.py [targets...] --inputs 500   so many of each target, the same on every machine

The seconds are of all targets together.
"""

import logging
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType

from fuzz_mutations import mutate
from fuzz_readers import LOST, SPAN_READER, SPANS
from fuzz_targets import targets
from measure import arguments, cpu_s

from obygaze_features import sandbox
from obygaze_features.exchange import import_items
from obygaze_features.limits import Limits

MEMORY = 1 << 30
HANGS_S = 20
STANDS_S = 300
"""Of CPU time, and of waiting: the machine may be busy."""
import_items.LIMIT_S = 20.0  # a worker that hangs ends before
sandbox.limits_of = lambda _: Limits(cpu_s=5, memory=1 << 27)  # no input of a fuzzer is large


class Hang(BaseException):
    """An input took too long; not an Exception, so that nobody catches it on the way."""


class StrayWriteError(BaseException):
    """Something was written outside the target, or a program started; nobody catches it either."""


def guard(folder: Path) -> None:
    """Forbid this process and those it has started more memory, and this one to write outside the folder."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    for pid in (os.getpid(), *map(int, children)):
        used = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.prlimit(pid, resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, hang)
    sys.addaudithook(lambda event, words: audit(event, words, str(folder)))


def hang(_signal: int, _frame: FrameType | None) -> None:
    """Say that an input took too long."""
    raise Hang


def audit(event: str, words: tuple[object, ...], folder: str) -> None:
    """Stop at anything that writes elsewhere, or starts a program that is no worker of ours."""
    if event == "subprocess.Popen" and "run_worker" in str(words[1]):
        return
    if event == "os.fork" and sys._getframe(2).f_code.co_filename == sandbox.__file__:
        return
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.fork"):
        raise StrayWriteError(f"{event} of {words}")
    writes = event in ("os.rename", "os.mkdir", "os.link", "os.symlink", "os.truncate")
    if event == "open" and isinstance(words[2], int):
        writes = bool(words[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    names = words[:2] if event in ("os.rename", "os.link", "os.symlink") else words[:1]
    for name in names if writes else ():
        path = Path(os.fsdecode(name)).resolve() if isinstance(name, str | bytes) else Path(folder)
        if not path.is_relative_to(folder) and path != Path(os.devnull):
            raise StrayWriteError(f"{event} of {path}")


def fuzz(name: str, seconds: float, seed: int, maximum: int) -> None:
    """Mutate one target's file until the time is over, or so often; print every new kind of finding."""
    warnings.simplefilter("ignore")
    logging.disable()
    rng = random.Random(f"{name} {seed}")
    os.fsync = lambda _: None  # type: ignore[assignment]  # no power cut is expected, and waiting is dear
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        path, run = targets(folder, name)[name]
        good = path.read_bytes()
        run(good)
        guard(folder)
        end = time.monotonic() + seconds
        runs = 0
        slowest = 0.0
        kinds = set()
        while runs < maximum if maximum else time.monotonic() < end:
            data = mutate(good, rng)
            begin = cpu_s()
            signal.alarm(STANDS_S)
            signal.setitimer(signal.ITIMER_PROF, HANGS_S)
            try:
                run(data)
            except BaseException as error:  # noqa: BLE001 - that is what is looked for
                where = traceback.extract_tb(error.__traceback__)[-1]
                elsewhere = re.findall(r'File ".*", line \d+', str(error))  # in the process that reads HDF5
                kind = (type(error).__name__, where.filename, where.lineno, *elsewhere[-1:])
                if kind not in kinds:
                    kinds.add(kind)
                    print(f"{name}: FINDING {type(error).__name__}: {str(error)[:200]}")
                    traceback.print_tb(error.__traceback__, file=sys.stdout)
                    print(f"    {data[:400]!r}", flush=True)
            finally:
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)
            runs += 1
            slowest = max(slowest, cpu_s() - begin)
        import_items.end_worker()
        SPAN_READER.end()
        processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        peak = max(resource.getrusage(process).ru_maxrss for process in processes) // 1024
        print(
            f"{name}: {runs} inputs, {len(kinds)} findings, slowest {slowest:.2f} s of CPU, peak {peak} MB"
            + "".join(f"; {what}: {number}" for what, number in LOST.items()),
            flush=True,
        )


def all_names(wanted: list[str]) -> list[str]:
    """Name every target; if only targets of spans are wanted, those alone, as the others take long to make.

    `wanted` are the targets that were named on the command line; without any, all are wanted.
    """
    are_of_spans = [name.startswith(SPANS) for name in wanted]
    only = SPANS if wanted and all(are_of_spans) else ""
    with tempfile.TemporaryDirectory() as place:
        return [*targets(Path(place), only)]


def main() -> None:
    """Fuzz every target asked for, one after another."""
    parser = arguments(__doc__, parse=False, seconds=300.0, inputs=0, seed=0)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    # A fork has imported all already; this process opens no store: zarr's threads would not survive a fork.
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    context.Process(target=lambda: theirs.send(all_names(options.targets))).start()
    known = ours.recv()
    unknown = [name for name in options.targets if name not in known]
    if unknown:
        parser.error(f"no target is called {unknown[0]!r}; there are {', '.join(known)}")
    names = options.targets or known
    for name in names:
        words = (name, options.seconds / len(names), options.seed, options.inputs)
        child = context.Process(target=fuzz, args=words)
        child.start()
        child.join()
        if child.exitcode:
            print(f"{name}: FINDING the process ended with {child.exitcode}")


if __name__ == "__main__":
    main()
