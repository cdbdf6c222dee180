"""Take annotations of other tools' files into a film's ledger: what is new in them, and what they change.

A file states what its annotators say of spans. Of each span the decision that it shows is found: by the id
that the file names (EAF and CSV), else by who decided, how, and the times. What says the same changes
nothing, whether that decision stands still or was replaced since; what says otherwise stands in its place.
Nothing is taken back because a file lacks it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from obygaze_features.door import read_bytes
from obygaze_features.errors import ObygazeError
from obygaze_features.io import sha256_of
from obygaze_features.manifest import (
    AGREED,
    DECISION,
    DEFINITION,
    HOW,
    SEEN_SCORE,
    Clip,
    Codebook,
    PeopleTier,
    Problems,
    counted,
    find_film,
    import_spans,
)
from obygaze_film.errors import FilmError
from obygaze_film.notes import said
from obygaze_film.scored_files import MOST_BYTES
from obygaze_film.workspace.ledger import TableRow
from obygaze_film.workspace.ledger_lines import Line

if TYPE_CHECKING:
    from obygaze_film.workspace.decisions import Decisions

SAME_S: Final = 0.0015
"""Seconds by which times of a file may differ from a decision's: formats round to milliseconds."""

IMPORT: Final = "import"
"""What the first line of such a sitting says that it is of."""

WITH_LEVEL: Final = ("judgement", "passage")
"""Kinds of decisions that annotations are."""


class Annotated(NamedTuple):
    """The annotations of a file.

    Attributes
    ----------
    path : Path
    sha256 : str
        Of the file.
    clips : tuple of Clip
    is_beside_model : bool
        Whether the file also holds what a model wrote, which was in sight of whoever changed the file.
    kind : str
        Of file.
    notices : tuple of str
        What is to be said of it.
    """

    path: Path
    sha256: str
    clips: tuple[Clip, ...]
    is_beside_model: bool
    kind: str = ""
    notices: tuple[str, ...] = ()

    def of_film(self, movie: str) -> "Annotated":
        """Keep what is of a film, of a file of several."""
        clips = tuple(clip for clip in self.clips if find_film(clip.movie, [movie]) is not None)
        return self._replace(clips=clips)


def read_annotations(
    path: Path,
    codebook: Codebook,
    *,
    movie: str = "",
    tiers: Mapping[str, str] | None = None,
    annotator: str = "",
) -> Annotated:
    """Read the annotations of a file of another tool, or of a table, as `import_spans` does.

    Parameters
    ----------
    path : Path
    codebook : Codebook
        Of the levels and concepts.
    movie : str
        The film, where the file does not say it.
    tiers : mapping, optional
        Tier -> its role.
    annotator : str
        Who annotated, where the file does not say it.

    Raises
    ------
    ManifestError
        It is of no kind that is known, or something in it cannot be read; names the place.
    """
    imported = import_spans([path], Path(), tiers=tiers, movie=movie, annotator=annotator, codebook=codebook)
    (account,) = imported.accounts
    return Annotated(
        path,
        sha256_of(read_bytes(path, MOST_BYTES)),
        imported.manifest.clips,
        account.is_beside_model,
        account.kind,
        imported.notices,
    )


@dataclass
class TakenFrom:
    """What became of one person's annotations in a file.

    Attributes
    ----------
    annotator : str
    rows : list of TableRow or None
        Of each annotation what it says that is new.
    n_new, n_changed, n_same : int
    left_out : Counter of str
        Why annotations were left out -> how many.
    n_in_sight : int
        Blind judgements that were changed in sight of the score: they stand beside the blind ones.
    """

    annotator: str
    rows: list[TableRow | None] = field(default_factory=list)
    n_new: int = 0
    n_changed: int = 0
    n_same: int = 0
    n_in_sight: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def document(self) -> dict[str, object]:
        """What became of them, for programs."""
        numbers = {"new": self.n_new, "changed": self.n_changed, "same": self.n_same}
        return {"annotator": self.annotator, **numbers, "left_out": dict(self.left_out)}

    def leave(self, why: str) -> None:
        """Leave out an annotation."""
        self.left_out[why] += 1
        self.rows.append(None)


def taken_from(decisions: "Decisions", file: Annotated, is_blind: bool | None) -> list[TakenFrom]:
    """Find what a file says that is new, by its annotators.

    Parameters
    ----------
    decisions : Decisions
    file : Annotated
    is_blind : bool or None
        Whether the score was out of sight, as the person declares it of what does not say so itself.

    Raises
    ------
    FilmError
        Neither the file nor the person says whether the score was in sight, or they contradict each other.
    """
    film = decisions.film
    reader = _Reader(decisions, file)
    by_annotator: dict[str, TakenFrom] = {}
    for clip in file.clips:
        if not clip.level and _is_beside(clip):
            continue
        if clip.level and not clip.annotator:
            raise FilmError(said("import_nobody", path=file.path))
        taken = by_annotator.setdefault(clip.annotator, TakenFrom(clip.annotator))
        if find_film(clip.movie, [film.movie]) is None:
            taken.leave(said("import_film", movie=clip.movie))
        elif not clip.level or clip.start_s is None or clip.end_s is None:
            taken.leave(said("import_level"))
        elif clip.extras.get(HOW) == AGREED:
            taken.leave(said("import_agreed"))
        else:
            reader.take(clip, _seen_score(clip, file, is_blind), taken)
    return [*by_annotator.values()]


def _is_beside(clip: Clip) -> bool:
    """Whether a span is no annotation: a note that people read, or a text of nobody's."""
    people = PeopleTier.of(clip.extras.get("tier", ""))
    return not clip.annotator or (people is not None and people.what == "note")


def _seen_score(clip: Clip, file: Annotated, is_blind: bool | None) -> str:
    """Return whether the score was in sight: as its tier says, as the person does, as the file tells."""
    seen, how = clip.extras.get(SEEN_SCORE, ""), clip.extras.get(HOW, "")
    if how:
        return seen
    if is_blind and file.is_beside_model:
        raise FilmError(said("import_beside", path=file.path))
    if is_blind is not None:
        return "0" if is_blind else "1"
    is_guessed = seen == "0" and file.kind == "eaf"  # that no model's tier is in a document says little
    if is_guessed or not seen:
        raise FilmError(said("import_how", path=file.path))
    return seen


class _Shown(NamedTuple):
    """The decision that an annotation shows.

    Attributes
    ----------
    target : Line
        In whose place stands what the annotation says otherwise.
    versions : tuple of Line
        The decision as it was when the file was written, and what took its place since.
    """

    target: Line
    versions: tuple[Line, ...]


class _Reader:
    """Finds the decision that an annotation shows, and what is new in it."""

    def __init__(self, decisions: "Decisions", file: Annotated) -> None:
        self._decisions, self._file = decisions, file
        self._claimed: set[str] = set()
        self._successors: dict[str, Line] = {}
        for line in decisions.lines.values():
            for old in decisions.replaced(line):
                self._successors[old.id] = line
        self._has_notes = any("note" in clip.extras for clip in file.clips)

    def take(self, clip: Clip, seen: str, taken: TakenFrom) -> None:
        """Take in an annotation, if it says something new."""
        shown = self._shown_by(clip, seen)
        is_blind_changed = seen == "0" and shown is not None and self._file.is_beside_model
        is_same = shown is not None and self._is_one_of(clip, shown)
        if is_blind_changed and not is_same:
            # Whoever changed it had the score in sight: it stands beside what was judged blindly.
            seen = "1"
            shown = self._at(clip, seen)
            is_same = shown is not None and self._is_one_of(clip, shown)
        if is_same and shown is not None:
            self._claimed.add(shown.target.id)
            taken.n_same += 1
            taken.rows.append(None)
            return
        kind = "judgement" if is_blind_changed else ""
        target = None if shown is None else shown.target
        try:
            row = self._row(clip, seen, target, kind)
        except ObygazeError as error:
            taken.leave(str(error))
            return
        taken.rows.append(row)
        taken.n_in_sight += is_blind_changed
        if target is None:
            taken.n_new += 1
        else:
            self._claimed.add(target.id)
            taken.n_changed += 1

    def _shown_by(self, clip: Clip, seen: str) -> _Shown | None:
        """Find the decision that an annotation shows: by its id, else by its times."""
        line = self._decisions.ledger.lines.get(clip.extras.get(DECISION, ""))
        is_own = line is not None and line.annotator == clip.annotator and line.kind in WITH_LEVEL
        at_its_times = self._at(clip, seen)
        if line is None or not is_own or line.row.get(SEEN_SCORE) != seen or not _overlap(clip, line):
            return at_its_times
        if at_its_times is not None and not _is_at(clip, line):
            return at_its_times  # a program gave other ids: that of another span means nothing
        return self._as_it_became(line)

    def _as_it_became(self, line: Line) -> _Shown:
        """Return a decision with what took its place since.

        A change stands in the place of what an earlier import made of the same decision; beside what was
        decided at the desk since, as nobody chose between them.
        """
        successor = self._successors.get(line.id)
        if successor is None:
            return _Shown(line, (line,))
        later = [old for old in self._decisions.replaced(successor) if old.clock >= line.clock]
        target = successor if self._decisions.is_imported(successor) else line
        return _Shown(target, (successor, *later))

    def _at(self, clip: Clip, seen: str) -> _Shown | None:
        """Find what the annotator decided of a span in the same way, that stands."""
        for kind in WITH_LEVEL:
            for own in self._decisions.kept[kind]:
                line = self._decisions.lines[own.clip_id]
                is_own = own.annotator == clip.annotator and own.extras.get(SEEN_SCORE) == seen
                if is_own and line.id not in self._claimed and _is_at(clip, line):
                    return _Shown(line, (line,))
        return None

    def _is_one_of(self, clip: Clip, shown: _Shown) -> bool:
        """Whether an annotation says what its decision said when the file was written, or since."""
        return any(self._says_the_same(clip, line) for line in shown.versions)

    def _says_the_same(self, clip: Clip, line: Line) -> bool:
        concepts = set(filter(None, line.row.get("concepts", "").split(";")))
        note = self._note(clip, line)
        is_same = clip.level == line.row.get("level") and {*clip.concepts} == concepts
        return is_same and _is_at(clip, line) and note == line.row.get("note", "")

    def _note(self, clip: Clip, line: Line | None) -> str:
        """Return the note of an annotation; a file without notes leaves those that there are."""
        if self._has_notes:
            return " ".join(clip.extras.get("note", "").split())
        return "" if line is None else line.row.get("note", "")

    def _row(self, clip: Clip, seen: str, shown: Line | None, kind: str) -> TableRow:
        """Write a decision as the ledger holds it; of a `kind` that is known, or of that of what it shows.

        Raises
        ------
        FilmError
            It is no decision about this film.
        """
        rules = self._decisions.rules
        start_s, end_s = float(clip.start_s or 0.0), float(clip.end_s or 0.0)
        place = 0
        if shown is not None:
            kind = shown.kind
            if _is_at(clip, shown):  # times of the ledger are exact, those of formats are rounded
                start_s, end_s = float(shown.row["start_s"]), float(shown.row["end_s"])
        elif not kind:
            kind, place = self._kind_and_place(clip, seen)
        if kind == "judgement" and seen == "0":
            place = place or self._place_at(start_s, end_s)
            if not place:
                raise FilmError(said("import_moved"))
            start_s, end_s = self._decisions.windows[place - 1]
        more = {
            "level": clip.level,
            "concepts": clip.concepts,
            "note": self._note(clip, shown),
            "place": place,
            "is_blind": seen == "0",
            "origin": "own" if shown is None else shown.row.get("origin", "own"),
        }
        row = rules.row_of(kind, start_s, end_s, clip.annotator, draw=self._decisions.draw, more=more)
        if shown is not None:
            row = {**shown.row, **row}
            if not row.get("note") or not more["note"]:
                row.pop("note", None)
            if not clip.concepts:
                row.pop("concepts", None)
        row.pop("judged_at", None)  # the file does not say when, and one file gives one sitting everywhere
        row[DEFINITION] = clip.extras.get(DEFINITION) or self._decisions.codebook.definition()
        rules.refuse(kind, row, start_s, end_s)
        problems = Problems(self._file.path)
        if rules.checked(kind, row, "new", problems, 0) is None:
            raise FilmError(problems.messages[0].partition(", ")[2])
        return TableRow(row, "" if shown is None else shown.id, kind)

    def _kind_and_place(self, clip: Clip, seen: str) -> tuple[str, int]:
        """Say what a new decision is: of a window of the draw, of a passage of the model, or of a span."""
        start_s, end_s = float(clip.start_s or 0.0), float(clip.end_s or 0.0)
        if seen == "0":
            place = self._place_at(start_s, end_s)
            return ("judgement", place) if place else ("passage", 0)
        passages = self._decisions.film.segments()[["start_s", "end_s"]].to_numpy().tolist()
        is_of_model = any(_are_near(start_s, a) and _are_near(end_s, b) for a, b in passages)
        return ("judgement" if is_of_model else "passage"), 0

    def _place_at(self, start_s: float, end_s: float) -> int:
        """Find the place in the draw of a window; 0 if it is none."""
        for place, (first_s, last_s) in enumerate(self._decisions.windows, start=1):
            if _are_near(start_s, first_s) and _are_near(end_s, last_s):
                return place
        return 0


def _are_near(one_s: float, other_s: float) -> bool:
    return abs(one_s - other_s) <= SAME_S


def _is_at(clip: Clip, line: Line) -> bool:
    """Whether an annotation has a decision's times, as formats round them."""
    starts_there = _are_near(float(clip.start_s or 0.0), float(line.row["start_s"]))
    return starts_there and _are_near(float(clip.end_s or 0.0), float(line.row["end_s"]))


def _overlap(clip: Clip, line: Line) -> bool:
    starts_before = float(clip.start_s or 0.0) < float(line.row["end_s"])
    return starts_before and float(line.row["start_s"]) < float(clip.end_s or 0.0)


def lines_of(file: Annotated, every: Iterable[TakenFrom]) -> list[str]:
    """Say what became of a file's annotations, a line for each person."""
    lines = []
    for taken in every:
        parts = [f"{taken.n_new} new", f"{taken.n_changed} changed", f"{taken.n_same} as they stand"]
        n_out = taken.left_out.total()
        if n_out:
            parts.append(f"{n_out} left out")
        lines.append(f"{file.path}: {taken.annotator}: {', '.join(parts)}")
    return lines


def notices_of(file: Annotated, every: Sequence[TakenFrom]) -> list[str]:
    """Say what was left out and why, and what was not taken as it was declared."""
    notices = []
    for taken in every:
        for why, n in taken.left_out.items():
            notices.append(f"{file.path}: {taken.annotator}: {counted(n, 'span')} left out: {why}")
        if taken.n_in_sight:
            facts = {"path": file.path, "who": taken.annotator, "n": counted(taken.n_in_sight, "judgement")}
            notices.append(said("import_in_sight", **facts))
    return notices
