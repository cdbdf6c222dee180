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
from obygaze_studies.audit_common.findings import part_of_total
from obygaze_studies.obygaze12.import_annotations import CODEBOOK, is_obygaze12
from obygaze_studies.obygaze12.printed_values import PAPER_NAME_OF_BACKBONE

VISUAL_CONCEPTS: tuple[str, ...] = CODEBOOK.visual_concepts
"""The visual concepts of ObyGaze12, in the order of the codebook."""

TASKS: Mapping[str, manifests.Task] = {task.name: task for task in CODEBOOK.tasks}
"""Name of a task of ObyGaze12 -> the task."""

CAPTIONS: Mapping[str, Any] = packaged(__package__, "captions.toml")
"""Name of a table or figure -> its title, notes, captions and columns."""

METRIC_TITLES: Mapping[str, str] = {
    **{name: metric.title for name, metric in METRICS.items()},
    "f1_pos": "F1 of S",
    "within_movie_auc": "within-movie AUC",
}
"""Titles of metrics in tables; S is the positive class."""

Writers = Mapping[str, Callable[..., str]]
"""Name -> function that formats the values of a cell."""

WRITERS: Writers = {
    "str": str,
    "number": reports.number,
    "interval": reports.interval,
    "signed": reports.signed,
    "p_value": reports.p_value,
    "mean_sd": reports.mean_sd,
    "of": part_of_total,
    "metric": METRIC_TITLES.__getitem__,
    **{f"number{digits}": partial(reports.number, digits=digits) for digits in (1, 2)},
}
"""The writers that captions.toml may name for the cells of any table."""

PRINTED = {"printed", "printed_sd", "printed_in"}
"""Columns of the data that hold the papers' printed values."""


def columns(name: str, table: str, writers: Writers = WRITERS) -> list[reports.Column]:
    """Make the columns of a table as captions.toml declares them.

    This file declares a column by three texts: its heading; the key, or keys, of the values of a row that it
    shows; and its writer, the name of a function that formats these values as text, or a format string.

    Parameters
    ----------
    name
        Table or figure of the paper, a key of `CAPTIONS`.
    table
        Which of its tables.
    writers
        Name -> function, of writers in addition to `WRITERS`.
    """
    writer_of = {**WRITERS, **writers}
    table_columns: list[reports.Column] = []
    for heading, keys, writer in CAPTIONS[name]["columns"][table]:
        title = heading.format_map(METRIC_TITLES)  # "{auc}" becomes the metric's title
        column_keys = keys if isinstance(keys, str) else tuple(keys)
        # A writer that is not the name of a function is a format string, such as "{:g}".
        write = writer_of.get(writer, writer.format)
        table_columns.append((title, column_keys, write))
    return table_columns


def declared_block(
    title: str,
    rows: Sequence[Mapping[Any, Any]],
    notes: Sequence[str] = (),
    *,
    columns_of: tuple[str, str],
    last: Sequence[Sequence[str]] = (),
    writers: Writers = WRITERS,
) -> reports.Block:
    """Make a table whose columns the file captions.toml declares: their headings, values and formats.

    Parameters
    ----------
    title
        Title of the table.
    rows
        A mapping for each row: name of a value -> the value.
    notes
        Notes under the table.
    last
        Lines behind the rows, such as a mean: the text of each cell.
    columns_of
        Where captions.toml declares the columns: the table or figure of the paper that is reproduced, and
        which of our tables for it, such as ("table2", "strict").
    writers
        Name of a format in captions.toml -> function that writes a cell; for formats of this table alone.
    """
    table_or_figure, which_table = columns_of
    return reports.block(title, columns(table_or_figure, which_table, writers), rows, notes, last)


def refuse_other_codebook(codebook: manifests.Codebook, subject: str) -> None:
    """Refuse labels other than those of the paper's tables and figures.

    A codebook of another name is accepted if its levels, visual concepts and tasks are those of ObyGaze12, as
    those of MObyGaze are.

    Raises
    ------
    ProtocolError
        Names the codebook.
    """
    if _parts_with_meaning(codebook) != _parts_with_meaning(CODEBOOK):
        raise ProtocolError(
            f"{subject} is of the levels, visual concepts and tasks of obygaze12, and this manifest's "
            f"codebook is {codebook.name!r}: use obygaze evaluate with its own tasks"
        )


def _parts_with_meaning(codebook: manifests.Codebook) -> tuple[object, ...]:
    """Return the parts of a codebook that give its labels their meaning: levels, visual concepts and tasks.

    Two codebooks with equal parts can be used in place of each other, whatever their names.
    """
    sides = [(task.negatives, task.positives) for task in codebook.tasks]
    return codebook.level_names, codebook.labels, codebook.visual_concepts, sides


@dataclass(frozen=True, eq=False, kw_only=True)
class SourcePart:
    """The part of a table or figure that is computed from one source.

    Attributes
    ----------
    source : Dataset
        The features of one backbone.
    rows : sequence of mapping
        Rows of the report's data; keys that begin with "_" are shown in tables only.
    blocks : sequence of Block
        The tables.
    answers : sequence of str
        The results in sentences.
    draw : callable, optional
        Function that draws the figure into a file.
    caption_words : str
        Words about this source that the figure's caption adds.
    """

    source: Dataset
    rows: Sequence[Mapping[Any, Any]]
    blocks: Sequence[reports.Block]
    answers: Sequence[str] = ()
    draw: Callable[[Path], None] | None = None
    caption_words: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class PaperCorpus:
    """The annotated clips for which all backbones have features.

    Attributes
    ----------
    manifest : Manifest
        The clips, with the levels that `policy` gives them.
    policy : LabelPolicy
        The label policy.
    digest : str
        Digest of the manifest as given, before the policy.
    sources : tuple of Dataset
        The features of each backbone, all of the same clips.
    """

    manifest: manifests.Manifest
    policy: manifests.LabelPolicy
    digest: str
    sources: tuple[Dataset, ...]

    @property
    def first_source(self) -> Dataset:
        """The first source, for the clips' labels and movies, which are the same in all sources."""
        return self.sources[0]

    @property
    def has_printed_numbers(self) -> bool:
        """Whether the papers print numbers of these clips."""
        return is_obygaze12(self.manifest)

    def printed_backbone(self, source: Dataset) -> str | None:
        """Return the papers' name of a source's backbone; None if they print no numbers of its features."""
        if not self.has_printed_numbers or source.untrained:
            return None
        return PAPER_NAME_OF_BACKBONE.get(source.backbone)

    @property
    def printed_backbones(self) -> list[str | None]:
        """The `printed_backbone` of every source, in order."""
        return [self.printed_backbone(source) for source in self.sources]

    def record(self) -> dict[str, object]:
        """Describe the clips, their labels and features as JSON values."""
        clips = self.first_source
        sources = []
        for source in self.sources:
            names = ("label", "backbone", "store", "features", "pool")
            source_record: dict[str, object] = {name: getattr(source, name) for name in names}
            source_record |= {"n_features": int(source.X.shape[1]), "untrained": source.untrained}
            sources.append(source_record)
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
        parts: Sequence[SourcePart],
        record: Mapping[str, object],
        *,
        notes: Sequence[str] = (),
        after: Sequence[str] = (),
        folds: Sequence[Fold] | None = None,
    ) -> reports.Report:
        """Make the report of a table or figure from the parts of its sources.

        Rows, tables and answers of all parts are joined. Above them stand notes, in this order: on protocol,
        clips and features; those that captions.toml has for this table or figure; `notes`; those on the
        papers' numbers; `after`.

        Parameters
        ----------
        name
            Table or figure, a key of `CAPTIONS`.
        parts
            The part of each source.
        record
            Inputs and options, in addition to those of the corpus.
        notes
            Notes after those of captions.toml and before those about the papers' numbers.
        after
            Notes after those about the papers' numbers.
        folds
            The folds of the `paper` protocol; None under `strict`.
        """
        protocol = "strict" if folds is None else "paper"
        rows = list(chain.from_iterable(part.rows for part in parts))
        blocks = list(chain.from_iterable(part.blocks for part in parts))
        answers = chain.from_iterable(part.answers for part in parts)

        captions = CAPTIONS[name]
        all_notes = [
            *self._notes(folds),
            *captions.get(protocol, ()),  # notes on this table or figure under the protocol
            *notes,
            *self._notes_on_printed(captions, protocol),
            *after,
        ]

        # If the papers print no numbers of any of the backbones, the columns for printed numbers are empty:
        # they are left out, and a note says so.
        if not any(self.printed_backbones):
            blocks_without_printed = [_without_empty_printed(table) for table in blocks]
            if self.has_printed_numbers and blocks_without_printed != blocks:
                all_notes.append(self._note_on_unprinted())
            blocks = blocks_without_printed

        return reports.Report(
            name=f"{name}-{protocol}",
            title=f"{captions['title']}, {protocol} protocol",
            notes=tuple(all_notes),
            blocks=tuple(blocks),
            data=self._shown_columns(pd.DataFrame(rows)),
            record=self.record() | {"protocol": protocol, **record},
            pictures=_pictures(name, protocol, parts),
            answers=tuple(answers),
        )

    def _notes_on_printed(self, captions: Mapping[str, Any], protocol: str) -> tuple[str, ...]:
        """Return the notes on printed numbers, if the papers print numbers of this corpus; else none.

        `captions` is what captions.toml says of a table or figure. It may have notes for one protocol alone,
        such as "strict_printed", and else has the same for both, "printed".
        """
        notes_of_both = captions.get("printed", ())
        notes = captions.get(f"{protocol}_printed", notes_of_both)
        return self.if_printed(*notes)

    def _note_on_unprinted(self) -> str:
        """Write a note that the papers print no numbers of these backbones, and of which they do."""
        note: str = CAPTIONS["notes"]["unprinted"]  # a text of captions.toml, with fields
        titles = ", ".join(source.title for source in self.sources)
        return note.format(printed=", ".join(PAPER_NAME_OF_BACKBONE), titles=titles)

    def _shown_columns(self, data: pd.DataFrame) -> pd.DataFrame:
        """Drop from the rows of a report the columns that only its tables show: their names begin with "_".

        For other corpora than ObyGaze12, the columns of the papers' numbers (`PRINTED`) are dropped too.
        """
        hidden = [name for name in map(str, data) if name.startswith("_")]
        if not self.has_printed_numbers:
            hidden += [name for name in map(str, data) if name in PRINTED]
        return data.drop(columns=hidden)

    def if_printed(self, *parts: Any) -> tuple[Any, ...]:
        """Return the notes or rows if the papers print numbers of these clips, and nothing otherwise."""
        return parts if self.has_printed_numbers else ()

    def _notes(self, folds: Sequence[Fold] | None) -> list[str]:
        """Write the notes on protocol, clips and features, whose texts are in captions.toml.

        Parameters
        ----------
        folds
            The folds of the `paper` protocol; None under `strict`.
        """
        captions = CAPTIONS["notes"]
        clips = self.first_source
        if folds is None:  # the protocol is `strict`
            n_movies = len(set(clips.movies.tolist()))
            counts = {"clips": len(clips), "movies": n_movies, "excluded": len(clips.excluded)}
            notes = [*captions["strict"], captions["policies"][self.policy]]
            notes.append(captions["clips"].format(**counts))
        else:
            notes = list(captions["paper"])
            clips_in_folds: set[str] = set()
            for fold in folds:
                clips_in_folds.update(fold.train, fold.validation, fold.test)
            n_without_features = len(clips_in_folds - clips.row_of.keys())
            if n_without_features:
                notes.append(captions["absent"].format(absent=n_without_features))

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


def _pictures(name: str, protocol: str, parts: Sequence[SourcePart]) -> tuple[reports.Picture, ...]:
    """Return the pictures of a table or figure with their captions, one for each source that draws one."""
    captions = CAPTIONS[name]
    what_is_drawn = captions.get(f"{protocol}_drawn", "")
    pictures = []
    for part in parts:
        if part.draw is None:
            continue
        details = f"{part.source.title}{part.caption_words}; {what_is_drawn}"
        caption = f"{captions['title']} under the {protocol} protocol, {details}"
        picture_name = f"{name}-{protocol}-{part.source.label}"
        pictures.append(reports.Picture(picture_name, caption, part.draw))
    return tuple(pictures)


def _without_empty_printed(table: reports.Block) -> reports.Block:
    """Drop the columns of printed values, whose headings begin with "printed", that are empty in all rows."""
    shown_columns = []
    for index, heading in enumerate(table.headers):
        is_printed = heading.startswith("printed")
        has_value = any(_is_value(row[index]) for row in table.rows)
        if has_value or not is_printed:
            shown_columns.append(index)

    def shown_cells(cells: Sequence[str]) -> tuple[str, ...]:
        """Return the cells of a row that are shown."""
        return tuple(cells[index] for index in shown_columns)

    return replace(table, headers=shown_cells(table.headers), rows=tuple(map(shown_cells, table.rows)))


def _is_value(printed: str) -> bool:
    """Return whether a cell of a column of printed values holds a value.

    Without one it is empty, or shows the sign for nothing, or says that there is no number.
    """
    return printed not in {"", reports.NOTHING} and not printed.startswith("no number")
