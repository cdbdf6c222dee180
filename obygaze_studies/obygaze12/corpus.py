"""Collect the data of the paper's tables and figures, and the notes of their captions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

import obygaze_features.manifest as manifests
import obygaze_models.report as reports
from obygaze_features.store import Store
from obygaze_features.templates import packaged
from obygaze_models.dataset import Dataset, load_datasets
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation import METRICS
from obygaze_models.protocol import Fold
from obygaze_studies.audit_common.findings import of
from obygaze_studies.obygaze12.import_annotations import CODEBOOK, is_obygaze12
from obygaze_studies.obygaze12.printed_values import PROBE_OF

VISUAL_CONCEPTS: tuple[str, ...] = CODEBOOK.visual_concepts
TASKS: Mapping[str, manifests.Task] = {task.name: task for task in CODEBOOK.tasks}

CAPTIONS: Mapping[str, Any] = packaged(__package__, "captions.toml")
"""What is told of every table and figure, and the columns of their tables."""

METRIC_TITLES: Mapping[str, str] = {
    **{name: metric.title for name, metric in METRICS.items()},
    "f1_pos": "F1 of S",
    "within_movie_auc": "within-movie AUC",
}
"""Titles of metrics in tables; S is the positive class."""

Writers = Mapping[str, Callable[..., str]]

WRITERS: Writers = {
    "str": str,
    "number": reports.number,
    "interval": reports.interval,
    "signed": reports.signed,
    "p_value": reports.p_value,
    "mean_sd": reports.mean_sd,
    "of": of,
    "metric": METRIC_TITLES.__getitem__,
    **{f"number{digits}": partial(reports.number, digits=digits) for digits in (1, 2)},
}
"""Writers of cells by the names that captions.toml gives them."""

PRINTED = {"printed", "printed_sd", "printed_in"}
"""Columns of data for what the papers print."""


def columns(name: str, table: str, writers: Writers = WRITERS) -> list[reports.Column]:
    """Make the columns that captions.toml declares; a writer is one of `WRITERS`, one given, or a format."""
    writer_of = {**WRITERS, **writers}
    return [
        (
            heading.format_map(METRIC_TITLES),
            keys if isinstance(keys, str) else tuple(keys),
            writer_of.get(writer) or writer.format,
        )
        for heading, keys, writer in CAPTIONS[name]["columns"][table]
    ]


def declared(
    title: str,
    table: tuple[str, str],
    rows: Sequence[Mapping[Any, Any]],
    notes: Sequence[str] = (),
    *,
    last: Sequence[Sequence[str]] = (),
    writers: Writers = WRITERS,
) -> reports.Block:
    """Make a table that captions.toml declares."""
    return reports.block(title, columns(*table, writers), rows, notes, last)


def refuse_other_codebook(codebook: manifests.Codebook, subject: str) -> None:
    """Refuse labels other than those of the paper's tables and figures.

    A codebook of another name is accepted if its levels, visual concepts and tasks are those of ObyGaze12, as
    those of MObyGaze are.

    Raises
    ------
    ProtocolError
        Names the codebook.
    """
    if _meaning(codebook) != _meaning(CODEBOOK):
        raise ProtocolError(
            f"{subject} is of the levels, visual concepts and tasks of obygaze12, and this manifest's "
            f"codebook is {codebook.name!r}: use obygaze evaluate with its own tasks"
        )


def _meaning(codebook: manifests.Codebook) -> tuple[object, ...]:
    """Return what decides whether a codebook's labels mean those of the paper, whatever it is called."""
    sides = [(task.negatives, task.positives) for task in codebook.tasks]
    return codebook.level_names, codebook.labels, codebook.visual_concepts, sides


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """What a table or figure has of one source.

    Attributes
    ----------
    source : Dataset
    rows : sequence of mapping
        Of the data; keys that begin with "_" are for tables alone.
    blocks : sequence of Block
    answers : sequence of str
        What was found.
    draw : callable, optional
        Draws it into a file.
    drawn : str
        What its caption says of this source.
    """

    source: Dataset
    rows: Sequence[Mapping[Any, Any]]
    blocks: Sequence[reports.Block]
    answers: Sequence[str] = ()
    draw: Callable[[Path], None] | None = None
    drawn: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class PaperCorpus:
    """The annotated clips that every backbone of some stores has features of.

    Attributes
    ----------
    manifest : Manifest
        Its levels read under `policy`.
    policy : LabelPolicy
    digest : str
        Of the manifest as given.
    sources : tuple of Dataset
        One a backbone, all of the same clips.
    """

    manifest: manifests.Manifest
    policy: manifests.LabelPolicy
    digest: str
    sources: tuple[Dataset, ...]

    @property
    def clips(self) -> Dataset:
        """The first source, for what all of them share."""
        return self.sources[0]

    @property
    def printed(self) -> bool:
        """Whether the papers print numbers of these clips."""
        return is_obygaze12(self.manifest)

    def printed_row(self, source: Dataset) -> str | None:
        """Name the papers' row on a source's backbone; features of random weights have none."""
        return PROBE_OF.get(source.backbone) if self.printed and not source.untrained else None

    @property
    def printed_rows(self) -> list[str | None]:
        """The papers' rows on the backbones of all sources."""
        return [self.printed_row(source) for source in self.sources]

    def record(self) -> dict[str, object]:
        """Describe what was read, as JSON values."""
        clips = self.clips
        sources = []
        for source in self.sources:
            names = ("label", "backbone", "store", "features", "pool")
            about: dict[str, object] = {name: getattr(source, name) for name in names}
            about |= {"n_features": int(source.X.shape[1]), "untrained": source.untrained}
            sources.append(about)
        return {
            "manifest_sha256": self.digest,
            "label_policy": str(self.policy),
            "clips": len(clips),
            "movies": len(set(clips.movies.tolist())),
            "levels": {level: int((clips.levels == level).sum()) for level in CODEBOOK.labels},
            "excluded": [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in clips.excluded],
            "sources": sources,
        }

    def report(
        self,
        name: str,
        parts: Sequence[Part],
        record: Mapping[str, object],
        *,
        notes: Sequence[str] = (),
        after: Sequence[str] = (),
        folds: Sequence[Fold] | None = None,
    ) -> reports.Report:
        """Make the report of a table or figure: under `paper` on its folds, under `strict` without any.

        Its notes are those of captions.toml; `notes` stand before those on what the papers print, `after`
        behind them.
        """
        protocol = "strict" if folds is None else "paper"
        stem = f"{name}-{protocol}"
        captions = CAPTIONS[name]
        printed = captions.get(f"{protocol}_printed", captions.get("printed", ()))
        all_notes = [*self._notes(folds), *captions.get(protocol, ()), *notes, *self.if_printed(*printed)]
        all_notes += after
        blocks = list(chain.from_iterable(part.blocks for part in parts))
        if not any(self.printed_rows):
            ours = list(map(_without_empty_printed, blocks))
            if self.printed and ours != blocks:
                titles = ", ".join(source.title for source in self.sources)
                unprinted = CAPTIONS["notes"]["unprinted"]
                all_notes.append(unprinted.format(printed=", ".join(PROBE_OF), titles=titles))
            blocks = ours
        pictures = []
        for part in parts:
            if part.draw:
                shown = f"{part.source.title}{part.drawn}; {captions.get(f'{protocol}_drawn', '')}"
                caption = f"{captions['title']} under the {protocol} protocol, {shown}"
                pictures.append(reports.Picture(f"{stem}-{part.source.label}", caption, part.draw))
        return reports.Report(
            name=stem,
            title=f"{captions['title']}, {protocol} protocol",
            notes=tuple(all_notes),
            blocks=tuple(blocks),
            data=self._shown_columns(pd.DataFrame(list(chain.from_iterable(part.rows for part in parts)))),
            record=self.record() | {"protocol": protocol, **record},
            pictures=tuple(pictures),
            answers=tuple(chain.from_iterable(part.answers for part in parts)),
        )

    def _shown_columns(self, data: pd.DataFrame) -> pd.DataFrame:
        """Leave out what only tables show, and what the papers print where they print nothing."""
        hidden = [name for name in map(str, data) if name.startswith("_")]
        if not self.printed:
            hidden += [name for name in map(str, data) if name in PRINTED]
        return data.drop(columns=hidden)

    def if_printed(self, *parts: Any) -> tuple[Any, ...]:
        """Return notes or rows that stand only where the papers print numbers of these clips."""
        return parts if self.printed else ()

    def _notes(self, folds: Sequence[Fold] | None) -> list[str]:
        """Say how an experiment was made, of the paper protocol on its folds, and name its features."""
        captions = CAPTIONS["notes"]
        clips = self.clips
        if folds is None:
            n_movies = len(set(clips.movies.tolist()))
            counts = {"clips": len(clips), "movies": n_movies, "excluded": len(clips.excluded)}
            notes = [*captions["strict"], captions["policies"][self.policy]]
            notes.append(captions["clips"].format(**counts))
        else:
            notes = list(captions["paper"])
            in_folds = {name for fold in folds for name in fold.train + fold.validation + fold.test}
            n_absent = len(in_folds - clips.row_of.keys())
            if n_absent:
                notes.append(captions["absent"].format(absent=n_absent))
        notes += [captions["source"].format(source=source) for source in self.sources]
        untrained = ", ".join(source.label for source in self.sources if source.untrained)
        if untrained:
            notes.append(captions["untrained"].format(labels=untrained))
        return notes


def load_corpus(
    stores: Sequence[Store], manifest: manifests.Manifest, policy: manifests.LabelPolicy
) -> PaperCorpus:
    """Read the features of every backbone of every store for the manifest's labelled clips.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    DatasetError
        A store has none of the clips, or the stores have none in common, or the same store is given twice.
    """
    refuse_other_codebook(manifest.codebook, "this table or figure")
    labelled = manifests.apply_policy(manifest, policy)
    return PaperCorpus(labelled, policy, manifest.digest(), load_datasets(stores, labelled))


def _without_empty_printed(table: reports.Block) -> reports.Block:
    """Leave out the columns of printed values that have none."""
    shown = []
    for place, heading in enumerate(table.headers):
        if not heading.startswith("printed") or any(_tells(row[place]) for row in table.rows):
            shown.append(place)

    def shown_cells(cells: Sequence[str]) -> tuple[str, ...]:
        return tuple(cells[place] for place in shown)

    return replace(table, headers=shown_cells(table.headers), rows=tuple(map(shown_cells, table.rows)))


def _tells(printed: str) -> bool:
    return printed not in {"", reports.NOTHING} and not printed.startswith("no number")
