"""Read what people judged in scored films' folders, and in tables elsewhere, for whoever counts or learns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from obygaze_features.manifest import DEFINITION, Clip, Codebook, Manifest, import_spans
from obygaze_film.notes import counted_message
from obygaze_film.scored_files import SETTLED
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import Decisions, codebook_of
from obygaze_film.workspace.definitions import Meanings
from obygaze_film.workspace.ledger import LEDGER, Ledger
from obygaze_film.workspace.ledger_lines import Header
from obygaze_film.workspace.settling import span_key


class JudgedTables(NamedTuple):
    """Judgements of films.

    Attributes
    ----------
    manifest : Manifest
        The judgements. In its column `definition`, definitions that people declared to mean the same have one
        digest.
    meanings : Meanings
        Which definitions those are.
    notices : list of str
        Messages for the user about the ledgers and the tables.
    """

    manifest: Manifest
    meanings: Meanings
    notices: list[str]


def read_judged(
    films: Mapping[Path, Timeline],
    book: Codebook | None,
    names: Sequence[str],
    other_tables: Sequence[Path] = (),
    *,
    settled: bool = False,
    root: Path | None = None,
) -> JudgedTables:
    """Read tables of judgements: those in scored films' folders, written anew from the ledgers, and others.

    Parameters
    ----------
    films
        Folder of a scored film -> the film.
    book
        Codebook of the levels; by default each film's own for its ledger, and the tables' own.
    names
        File names of the tables to read in each folder.
    other_tables
        Further tables elsewhere.
    settled
        Whether to replace what people judged of a span by what they agreed on.
    root
        Folder that paths in the manifest are relative to.
    """
    root = root or Path()
    headers: list[Header] = []
    notices: list[str] = []
    for folder, film in films.items():
        if (folder / LEDGER).is_dir():
            decisions = _with_tables_written_anew(folder, film, book)
            headers += decisions.headers
            notices += decisions.notices
    paths_in_folders = [folder / name for folder in films for name in names]
    tables = [path for path in paths_in_folders if path.is_file()]
    imported = import_spans([*tables, *other_tables], root, "judgements", codebook=book)
    notices += imported.notices
    manifest = imported.manifest
    tables_of_agreed = [folder / SETTLED for folder in films if (folder / SETTLED).is_file()]
    if settled and tables_of_agreed:
        agreed = import_spans(tables_of_agreed, root, "judgements", codebook=book)
        notices += agreed.notices
        manifest = with_agreed(manifest, agreed.manifest)
        n_at_two_levels = _n_settled_at_two_levels(agreed.manifest)
        if n_at_two_levels:
            notices.append(counted_message("settled_twice", n_at_two_levels))
    meanings = Meanings(headers)
    return JudgedTables(with_common_definitions(manifest, meanings), meanings, notices)


def _with_tables_written_anew(folder: Path, film: Timeline, book: Codebook | None) -> Decisions:
    """Open the decisions in a scored film's folder, which writes its tables anew from the ledger."""
    return Decisions(folder, film, book or codebook_of(film.model().codebook, None))


def with_agreed(judged: Manifest, agreed: Manifest) -> Manifest:
    """Replace what was judged of a span by what people agreed on, where they agreed on one level of it.

    A model learns from the result. Where a span was settled at two levels, its judgements stay.

    Parameters
    ----------
    judged : Manifest
        Judgements.
    agreed : Manifest
        Agreed decisions, each of which settles what two people or more differed on.
    """
    clips_at: dict[tuple[str, float, float], list[Clip]] = {}
    for clip in agreed:
        clips_at.setdefault(_film_and_span(clip), []).append(clip)
    # Span -> its agreed decision, the last one if several give the same level.
    agreed_at: dict[tuple[str, float, float], Clip] = {}
    for span, clips_of_span in clips_at.items():
        levels = {clip.level for clip in clips_of_span}
        if len(levels) == 1:
            agreed_at[span] = clips_of_span[-1]
    clips = [clip for clip in judged if _film_and_span(clip) not in agreed_at]
    for number, clip in enumerate(agreed_at.values(), start=1):
        # Ledgers of two films may have the same ids.
        clips.append(replace(clip, clip_id=f"agreed-{number:04d}-{clip.clip_id}"))
    return judged.with_clips(_with_equal_columns(clips))


def _with_equal_columns(clips: Sequence[Clip]) -> list[Clip]:
    """Give each clip all columns that some clip has: the clips of a manifest must have the same ones."""
    columns = dict.fromkeys(name for clip in clips for name in clip.extras)
    filled = []
    for clip in clips:
        extras = {name: clip.extras.get(name, "") for name in columns}
        filled.append(replace(clip, extras=extras))
    return filled


def _n_settled_at_two_levels(agreed: Manifest) -> int:
    """Count the spans that people settled at more than one level, so that nothing is settled there."""
    levels_at: dict[tuple[str, float, float], set[str]] = {}
    for clip in agreed:
        levels_at.setdefault(_film_and_span(clip), set()).add(clip.level or "")
    return sum(len(levels) > 1 for levels in levels_at.values())


def _film_and_span(clip: Clip) -> tuple[str, float, float]:
    """Return a clip's movie, start and end, rounded so that equal spans compare as equal."""
    return (clip.movie, *span_key(clip))


def meanings_in(folders: Sequence[Path], books: Sequence[Codebook] = ()) -> Meanings:
    """Read which definitions mean the same, as people declared in the ledgers of scored films.

    Definitions are named by the ledgers' codebooks, and by `books`.
    """
    headers: list[Header] = []
    for folder in folders:
        ledger = Ledger(folder, say=lambda _: None)
        ledger.read()
        headers += [line.header for line in ledger.lines.values() if line.header is not None]
    return Meanings(headers, books)


def with_common_definitions(manifest: Manifest, meanings: Meanings) -> Manifest:
    """Replace definitions that mean the same by one of them (`Meanings.of`), in each judgement."""
    clips = []
    for clip in manifest:
        definition = clip.extras.get(DEFINITION, "")
        if definition and meanings.of(definition) != definition:
            clips.append(replace(clip, extras={**clip.extras, DEFINITION: meanings.of(definition)}))
        else:
            clips.append(clip)
    return manifest.with_clips(clips)
