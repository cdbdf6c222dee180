"""Read what people judged in scored films' folders, and in tables elsewhere, for whoever counts or learns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from obygaze_features.manifest import DEFINITION, Clip, Codebook, Manifest, import_spans
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
    settled: bool = False,
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
    settled
        Whether what people agreed on stands in the place of what they had judged.
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
    notices += imported.notices
    manifest = imported.manifest
    settled_files = [folder / SETTLED for folder in films if settled and (folder / SETTLED).is_file()]
    if settled_files:
        agreed = import_spans(settled_files, root or Path(), "judgements", codebook=book)
        notices += agreed.notices
        manifest = with_settled(manifest, agreed.manifest)
    meanings = Meanings(headers)
    return JudgedTables(one_definition_a_meaning(manifest, meanings), meanings, notices)


def with_settled(judged: Manifest, agreed: Manifest) -> Manifest:
    """Replace what was judged of a span by what people agreed on, where they agreed on one level of it.

    A model learns from the result. Where a span was settled at two levels, its judgements stay.

    Parameters
    ----------
    judged, agreed : Manifest
        Judgements, and decisions that two people or more settled.
    """
    agreed_at: dict[tuple[str, float, float], list[Clip]] = {}
    for clip in agreed:
        agreed_at.setdefault(_place_of(clip), []).append(clip)
    settled: dict[tuple[str, float, float], Clip] = {}
    for place, clips_there in agreed_at.items():
        levels = {clip.level for clip in clips_there}
        if len(levels) == 1:
            settled[place] = clips_there[-1]
    clips = [clip for clip in judged if _place_of(clip) not in settled]
    for number, clip in enumerate(settled.values(), start=1):
        name = f"agreed-{number:04d}-{clip.clip_id}"
        clips.append(replace(clip, clip_id=name))
    # Both tables may have columns of their own: a manifest has the same ones in each row.
    columns = dict.fromkeys(name for clip in clips for name in clip.extras)
    filled = []
    for clip in clips:
        extras = {name: clip.extras.get(name, "") for name in columns}
        filled.append(replace(clip, extras=extras))
    return judged.with_clips(filled)


def _place_of(clip: Clip) -> tuple[str, float, float]:
    """Return the film of a clip and the key of its span."""
    return (clip.movie, *span_key(clip))


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
