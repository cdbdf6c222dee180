"""Reproduce the papers' tables and figures, all or one: reports and their predictions.

Tores et al., CVPR 2024, and arXiv 2401.13296.

Examples
--------
>>> import obygaze_features as of
>>> import obygaze_studies
>>> clips, store = of.read_manifest("films.csv"), of.open_store("stores/films")
>>> redone = obygaze_studies.paper.figure5(clips, [store])
>>> [report.name for report in redone.reports]
['figure5-strict']
>>> obygaze_studies.paper.figure2(clips).name
'figure2'
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from jinja2 import Template

from obygaze_features.io import write_whole
from obygaze_features.manifest import LabelPolicy, Manifest, read_manifest
from obygaze_features.store import Store
from obygaze_models.blas import one_blas_thread
from obygaze_models.commands import read_inputs, under_policy
from obygaze_models.report import Report, asset, to_csv
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12.corpus import load_corpus, refuse_other_codebook
from obygaze_studies.obygaze12.figure4 import figure4
from obygaze_studies.obygaze12.paper_folds import CLEAN
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults
from obygaze_studies.obygaze12.statistics import clips_onto, figure2
from obygaze_studies.unfinished import VERSIONS, Work

__all__ = ["Redone", "all_", "figure2", "figure3", "figure4", "figure5", "figure6", "table2", "table4"]

Protocol = Literal["paper", "strict", "both"]
Progress = Callable[[int, int, str], None]

MODULES = ("table2", "table4", "figure3", "figure5", "figure6")
"""Modules that make reports of either protocol; imported when used, as tables need no matplotlib."""

NEED_CONCEPTS = ("figure3", "figure5", "figure6")


@dataclass(frozen=True, eq=False, slots=True)
class Redone:
    """Reproduced reports.

    Attributes
    ----------
    reports : tuple of Report
    notes : tuple of str
        Reports that were not made, and why.
    tables : dict of str to DataFrame
        Predictions and what was chosen by inner folds, by the stem of the file that keeps them.
    """

    reports: tuple[Report, ...]
    notes: tuple[str, ...]
    tables: Mapping[str, pd.DataFrame]


def redo(
    names: Sequence[str],
    manifest: Manifest,
    stores: Sequence[Store],
    protocol: Protocol = "strict",
    *,
    policy: LabelPolicy = LabelPolicy.PAPER,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    kept: Path | None = None,
    made: Callable[[Report], None] = lambda _: None,
) -> Redone:
    """Reproduce tables and figures from the features of every backbone of some stores.

    Parameters
    ----------
    names : sequence of str
        Of `MODULES`: ``table2`` (with a store of LSMDC features it is Table 5 too), ``table4``, ``figure3``,
        ``figure5``, ``figure6``; and first, if at all, ``figure2``, which has no protocol.
    manifest : Manifest
        Of ObyGaze12, or of other films with its levels, visual concepts and tasks: the papers' numbers then
        don't stand beside.
    stores : sequence of Store
    protocol : {"strict", "paper", "both"}
    policy : LabelPolicy
        How the strict protocol reads labels; the paper protocol's are those of the released split files.
    seed : int
    progress : callable, optional
        Called now and then with the numbers of models trained and of all, and the table they are for.
    kept : path, optional
        Folder to keep what is trained in, and to read what an earlier call with the same arguments kept.
    made : callable, optional
        Called with each report as soon as it is made.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper, or the manifest does not have the released folds.
    FoldsError
        Too few clips of a published fold have features; where several results are asked for, only if none can
        be made.
    DatasetError
        The stores and the manifest don't go together.
    """
    reports: list[Report] = []
    notes: list[str] = []
    missing: FoldsError | None = None
    tables: dict[str, pd.DataFrame] = {}
    at = ""

    def show(done: int, total: int) -> None:
        progress(done, total, at)

    first = [figure2(manifest)] if "figure2" in names else []
    for report in first:
        made(report)
    for one in ("paper", "strict") if protocol == "both" else (protocol,):
        paper = one == "paper"
        corpus = load_corpus(stores, manifest, LabelPolicy.RAW if paper else policy)
        made_by: type[Any] = PaperResults if paper else StrictResults
        results = [made_by(corpus, source, seed, show, kept) for source in corpus.sources]
        for name in (name for name in names if name != "figure2"):
            result, at = results[0], f"{name}, {one} protocol"
            if name in NEED_CONCEPTS and isinstance(result, StrictResults) and not result.concept_targets:
                notes.append(f"{at}: not made, no concept is marked in enough movies")
                continue
            module = import_module(f"obygaze_studies.obygaze12.{name}")
            try:
                with one_blas_thread() if paper else nullcontext():
                    reports.append((module.paper_report if paper else module.strict_report)(results))
                made(reports[-1])
            except FoldsError as error:
                missing = error
                notes.append(f"{at}: not made, {error}")
        for result in results:
            for kind, table in result.tables.items():
                tables[f"{kind}-{one}-{result.source.label}"] = table
    if missing and not reports:
        raise missing
    return Redone((*first, *reports), tuple(notes), tables)


table2, table4, figure3, figure5, figure6 = (partial(redo, [name]) for name in MODULES)
all_ = partial(redo, ["figure2", *MODULES], protocol="both")


def work(name: str, *, manifest: Path, stores: Sequence[Path], policy: str, **rest: Any) -> Work:
    """Prepare a table or figure from stores, or "all"; `rest` as for `redo`.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    settings: dict[str, Any] = {"policy": LabelPolicy(policy), **rest}
    clips, opened = read_inputs(manifest, stores)
    refuse_other_codebook(clips.codebook, "this table or figure")
    said = [] if settings["protocol"] == "paper" else under_policy(clips, policy)[1]

    def make(kept: Path | None, **how: Any) -> Redone:
        names = ["figure2", *MODULES] if name == "all" else [name]
        redone = redo(names, clips, opened, **settings, kept=kept, **how)
        folder = kept.parent if kept else Path()
        for stem, table in redone.tables.items():
            write_whole(folder / f"{stem}.csv", to_csv(table))
        if name == "all":
            page = index(redone, clips, opened, policy=settings["policy"], seed=settings["seed"])
            write_whole(folder / "index.md", page)
        return redone

    inputs = {"tables": name, "manifest": clips.digest(), "stores": [store.fingerprint for store in opened]}
    return Work(inputs | settings, make, said)


def work_figure2(_: str, *, manifest: Path) -> Work:
    """Prepare Figure 2."""
    clips, _stores = read_inputs(manifest, [])
    return _made(figure2(clips))


def work_figure4(_: str, *, segments: Path, movie: str, onto: Path | None, span: Any) -> Work:
    """Prepare Figure 4."""
    marks = read_manifest(segments)
    return _made(figure4(marks, clips_onto(marks, onto)[0], movie, span=span))


def _made(report: Report) -> Work:
    def make(made: Callable[[Report], None], **_: Any) -> Redone:
        made(report)
        return Redone((report,), (), {})

    return Work({"tables": report.name, **report.record}, make)


def index(
    redone: Redone, manifest: Manifest, stores: Sequence[Store], *, policy: LabelPolicy, seed: int
) -> str:
    """Make a Markdown page that links all that is written, and says where it comes from."""
    untrained = {name for store in stores for name in store.names if store[name].provenance.get("untrained")}
    template = asset("index.md.j2", "obygaze_studies.obygaze12")
    page: str = Template(template, trim_blocks=True, keep_trailing_newline=True).render(
        redone=redone,
        manifest=manifest,
        stores=stores,
        policy=policy,
        seed=seed,
        untrained=sorted(untrained),
        leak_notes=leak_notes,
        python=platform.python_version(),
        versions=VERSIONS,
    )
    return page


def leak_notes(report: Report) -> list[tuple[str, str]]:
    """List a report's notes on leaks, with and without leaks."""
    notes = [(block.title, note) for block in report.blocks for note in block.notes]
    return [(title, note) for title, note in notes if "LEAKS" in note or CLEAN in note]
