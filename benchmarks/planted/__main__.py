"""Run rows; see the package."""

import argparse
import sys

from benchmarks.measure import cpu_s
from benchmarks.planted import __doc__ as doc
from benchmarks.planted import (
    annotators,
    audits,
    calibrations,
    films,
    frames,
    in_time,
    judges,
    known_films,
    layers,
    motif,
    nulls,
    people,
    rankings,
    rates,
    scores,
    sentences,
    skill,
    staging,
    sums,
    units,
    unlike_films,
    worth,
)
from benchmarks.planted.row import ROOT, Row, run, written
from obygaze_models.blas import one_blas_thread

ROOMS = (
    *(annotators, audits, calibrations, films, rates, scores, nulls, frames, in_time, sums, staging, units),
    *(motif, worth, known_films, unlike_films, judges, skill, rankings, sentences, layers, people),
)
ROWS: dict[str, Row] = {row.name: row for room in ROOMS for row in room.ROWS}


def main() -> None:
    """Print tables; end with exit code 1 if a figure is out of its bounds."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows; all by default")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(ROWS):
        raise SystemExit(f"no row {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}")
    wrong = []
    for name in options.names or ROWS:
        start = cpu_s()
        with one_blas_thread():
            result = run(ROWS[name], small=options.small)
        print(
            f"\n## {name}: {ROWS[name].command} ({cpu_s() - start:.0f} s of CPU)\n\n{result.block}",
            flush=True,
        )
        wrong += result.wrong
        if options.write and not result.wrong:
            page = ROOT / ROWS[name].page
            page.write_text(written(page.read_text("utf-8"), result), "utf-8")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
