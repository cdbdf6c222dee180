"""Keep what people decide about a scored film: judgements, own passages and notes, a CSV file of each."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from obygaze_features.io import write_whole
from obygaze_features.lines import sheet_line
from obygaze_features.manifest import (
    BUILTIN,
    CODEBOOK_COLUMN,
    FIELDS,
    SEEN_SCORE,
    Codebook,
    Problems,
    read_table,
    repeated_concepts,
)
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import PLACE
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import DRAW, RANDOM

NOTES: Final = "notes.csv"

COLUMNS: Final = {
    JUDGEMENTS: (*FIELDS, SEEN_SCORE, "judgement", DRAW, PLACE, "judged_at"),
    PASSAGES: (*FIELDS, SEEN_SCORE, "origin", "judged_at"),
    NOTES: ("movie", "start_s", "end_s", "annotator", "note", "written_at"),
}
"""Of each file, in a scored film's folder; further columns that a file has are kept."""

Row = dict[str, str]


class Decisions:
    """What people decided about one film, as its files say.

    Every decision is written at once, its file whole: a crash loses at most the one that it interrupts.

    Parameters
    ----------
    folder : Path
        The scored film's.
    film : Timeline
    codebook : Codebook
        Of the levels and concepts.

    Attributes
    ----------
    notices : list of str
        What to look at again in the files, as they were read.

    Raises
    ------
    FilmError
        A file has not the columns of such a file.
    """

    def __init__(self, folder: Path, film: Timeline, codebook: Codebook) -> None:
        self.folder, self.film, self.codebook = folder, film, codebook
        self.rows: dict[str, list[Row]] = {}
        self._columns: dict[str, list[str]] = {}
        self._undo: list[tuple[str, list[Row]]] = []
        read: list[tuple[Path, int, Mapping[str, str]]] = []
        for name, columns in COLUMNS.items():
            path, given = folder / name, []
            self.rows[name] = []
            if path.is_file():
                needed = [column for column in (*FIELDS, SEEN_SCORE) if column in columns]
                table = read_table(path, needed or columns)
                given = [*table.columns]
                problems = Problems(path)
                rows = [*table.timed(problems)]
                problems.refuse()
                self.rows[name] = [_as_here(row.cells) for row in rows]
                read += [(path, row.line, row.cells) for row in rows]
            own = [CODEBOOK_COLUMN] if name == JUDGEMENTS and codebook.name != BUILTIN[0] else []
            self._columns[name] = [*dict.fromkeys((*given, *columns, *own))]
        self.notices = [f"{path}: {notice}" for path, notice in repeated_concepts(read).items()]

    def judge(
        self,
        start_s: float,
        end_s: float,
        level: str,
        *,
        annotator: str,
        concepts: Sequence[str] = (),
        place: int | None = None,
    ) -> Row:
        """Keep a judgement of a span; of a window that was drawn, `place` in the draw, made blindly.

        Judged again by the same person in the same way, the later judgement stays.
        """
        model = self.film.model()
        agreed = "agree" if level in model.positive else "disagree" if level in model.negative else "unsure"
        more = {
            SEEN_SCORE: "1" if place is None else "0",
            "judgement": agreed if place is None else "",
            DRAW: "" if place is None else RANDOM,
            PLACE: "" if place is None else str(place),
            CODEBOOK_COLUMN: self.codebook.name,
        }
        row = self._clip(start_s, end_s, level, annotator, concepts) | more
        same = ("movie", "start_s", "end_s", "annotator", SEEN_SCORE)
        kept = [old for old in self.rows[JUDGEMENTS] if any(old.get(name) != row[name] for name in same)]
        self._write(JUDGEMENTS, [*kept, self._numbered(row, kept)])
        return row

    def keep_passage(
        self,
        start_s: float,
        end_s: float,
        level: str,
        *,
        annotator: str,
        concepts: Sequence[str] = (),
        origin: str = "own",
    ) -> Row:
        """Keep a passage that a person marked, or the moved ends of one of the model's (`origin`)."""
        row = self._clip(start_s, end_s, level, annotator, concepts) | {SEEN_SCORE: "1", "origin": origin}
        self._write(PASSAGES, [*self.rows[PASSAGES], self._numbered(row, self.rows[PASSAGES])])
        return row

    def note(self, start_s: float, end_s: float, text: str, *, annotator: str) -> Row:
        """Keep a note on a span."""
        row = self._span(start_s, end_s, annotator) | {"note": " ".join(text.split()), "written_at": _now()}
        if not row["note"]:
            raise FilmError("the note is empty")
        self._write(NOTES, [*self.rows[NOTES], row])
        return row

    def undo(self) -> bool:
        """Take back the last decision of this sitting; return whether there was one."""
        if not self._undo:
            return False
        name, rows = self._undo[-1]
        self._put(name, rows)
        self._undo.pop()
        return True

    def _span(self, start_s: float, end_s: float, annotator: str) -> Row:
        whole_s = self.film.record.duration_s
        if not 0 <= start_s < end_s <= whole_s + 1:
            raise FilmError(f"{start_s:g} to {end_s:g} s is no span of a film of {whole_s:g} s")
        who = " ".join(annotator.split())
        if not who:
            raise FilmError("a decision needs the name of who made it")
        return {
            "movie": self.film.movie,
            "start_s": f"{start_s:.10g}",
            "end_s": f"{end_s:.10g}",
            "annotator": who,
        }

    def _clip(self, start_s: float, end_s: float, level: str, annotator: str, concepts: Sequence[str]) -> Row:
        book = self.codebook
        if level not in book.level_names:
            raise FilmError(f"{level!r} is no level of {book.name}: {', '.join(book.level_names)}")
        if unknown := [name for name in concepts if name not in book.concept_names]:
            raise FilmError(f"{unknown[0]!r} is no concept of {book.name}: {', '.join(book.concept_names)}")
        names = {"level": level, "concepts": ";".join(concepts), "judged_at": _now()}
        return self._span(start_s, end_s, annotator) | {"video": ""} | names

    def _numbered(self, row: Row, others: Sequence[Mapping[str, str]]) -> Row:
        """Give a row an id that no other row of its file has."""
        taken = {other["clip_id"] for other in others}
        number = len(others) + 1
        while (name := f"{self.folder.name}-{number:04d}") in taken:
            number += 1
        return {"clip_id": name, **row}

    def _write(self, name: str, rows: list[Row]) -> None:
        before = self.rows[name]
        self._put(name, rows)
        self._undo.append((name, before))

    def _put(self, name: str, rows: list[Row]) -> None:
        columns = self._columns[name]
        lines = [
            sheet_line(columns),
            *(sheet_line([row.get(column, "") for column in columns]) for row in rows),
        ]
        write_whole(self.folder / name, "".join(lines), links=False)  # a stranger's folder
        self.rows[name] = rows


def _as_here(cells: Mapping[str, str]) -> Row:
    """Write the times of a row as this module does, so that spans compare."""
    return {**cells, **{name: f"{float(cells[name]):.10g}" for name in ("start_s", "end_s") if cells[name]}}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
