"""What the benchmarks share: options, processor time, runs in turn, tables, verdicts."""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tabulate import tabulate


class Took(NamedTuple):
    """Seconds that a run took: CPU, of all threads and of children that have ended, and by the clock."""

    cpu_s: float
    wall_s: float


def arguments(doc: str | None, /, parse: bool = True, **defaults: Any) -> Any:
    """Read the command line.

    Parameters
    ----------
    doc
        What the script says of itself; it explains the options.
    parse
        Whether to read it; else the parser is given, for more options.
    defaults
        Option -> its default. False makes a flag, a list takes several values of its items' type.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true")
        else:
            kind = type(default[0] if isinstance(default, list) else default)
            n = "+" if isinstance(default, list) else None
            parser.add_argument(option, type=kind, default=default, nargs=n)
    return parser.parse_args() if parse else parser


def cpu_s(*, children_alone: bool = False) -> float:
    """Give the CPU seconds of this process and of its children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + (0 if children_alone else time.process_time())


def peak_mb() -> float:
    """Give the most memory that this process has had; Linux alone tells it apart from its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def timed(work: Callable[[], object], *, children_alone: bool = False) -> Took:
    """Run once."""
    cpu = cpu_s(children_alone=children_alone)
    wall = time.perf_counter()
    work()
    return Took(cpu_s(children_alone=children_alone) - cpu, time.perf_counter() - wall)


def obygaze(*words: object, done: Sequence[int] = (0,)) -> Took:
    """Run a command of obygaze, that ends with one of these codes; give what all its processes took."""
    command = [sys.executable, "-m", "obygaze", *map(str, words)]

    def run() -> None:
        code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        if code not in done:
            sys.exit(f"exit code {code}: {' '.join(command[2:])}")

    return timed(run, children_alone=True)


def in_turn(
    works: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    least: bool = False,
    lossy: tuple[type[Exception], ...] = (),
) -> dict[str, Took]:
    """Run works in turn, so that a busy machine disturbs all of them; give each one's median, or least.

    Parameters
    ----------
    lossy
        Errors with which a work may end that cannot be done: it took NaN.
    """
    taken: dict[str, list[Took]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            try:
                taken[name].append(timed(work))
            except lossy:
                taken[name].append(Took(float("nan"), float("nan")))
    choose = min if least else median
    return {name: Took(*map(choose, zip(*runs, strict=True))) for name, runs in taken.items()}


def show(rows: Iterable[Any], headers: Sequence[str] = (), title: str = "") -> None:
    """Print a table of rows, or of mappings with their keys as headers; floats get two decimals, NaN none."""
    rows = list(rows)
    if not rows:
        return
    if not headers:
        headers = list(dict.fromkeys(key for row in rows for key in row))

        def values(row: Mapping[str, Any]) -> list[Any]:
            return [row.get(name, "") for name in headers]

        rows = [*map(values, rows)]
    cells = [list(map(_cell, row)) for row in rows]
    if title:
        print(f"\n## {title}\n")
    print(tabulate(cells, headers, tablefmt="github", disable_numparse=True), flush=True)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.2f}"
    return str(value)


def verdict(wrong: Sequence[str], *, check: bool) -> None:
    """Print what missed its goal; end with exit code 1 if the goals are checked."""
    for sentence in wrong:
        print(f"missed: {sentence}")
    if check and wrong:
        sys.exit(1)
