"""The papers' tables and figures, all of them or one, written into a folder with an index."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from obygaze_features.manifest import LabelPolicy, Manifest
from obygaze_features.store import Store
from obygaze_models.experiments.material import load_material
from obygaze_models.experiments.results import PaperResults, StrictResults
from obygaze_models.protocol.paper import CLEAN
from obygaze_models.report import Report, write_report
from obygaze_models.report.write import to_csv

Protocol = Literal["paper", "strict"]
Progress = Callable[[int, int], None]

EXPERIMENTS = ("table2", "table4", "figure3", "figure5", "figure6")
"""Modules, each of which makes reports of every source's results: `paper_report` and `strict_report`."""

NEED_CONCEPTS = ("figure3", "figure5", "figure6")


@dataclass(frozen=True, slots=True)
class Request:
    """What to compute from what.

    Attributes
    ----------
    policy : LabelPolicy
        How the strict protocol reads labels; the paper protocol's are those of the released split files.
    """

    stores: tuple[Store, ...]
    manifest: Manifest
    policy: LabelPolicy = LabelPolicy.PAPER
    seed: int = 0


def write_experiments(
    request: Request,
    names: Sequence[str],
    protocols: Sequence[Protocol],
    folder: Path,
    *,
    progress: Progress | None = None,
) -> tuple[list[Report], list[str]]:
    """Compute experiments and write each one's files, and the predictions that they all come from.

    Returns
    -------
    reports : list of Report
    notes : list of str
        What was not made, and why.
    """
    reports: list[Report] = []
    notes: list[str] = []
    for protocol in protocols:
        results = _results(request, protocol, progress)
        for name in names:
            if (
                isinstance(results[0], StrictResults)
                and name in NEED_CONCEPTS
                and not results[0].has_concepts
            ):
                notes.append(f"{name}, strict protocol: not made, no concept is marked in enough films")
                continue
            # Only what is asked for: tables need no matplotlib.
            module = import_module(f"obygaze_models.experiments.{name}")
            make = module.paper_report if protocol == "paper" else module.strict_report
            reports.append(make(results))
            write_report(reports[-1], folder)
        for one in results:
            if one.computed:
                one.predictions().write(folder / predictions_file(protocol, one.source.label))
            if isinstance(one, StrictResults):
                for kind, table in one.selections.items():
                    path = folder / f"{kind}-strict-{one.source.label}.csv"
                    path.write_text(to_csv(table), encoding="utf-8", newline="")
    return reports, notes


def _results(
    request: Request, protocol: Protocol, progress: Progress | None
) -> list[PaperResults] | list[StrictResults]:
    policy = LabelPolicy.RAW if protocol == "paper" else request.policy
    material = load_material(request.stores, request.manifest, policy)
    if protocol == "paper":
        return [PaperResults(material, source, request.seed, progress) for source in material.sources]
    return [StrictResults(material, source, request.seed, progress) for source in material.sources]


def predictions_file(protocol: Protocol, label: str) -> str:
    """Name the file of a source's predictions."""
    return f"predictions-{protocol}-{label}.csv"


def write_paper(
    request: Request,
    protocols: Sequence[Protocol],
    folder: Path,
    *,
    progress: Progress | None = None,
) -> list[Report]:
    """Redo the whole of section 4 and its appendices, and leave an `index.md` that links it."""
    figure2: Report = import_module("obygaze_models.experiments.figure2").dataset_report(request.manifest)
    write_report(figure2, folder)
    reports, notes = write_experiments(request, EXPERIMENTS, protocols, folder, progress=progress)
    reports = [figure2, *reports]
    (folder / "index.md").write_text(_index(request, reports, notes, folder), encoding="utf-8", newline="")
    return reports


def _index(request: Request, reports: Sequence[Report], notes: Sequence[str], folder: Path) -> str:
    """Link everything that the folder holds."""
    lines = ["# Visual objectification in films: the tables and figures redone", ""]
    lines += [
        (
            "Tores et al., CVPR 2024 (001) and arXiv 2401.13296 (000). Two protocols, never to be "
            "mixed: `paper` reconstructs the published folds, some of which leak, to compare with "
            "published numbers; `strict` leaves one film out and is what we recommend."
        ),
        "",
    ]
    untrained = sorted(
        {name for store in request.stores for name in store.names if store[name].provenance.get("untrained")}
    )
    if untrained:
        lines += [f"**UNTRAINED: the weights of {', '.join(untrained)} are random.**", ""]
    for report in reports:
        files = ", ".join(f"[{suffix}]({report.name}.{suffix})" for suffix in ("csv", "json", "tex"))
        lines.append(f"- [{report.title}]({report.name}.md) ({files})")
        lines += [f"  - {title}: {note}" for title, note in leak_notes(report)]
    lines += [f"- {note}" for note in notes]
    lines += ["", "## Figures", ""]
    for report in reports:
        for picture in report.pictures:
            lines += [f"![{picture.caption}]({picture.name}.png)", ""]
            lines += [f"{picture.caption} ([SVG]({picture.name}.svg))", ""]
    lines += ["## Where it comes from", ""]
    lines += [
        f"- [{path.name}]({path.name}): every prediction behind these numbers"
        for path in sorted(folder.glob("predictions-*.csv"))
    ]
    lines += [
        f"- [{path.name}]({path.name}): {what} by inner folds behind them"
        for kept, what in (
            ("curves", "every epoch tried"),
            ("losses", "every penalty and depth tried"),
        )
        for path in sorted(folder.glob(f"inner-{kept}-*.csv"))
    ]
    lines += [
        f"- store {store.name}, {', '.join(store.names)}: {store.fingerprint}" for store in request.stores
    ]
    lines += [
        (
            f"- manifest {request.manifest.digest()}; strict labels: {request.policy} policy; seed "
            f"{request.seed}"
        ),
        f"- Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("obygaze", "numpy", "scipy", "scikit-learn")),
        "",
    ]
    return "\n".join(lines)


def leak_notes(report: Report) -> list[tuple[str, str]]:
    """List what a report says of leaks, where there are some and where there are none."""
    notes = [(block.title, note) for block in report.blocks for note in block.notes]
    return [(title, note) for title, note in notes if "LEAKS" in note or CLEAN in note]
