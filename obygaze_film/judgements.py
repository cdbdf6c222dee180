"""Import judgements of spans of a scored film, made in the workspace or filled in for `obygaze film next`."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from obygaze_features.errors import ManifestError
from obygaze_features.io import local_path
from obygaze_features.manifest import (
    BUILTIN,
    CODEBOOK_COLUMN,
    FIELDS,
    SEEN_SCORE,
    Clip,
    Codebook,
    Imported,
    Manifest,
    Problems,
    Row,
    builtin_codebook,
    clip_of,
    counted,
    default_codebook,
    delimiter_of,
    read_table,
    slug,
    unique_id,
)

KEPT = (SEEN_SCORE, "judgement", "draw", "place")
"""Extra columns that the manifest keeps."""

SITTING = timedelta(hours=4)
"""Decisions this far apart, or less, may have been made on a page that stayed open between them."""

ADVICE = "give what `obygaze film open` wrote, or what `obygaze film next` did, filled in"


def import_judgements(
    files: Sequence[Path | str], root: Path | str, codebook: Codebook | None = None
) -> Imported:
    r"""Read judgements of one or more annotators as a manifest.

    Rows without a level are left out and counted. Where an annotator judged a span more than once, the last
    judgement counts. Ids are made anew: movie, annotator, number. Judgements that may have the concepts of
    the one before them are named (`repeated_concepts`).

    Parameters
    ----------
    files
        CSV files with the columns of a manifest and `seen_score`.
    root
        Folder that the manifest will lie in.
    codebook
        Of the levels and concepts; by default the one that the files name, else the default one.

    Raises
    ------
    ManifestError
        Naming file, line and column.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_film
    >>> rows = "a,film0,,0,5,S,,AB,1\nb,film0,,5,9,,,AB,1\n"
    >>> head = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
    >>> _ = Path("judged.csv").write_text(head + rows)
    >>> [clip.level for clip in obygaze_film.import_judgements(["judged.csv"], "").manifest]
    ['S']
    """
    clip_of_span: dict[tuple[str, str, float | None, float | None], Clip] = {}
    notices = []
    tables: list[tuple[Path, Sequence[Row]]] = []
    for path in map(local_path, files):
        table = read_table(path, (*FIELDS, SEEN_SCORE), delimiter_of(path), advice=ADVICE)
        if codebook is None:
            codebook = _codebook(path, table.rows)
        tables.append((path, table.rows))
        problems, unjudged, again = Problems(path), 0, 0
        for row in table.rows:
            if row.is_empty:
                continue
            if not row.cells["level"]:
                unjudged += 1
                continue
            clip = _clip(row, problems, codebook)
            if clip is None:
                continue
            key = (clip.movie, clip.annotator, clip.start_s, clip.end_s)
            again += key in clip_of_span
            clip_of_span[key] = clip
        problems.refuse()
        if unjudged:
            notices.append(f"{path.name}: left out {counted(unjudged, 'row')} without a level")
        if again:
            notices.append(
                f"{path.name}: {counted(again, 'span was', 'spans were')} judged again: the last counts"
            )
    repeated = repeated_concepts(
        [(path, row.line, row.as_written().cells) for path, rows in tables for row in rows]
    )
    notices += [f"{path}: {notice}" for path, notice in repeated.items()]
    extras = [name for name in KEPT if any(name in clip.extras for clip in clip_of_span.values())]
    ids: set[str] = set()
    clips = [
        replace(
            clip,
            clip_id=unique_id(f"{slug(clip.movie)}-{slug(clip.annotator)}", number, ids),
            extras={name: clip.extras.get(name, "") for name in extras},
        )
        for number, clip in enumerate(clip_of_span.values(), start=1)
    ]
    seen = sum(clip.extras[SEEN_SCORE] == "1" for clip in clips)
    if seen:
        notices.append(
            f"{counted(seen, 'judgement')} made with the score in sight: "
            "`obygaze evaluate` keeps them out of test folds"
        )
    return Imported(Manifest(tuple(clips), local_path(root), codebook or default_codebook()), tuple(notices))


def repeated_concepts(decisions: Iterable[tuple[Path, int, Mapping[str, str]]]) -> dict[Path, str]:
    """Find decisions whose concepts are those of the decision just before them, in the same sitting.

    The page of `film open` once kept concepts ticked when another passage was chosen, so that such a decision
    may have concepts that nobody saw. Which of them do is known to who judged alone: none is left out.

    Parameters
    ----------
    decisions : iterable of (path, line, cells)
        Of judgements and passages made in the workspace; `judged_at` tells their order.

    Returns
    -------
    dict
        Path of a file -> what to say of its lines.
    """
    of_film: dict[str, list[tuple[datetime, Path, int, Mapping[str, str]]]] = {}
    for path, line, cells in decisions:
        with suppress(ValueError):  # filled in elsewhere: no page that could keep a tick
            made = datetime.fromisoformat(cells.get("judged_at", ""))
            made = made if made.tzinfo else made.replace(tzinfo=UTC)
            of_film.setdefault(cells.get("movie", ""), []).append((made, path, line, cells))
    lines: dict[Path, list[int]] = {}
    for decided in of_film.values():
        for (earlier, *_, before), (later, path, line, cells) in pairwise(
            sorted(decided, key=lambda one: one[0])
        ):
            seen = before.get(SEEN_SCORE) == cells.get(SEEN_SCORE) == "1"  # blind judging cleared the ticks
            alike = cells.get("concepts") and cells.get("concepts") == before.get("concepts")
            if seen and alike and later - earlier <= SITTING:
                lines.setdefault(path, []).append(line)
    return {
        path: f"{counted(len(found), 'decision has', 'decisions have')} the concepts of the one just before, "
        "which an earlier version of the page kept ticked; look at them again: "
        f"line{'s' * (len(found) > 1)} {', '.join(map(str, sorted(found)))}"
        for path, found in lines.items()
    }


def _codebook(path: Path, rows: Sequence[Row]) -> Codebook:
    """Find the codebook that a file names."""
    name = next((cell for row in rows if (cell := row.cells.get(CODEBOOK_COLUMN, ""))), BUILTIN[0])
    if name not in BUILTIN:
        raise ManifestError(
            f"{path}: of codebook {name!r}, which is not built in: give its file with --codebook"
        )
    return builtin_codebook(name)


def _clip(row: Row, problems: Problems, codebook: Codebook) -> Clip | None:
    """Read one judgement; the mark before what a spreadsheet would run is taken off."""
    cells = dict(row.as_written().cells)
    before = len(problems.messages)
    if not cells["annotator"]:
        problems.add(row.line, "is empty: a judgement needs a name", "annotator")
    if cells[SEEN_SCORE] not in {"0", "1"}:
        problems.add(row.line, f"{cells[SEEN_SCORE]!r}: expected 1 (the score was in sight) or 0", SEEN_SCORE)
    if not cells["start_s"] or not cells["end_s"]:
        problems.add(
            row.line, "is empty: a judgement is of a span", "start_s" if not cells["start_s"] else "end_s"
        )
    # Ids are made anew; those of a foreign movie's name need not be valid.
    clip = clip_of(Row(row.line, {**cells, "clip_id": f"line-{row.line}"}), problems, codebook, spelled=True)
    return clip if len(problems.messages) == before else None
