"""Fail every call of the system in every kind of work on stores, models, manifests, runs and films.

Each call of write, fsync, close, rename, open or mkdir, unlink below the work's folder fails once with EIO,
from some call on all writes and new files with ENOSPC, and the process is killed in place of each (KILL).
Work must end with one line and exit code 1, with nothing or the whole at its destination, and the next run
must give the bytes of undisturbed work. In works whose names begin with lab- calls of link, read and flock
fail too. tests/disk tries a part. Needs Linux and a C compiler.

    python benchmarks/calls.py [WORK...] [--stride 1] [--errors EIO ENOSPC KILL]

With --disk, the folder of a small disk (`mount -t tmpfs -o size=256m none /mnt`), no call is made to fail:
the disk has 0 to 7 eighths of the space that the work takes.

    python benchmarks/calls.py [WORK...] --disk /mnt
"""

import importlib
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from measure import arguments


def test_package(folder: str, module: str) -> Any:
    """Import a module of a folder of the tests, whose modules import each other."""
    package = sys.modules.setdefault(folder, types.ModuleType(folder))
    package.__path__ = [str(Path(__file__).parents[1] / "tests" / folder)]
    return importlib.import_module(f"{folder}.{module}")


def main() -> None:
    """Try every call, or every so many-th; print what went wrong, and counts."""
    harness = test_package("disk", "harness")
    failed = test_package("disk", "failed_calls")
    parser = arguments(__doc__, parse=False, stride=1, errors=[*harness.ERRORS])
    works = harness.WORKS | harness.FILM_WORKS | harness.RARE
    parser.add_argument("works", nargs="*", choices=[[], *works])
    parser.add_argument("--disk", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        runner = harness.Runner(harness.compiled(folder))
        inputs = folder / "inputs"
        inputs.mkdir()
        for call in ("make_inputs", "make_films", "make_lab", "make_rare_inputs"):
            answer = runner.ask(inputs, call=call)
            assert answer["code"] == 0, answer["said"]
        for name in options.works or works:
            trials = failed.Trials(runner, works[name], inputs, (options.disk or folder) / name)
            number = wrong = 0
            kinds = failed.READING_TOO if name in harness.FILM_WORKS else failed.WRITING
            if options.disk:
                cases = trials.spaces(8)
            else:
                cases = trials.cases(options.stride, tuple(options.errors), kinds)
            for case in cases:
                problems = trials.problems(case)
                number = number + 1
                wrong = wrong + bool(problems)
                for problem in problems:
                    print(f"{name}: WRONG, {problem}", flush=True)
            print(f"{name}: {number} trials, {wrong} wrong", flush=True)
        runner.close()


if __name__ == "__main__":
    main()
