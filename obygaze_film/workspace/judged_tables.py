"""Read what people judged in scored films' folders, and in tables elsewhere, for whoever counts or learns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from obygaze_features.manifest import DEFINITION, Codebook, Manifest, import_spans
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import Decisions, codebook_of
from obygaze_film.workspace.definitions import Meanings
from obygaze_film.workspace.ledger import LEDGER, Ledger
from obygaze_film.workspace.ledger_lines import Header


class JudgedTables(NamedTuple):
    """Judgements of films.

    Attributes
    ----------
    manifest : Manifest
        Definitions that people declared to mean the same are one in its column `definition`.
    meanings : Meanings
        By which they are one.
    notices : list of str
        What is to be said of the ledgers and of the tables.
    """

    manifest: Manifest
    meanings: Meanings
    notices: list[str]


def read_judged(
    films: Mapping[Path, Timeline],
    book: Codebook | None,
    names: Sequence[str],
    more: Sequence[Path] = (),
    *,
    root: Path | None = None,
) -> JudgedTables:
    """Read the tables of these names in scored films' folders, as their ledgers are now, and `more` tables.

    Parameters
    ----------
    films
        By folder.
    book
        Of the levels; by default each film's own for its ledger, and the tables' own.
    names
        Of tables in the folders.
    more
        Tables elsewhere.
    root
        Of the manifest.
    """
    headers: list[Header] = []
    notices: list[str] = []
    for folder, film in films.items():
        if (folder / LEDGER).is_dir():
            decisions = Decisions(folder, film, book or codebook_of(film.model().codebook, None))
            headers += decisions.headers
            notices += decisions.notices
    tables = [folder / name for folder in films for name in names]
    files = [*filter(Path.is_file, tables), *more]
    imported = import_spans(files, root or Path(), "judgements", codebook=book)
    meanings = Meanings(headers)
    manifest = one_definition_a_meaning(imported.manifest, meanings)
    return JudgedTables(manifest, meanings, [*notices, *imported.notices])


def meanings_in(folders: Sequence[Path]) -> Meanings:
    """Read which definitions mean the same, as people declared in the ledgers of scored films."""
    headers: list[Header] = []
    for folder in folders:
        ledger = Ledger(folder, lambda _: None)
        ledger.read()
        headers += [line.header for line in ledger.lines.values() if line.header is not None]
    return Meanings(headers)


def one_definition_a_meaning(manifest: Manifest, meanings: Meanings) -> Manifest:
    """Give judgements whose definitions mean the same one definition."""
    clips = []
    for clip in manifest:
        definition = clip.extras.get(DEFINITION, "")
        if definition and meanings.of(definition) != definition:
            clips.append(replace(clip, extras={**clip.extras, DEFINITION: meanings.of(definition)}))
        else:
            clips.append(clip)
    return manifest.with_clips(clips)
