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

FIGURE2 = "figure2"
"""The figure that needs no store, and has no protocol."""

TABLES = (FIGURE2, *MODULES)
"""All tables and figures of `redo`, in the order in which they are made."""

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

    def show(n_done: int, total: int) -> None:
        progress(n_done, total, at)

    counted: list[Report] = []
    if FIGURE2 in names:
        counted.append(figure2(manifest))
        made(counted[0])
    trained = [name for name in names if name != FIGURE2]
    for protocol_name in _protocols(protocol) if trained else ():
        paper = protocol_name == "paper"
        corpus = load_corpus(stores, manifest, LabelPolicy.RAW if paper else policy)
        results_of: type[Any] = PaperResults if paper else StrictResults
        results = [results_of(corpus, source, seed, show, kept) for source in corpus.sources]
        for name in trained:
            at = f"{name}, {protocol_name} protocol"
            first = results[0]
            if name in NEED_CONCEPTS and isinstance(first, StrictResults) and not first.concept_targets:
                notes.append(f"{at}: not made, no concept is marked in enough movies")
                continue
            module = import_module(f"obygaze_studies.obygaze12.{name}")
            make_report = module.paper_report if paper else module.strict_report
            try:
                with one_blas_thread() if paper else nullcontext():
                    report = make_report(results)
            except FoldsError as error:
                missing = error
                notes.append(f"{at}: not made, {error}")
                continue
            reports.append(report)
            made(report)
        for result in results:
            for kind, table in result.tables.items():
                tables[f"{kind}-{protocol_name}-{result.source.label}"] = table
    if missing and not reports:
        raise missing
    return Redone((*counted, *reports), tuple(notes), tables)


def _protocols(protocol: Protocol) -> tuple[str, ...]:
    return ("paper", "strict") if protocol == "both" else (protocol,)


table2, table4, figure3, figure5, figure6 = (partial(redo, [name]) for name in MODULES)
all_ = partial(redo, TABLES, protocol="both")


def work(
    names: Sequence[str],
    manifest: Path,
    stores: Sequence[Path],
    *,
    protocol: Protocol,
    policy: str,
    seed: int,
) -> Work:
    """Prepare tables and figures by their names, as for `redo`, and a page that links them.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    clips, opened = read_inputs(manifest, stores)
    refuse_other_codebook(clips.codebook, "this table or figure")
    notices: list[str] = []
    if protocol != "paper" and any(name != FIGURE2 for name in names):
        _, notices = under_policy(clips, policy)
    labels = LabelPolicy(policy)

    def make(kept: Path | None, **how: Any) -> Redone:
        redone = redo(names, clips, opened, protocol, policy=labels, seed=seed, kept=kept, **how)
        folder = kept.parent if kept else Path()
        for stem, table in redone.tables.items():
            write_whole(folder / f"{stem}.csv", to_csv(table))
        page = index(redone, clips, opened, policy=labels, seed=seed)
        write_whole(folder / "index.md", page)
        return redone

    inputs = {
        "tables": list(names),
        "manifest": clips.digest(),
        "stores": [store.fingerprint for store in opened],
        "policy": policy,
        "protocol": protocol,
        "seed": seed,
    }
    return Work(inputs, make, notices)


def work_figure4(
    segments: Path, movie: str, *, onto: Path | None = None, span: tuple[float, float] | None = None
) -> Work:
    """Prepare Figure 4."""
    annotations = read_manifest(segments)
    clips, _ = clips_onto(annotations, onto)
    report = figure4(annotations, clips, movie, span=span)

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
