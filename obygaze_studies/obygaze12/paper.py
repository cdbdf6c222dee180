"""Reproduce the tables and figures of Tores et al., CVPR 2024, and of its preprint, arXiv 2401.13296.

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
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from jinja2 import Template

from obygaze_features.io import write_whole
from obygaze_features.manifest import LabelPolicy, Manifest, read_manifest
from obygaze_features.store import Store
from obygaze_models.blas import one_blas_thread
from obygaze_models.commands import read_inputs, under_policy
from obygaze_models.report import Report, asset, to_csv
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12.corpus import PaperCorpus, load_corpus, refuse_other_codebook
from obygaze_studies.obygaze12.figure4 import figure4
from obygaze_studies.obygaze12.paper_folds import CAPTION_WITHOUT_LEAK
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults
from obygaze_studies.obygaze12.statistics import clips_onto, figure2
from obygaze_studies.unfinished import VERSIONS, Study

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
"""Figures that under the strict protocol need at least one concept marked in enough movies."""


@dataclass(frozen=True, eq=False, slots=True)
class Redone:
    """The reproduced tables and figures.

    Attributes
    ----------
    reports : tuple of Report
        The reports that were made.
    notes : tuple of str
        For each report that was not made, the reason.
    tables : dict of str to DataFrame
        Predictions, and the settings chosen by inner folds: name of the file without ending -> table.
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
    results_folder: Path | None = None,
    on_report: Callable[[Report], None] = lambda _: None,
) -> Redone:
    """Reproduce tables and figures from the features of every backbone of some stores.

    Parameters
    ----------
    names : sequence of str
        Names from `TABLES`. ``table2`` with a store of LSMDC features is also Table 5. ``figure2`` has no
        protocol and is made first.
    manifest : Manifest
        ObyGaze12, or other films with its levels, visual concepts and tasks, for which the papers' numbers
        are not shown.
    stores : sequence of Store
        Stores of features.
    protocol : {"strict", "paper", "both"}
        Which folds to evaluate on.
    policy : LabelPolicy
        Label policy of the strict protocol; the paper protocol has the labels of the released split files.
    seed : int
        Random seed of all models.
    progress : callable, optional
        Called now and then with the number of trained models, the number of all models, and the name of the
        table that they are for.
    results_folder : path, optional
        Folder in which trained results are kept, and from which those of an earlier call with the same
        arguments are read.
    on_report : callable, optional
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
    reports_without_training: list[Report] = []
    if FIGURE2 in names:
        report_without_training = figure2(manifest)
        reports_without_training.append(report_without_training)
        on_report(report_without_training)

    trained_names = [name for name in names if name != FIGURE2]
    protocols = _protocols(protocol) if trained_names else ()
    reports: list[Report] = []
    notes: list[str] = []
    tables: dict[str, pd.DataFrame] = {}
    last_error: FoldsError | None = None
    for protocol_name in protocols:
        policy_of_protocol = LabelPolicy.RAW if protocol_name == "paper" else policy
        corpus = load_corpus(stores, manifest, policy_of_protocol)
        redone = _redo_protocol(
            protocol_name,
            trained_names,
            corpus,
            seed=seed,
            progress=progress,
            results_folder=results_folder,
            on_report=on_report,
        )
        reports += redone.reports
        notes += redone.notes
        tables |= redone.tables
        if redone.last_error is not None:
            last_error = redone.last_error

    if last_error is not None and not reports:
        raise last_error
    return Redone((*reports_without_training, *reports), tuple(notes), tables)


class _RedoneUnderProtocol(NamedTuple):
    """The tables and figures of trained models under one protocol.

    Attributes
    ----------
    reports, notes, tables
        As of a `Redone`.
    last_error
        The last error for want of clips with features; None if there was none.
    """

    reports: list[Report]
    notes: list[str]
    tables: dict[str, pd.DataFrame]
    last_error: FoldsError | None


def _redo_protocol(
    protocol: str,
    names: Sequence[str],
    corpus: PaperCorpus,
    *,
    seed: int,
    progress: Progress,
    results_folder: Path | None,
    on_report: Callable[[Report], None],
) -> _RedoneUnderProtocol:
    """Reproduce tables and figures of trained models under one protocol, "paper" or "strict".

    A table or figure that cannot be made has a note that says why. `names` are those of tables and figures,
    `corpus` holds the clips and their features, and the other arguments are those of `redo`.
    """
    task = _ShownTask(progress)
    results_class: type[Any] = PaperResults if protocol == "paper" else StrictResults
    results = [results_class(corpus, source, seed, task.show, results_folder) for source in corpus.sources]

    reports = []
    notes = []
    last_error = None
    for name in names:
        task.name = f"{name}, {protocol} protocol"
        try:
            report = _trained_report(name, results)
        except FoldsError as error:
            last_error = error
            notes.append(f"{task.name}: not made, {error}")
            continue
        if report is None:
            notes.append(f"{task.name}: not made, no concept is marked in enough movies")
            continue
        reports.append(report)
        on_report(report)

    tables = {}
    for result in results:
        for kind, table in result.tables.items():
            tables[f"{kind}-{protocol}-{result.source.label}"] = table
    return _RedoneUnderProtocol(reports, notes, tables, last_error)


@dataclass
class _ShownTask:
    """Adds to the progress the name of the table or figure that models are being trained for.

    Attributes
    ----------
    progress
        As `redo` takes it.
    name
        The name, which is set before each table or figure is made.
    """

    progress: Progress
    name: str = ""

    def show(self, n_done: int, total: int) -> None:
        """Show how many models are trained, of how many, with the name of the table."""
        self.progress(n_done, total, self.name)


def _trained_report(name: str, results: Sequence[PaperResults] | Sequence[StrictResults]) -> Report | None:
    """Make a table or figure from the results of all sources under one protocol.

    Returns None if it needs concepts, and no concept is marked in enough movies.
    """
    # The module of a table or figure has its name (`MODULES`), and a function for each protocol.
    module = import_module(f"obygaze_studies.obygaze12.{name}")
    report: Report
    if isinstance(results[0], StrictResults):
        if name in NEED_CONCEPTS and not results[0].concept_targets:
            return None
        report = module.strict_report(results)
    else:
        # The number of threads would change the rounding of the fits; the strict protocol limits it itself.
        with one_blas_thread():
            report = module.paper_report(results)
    return report


def _protocols(protocol: Protocol) -> tuple[str, ...]:
    """List the protocols to use, in the order in which reports are made."""
    return ("paper", "strict") if protocol == "both" else (protocol,)


table2, table4, figure3, figure5, figure6 = (partial(redo, [name]) for name in MODULES)
all_ = partial(redo, TABLES, protocol="both")


def prepare_study(
    names: Sequence[str],
    manifest: Path,
    stores: Sequence[Path],
    *,
    protocol: Protocol,
    policy: str,
    seed: int,
) -> Study:
    """Read the inputs of `redo`, and return the study that makes its tables and figures.

    The study also writes index.md, a page that links them, and tables of predictions. The arguments are those
    of `redo`, but for the paths of the manifest and of the stores, which are read here.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    loaded_manifest, opened_stores = read_inputs(manifest, stores)
    refuse_other_codebook(loaded_manifest.codebook, "this table or figure")

    # Notices on what the label policy changes, if models are trained on labels under it. `redo` applies it.
    notices: list[str] = []
    trains_models = set(names) != {FIGURE2}
    if protocol != "paper" and trains_models:
        _, notices = under_policy(loaded_manifest, policy)
    label_policy = LabelPolicy(policy)

    def make(results_folder: Path | None, **callbacks: Any) -> Redone:
        """Make the tables and figures; write the predictions and the page that links all files."""
        redone = redo(
            names,
            loaded_manifest,
            opened_stores,
            protocol,
            policy=label_policy,
            seed=seed,
            results_folder=results_folder,
            **callbacks,
        )
        # The folder of trained results lies in the output's folder.
        output_folder = results_folder.parent if results_folder else Path()
        for stem, table in redone.tables.items():
            write_whole(output_folder / f"{stem}.csv", to_csv(table))
        page = index_page(redone, loaded_manifest, opened_stores, policy=label_policy, seed=seed)
        write_whole(output_folder / "index.md", page)
        return redone

    # What the results depend on, so that those of an earlier, interrupted call are used for the same inputs.
    inputs = {
        "tables": list(names),
        "manifest": loaded_manifest.digest(),
        "stores": [store.fingerprint for store in opened_stores],
        "policy": policy,
        "protocol": protocol,
        "seed": seed,
    }
    return Study(inputs, make, notices)


def prepare_figure4(
    segments: Path, movie: str, *, onto: Path | None = None, span: tuple[float, float] | None = None
) -> Study:
    """Read the inputs of Figure 4, and return the study that draws it.

    A study is made in two steps, as others take long: reading inputs, which finds mistakes at once, and then
    making reports. Nothing is trained for this figure, so its report is made in the first step, and the
    second only hands it over.

    Parameters
    ----------
    segments
        Manifest of free annotations.
    movie
        The film to draw.
    onto
        Manifest of the clips to project onto; by default windows.
    span
        Part of the film, in seconds.
    """
    annotations = read_manifest(segments)
    clips, _ = clips_onto(annotations, onto)
    report = figure4(annotations, clips, movie, span=span)

    def make(on_report: Callable[[Report], None], **_: Any) -> Redone:
        """Hand over the report that is already made."""
        on_report(report)
        return Redone(reports=(report,), notes=(), tables={})

    return Study(inputs={"tables": report.name, **report.record}, make=make)


def index_page(
    redone: Redone, manifest: Manifest, stores: Sequence[Store], *, policy: LabelPolicy, seed: int
) -> str:
    """Make a Markdown page that links all written files and names the inputs, settings and versions."""
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
    """List a report's notes that say whether its folds leak, each with the title of its table."""
    titles_and_notes = [(block.title, note) for block in report.blocks for note in block.notes]
    return [
        (title, note) for title, note in titles_and_notes if "LEAKS" in note or CAPTION_WITHOUT_LEAK in note
    ]
