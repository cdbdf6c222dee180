"""Take the annotations in other tools' files into a film's ledger.

For each annotation the decision that it goes back to is found in the ledger: by the decision's id, if the
file names it (EAF and CSV), else by annotator, times, and whether the score was in sight. An annotation that
says the same as its decision changes nothing, even if that decision was replaced since. One that says
something else replaces its decision. One that goes back to no decision is a new decision. A decision that the
file lacks stays as it is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from obygaze_features.door import read_bytes
from obygaze_features.errors import ManifestError, ObygazeError
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
)
from obygaze_film.errors import FilmError
from obygaze_film.notes import said, said_counted
from obygaze_film.scored_files import MOST_BYTES
from obygaze_film.workspace.ledger import TableRow
from obygaze_film.workspace.ledger_lines import Line

if TYPE_CHECKING:
    from obygaze_film.workspace.decisions import Decisions

SAME_S: Final = 0.0015
"""Seconds by which times of a file may differ from a decision's: formats round to milliseconds."""

HALF_A_FRAME_S: Final = 0.021
"""The same in files that count in frames: half a frame at 24000/1001 frames per second."""

COUNT_FRAMES: Final = frozenset({"markers", "edl", "xmeml"})
"""Kinds of files that round the times of an export to frames."""

IMPORT: Final = "import"
"""Kind that the first line of an imported file's sitting states."""

WITH_LEVEL: Final = ("judgement", "passage")
"""Kinds of decisions that an annotation can be: those that have a level."""


class Annotated(NamedTuple):
    """The annotations of a file.

    Attributes
    ----------
    path : Path
    sha256 : str
        Digest of the file.
    clips : tuple of Clip
        The annotations, one clip for each.
    shows_model_output : bool
        Whether the file also holds what a model wrote, which was in sight of whoever changed the file.
    kind : str
        Kind of file, such as `eaf`.
    notices : tuple of str
        Notices from reading the file, to be printed.
    """

    path: Path
    sha256: str
    clips: tuple[Clip, ...]
    shows_model_output: bool
    kind: str = ""
    notices: tuple[str, ...] = ()

    @property
    def same_s(self) -> float:
        """Seconds by which a time may differ from a decision's and be the same."""
        return HALF_A_FRAME_S if self.kind in COUNT_FRAMES else SAME_S

    def of_film(self, movie: str) -> "Annotated":
        """Return the annotations of one film, as a file may annotate several films."""
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
    FilmError
        Its times are in frames, and nobody says how many a second has.
    """
    from obygaze_features.manifest import import_spans  # noqa: PLC0415 - slow, and films are opened without it

    try:
        imported = import_spans(
            [path], Path(), tiers=tiers, movie=movie, annotator=annotator, codebook=codebook
        )
    except ManifestError as error:
        if "--rate" in str(error):
            # An option of `manifest import spans`, which writes a table in seconds.
            raise FilmError(said("import_rate", error=error, path=path)) from None
        raise
    (account,) = imported.accounts
    return Annotated(
        path,
        sha256_of(read_bytes(path, MOST_BYTES)),
        imported.manifest.clips,
        account.shows_model_output,
        account.kind,
        imported.notices,
    )


@dataclass
class TakenFrom:
    """The result of taking in one person's annotations from a file.

    Attributes
    ----------
    annotator : str
    rows : list of TableRow or None
        For each annotation the new decision that it gives; None if it gives none.
    n_new : int
        Annotations that are new decisions.
    n_changed : int
        Annotations that replace a decision.
    n_same : int
        Annotations that say what the ledger says already.
    n_in_sight : int
        Blind judgements that were changed in sight of the score. The changed judgement is added, and the
        blind one stays.
    left_out : Counter of str
        Reason for leaving out -> number of annotations that were left out for it.
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
        """The annotator and the numbers of annotations, as a document for JSON output."""
        numbers = {"new": self.n_new, "changed": self.n_changed, "same": self.n_same}
        return {"annotator": self.annotator, **numbers, "left_out": dict(self.left_out)}

    def leave(self, why: str) -> None:
        """Count an annotation as left out for the reason `why`."""
        self.left_out[why] += 1
        self.rows.append(None)


def taken_from(decisions: "Decisions", file: Annotated, is_blind: bool | None) -> list[TakenFrom]:
    """Compare a file's annotations with the ledger's decisions; return a result for each annotator.

    Nothing is written to the ledger.

    Parameters
    ----------
    decisions : Decisions
        The decisions about one film.
    file : Annotated
    is_blind : bool or None
        Whether the model's score was out of sight, as the person who imports the file declares. It holds for
        annotations that do not state it themselves. None if nothing is declared.

    Raises
    ------
    FilmError
        Neither the file nor the person says whether the score was in sight, or they contradict each other.
    """
    film = decisions.film
    reader = _Reader(decisions, file)
    by_annotator: dict[str, TakenFrom] = {}
    for clip in file.clips:
        if not clip.level and _is_no_annotation(clip):
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
    return list(by_annotator.values())


def _is_no_annotation(clip: Clip) -> bool:
    """Whether a span without a level is a note of a person, or a text that names no annotator."""
    people = PeopleTier.parse(clip.extras.get("tier", ""))
    return not clip.annotator or (people is not None and people.what == "note")


def _seen_score(clip: Clip, file: Annotated, is_blind: bool | None) -> str:
    """Return whether the annotator had the model's score in sight: "1" if so, "0" if not.

    The annotation's own tier decides if it states it, else the declaration `is_blind`, else what was inferred
    from the file.

    Raises
    ------
    FilmError
        None of these says it, or the declaration contradicts the file.
    """
    seen = clip.extras.get(SEEN_SCORE, "")
    tier_states_it = clip.extras.get(HOW, "") != ""
    if tier_states_it:
        return seen
    if is_blind and file.shows_model_output:
        raise FilmError(said("import_beside", path=file.path))
    if is_blind is not None:
        return "0" if is_blind else "1"
    # In an EAF document "0" only means that no model's tier is there: the score may have been seen elsewhere.
    is_guessed = seen == "0" and file.kind == "eaf"
    if is_guessed or not seen:
        raise FilmError(said("import_how", path=file.path))
    return seen


class _Origin(NamedTuple):
    """The decision in the ledger that an annotation goes back to.

    Attributes
    ----------
    target : Line
        The line that the annotation replaces if it says something else.
    versions : tuple of Line
        The decision as it was when the file was written, and the lines that replaced it since.
    """

    target: Line
    versions: tuple[Line, ...]


class _Reader:
    """Takes in a file's annotations one by one: finds the decision each goes back to, and what is new."""

    def __init__(self, decisions: "Decisions", file: Annotated) -> None:
        self._decisions = decisions
        self._file = file
        # Ids of decisions that an earlier annotation of the file goes back to.
        self._claimed: set[str] = set()
        # Id of a decision -> the standing line that replaced it.
        self._successors: dict[str, Line] = {}
        for line in decisions.lines.values():
            for old in decisions.replaced(line):
                self._successors[old.id] = line
        self._has_notes = any("note" in clip.extras for clip in file.clips)

    def take(self, clip: Clip, seen: str, taken: TakenFrom) -> None:
        """Compare one annotation with the ledger, and add the outcome to the annotator's result.

        Parameters
        ----------
        clip : Clip
            The annotation.
        seen : str
            Whether the model's score was in sight: "1" or "0".
        taken : TakenFrom
            The annotator's result, to which is added.
        """
        origin = self._origin_of(clip, seen)
        is_same = self._says_what_its_origin_says(clip, origin)
        shows_model_output = self._file.shows_model_output
        is_blind_changed = seen == "0" and origin is not None and shows_model_output and not is_same
        if is_blind_changed:
            # Whoever changed it had the score in sight: the change is added beside the blind judgement.
            seen = "1"
            origin = self._origin_by_times(clip, seen)
            is_same = self._says_what_its_origin_says(clip, origin)
        if is_same and origin is not None:
            self._claimed.add(origin.target.id)
            taken.n_same += 1
            taken.rows.append(None)
            return
        kind = "judgement" if is_blind_changed else ""
        target = None if origin is None else origin.target
        try:
            row = self._row(clip, seen, target, kind)
        except ObygazeError as error:
            taken.leave(str(error))
            return
        taken.rows.append(row)
        if is_blind_changed:
            taken.n_in_sight += 1
        if target is None:
            taken.n_new += 1
        else:
            self._claimed.add(target.id)
            taken.n_changed += 1

    def _origin_of(self, clip: Clip, seen: str) -> _Origin | None:
        """Find the decision that an annotation goes back to: by the id that it names, else by its times.

        The named decision must be of the same annotator, with the score in sight or not as `seen` says, and
        overlap the annotation. If it is at other times, a decision at the annotation's own times goes first:
        some programs write the ids of other annotations.
        """
        at_its_times = self._origin_by_times(clip, seen)
        line = self._decisions.ledger.lines.get(clip.extras.get(DECISION, ""))
        if line is None or not self._may_go_back_to(clip, seen, line):
            return at_its_times
        if at_its_times is not None and not self._is_at(clip, line):
            return at_its_times
        return self._with_later_versions(line)

    def _may_go_back_to(self, clip: Clip, seen: str, line: Line) -> bool:
        """Whether an annotation can go back to the decision whose id it names."""
        is_own = line.annotator == clip.annotator and line.kind in WITH_LEVEL
        return is_own and line.row.get(SEEN_SCORE) == seen and _overlap(clip, line)

    def _with_later_versions(self, line: Line) -> _Origin:
        """Return a decision together with the lines that replaced it since.

        If an earlier import replaced the decision, a change replaces what that import wrote. If the decision
        was replaced at the desk, a change does not replace the desk's line, as nobody chose between the two:
        both stand.
        """
        successor = self._successors.get(line.id)
        if successor is None:
            return _Origin(line, (line,))
        later = [old for old in self._decisions.replaced(successor) if old.clock >= line.clock]
        target = successor if self._decisions.is_imported(successor) else line
        return _Origin(target, (successor, *later))

    def _origin_by_times(self, clip: Clip, seen: str) -> _Origin | None:
        """Find a standing decision of the same annotator at an annotation's times, with `seen` the same.

        Decisions that an earlier annotation of the file goes back to are passed over.
        """
        for kind in WITH_LEVEL:
            for own in self._decisions.kept[kind]:
                line = self._decisions.lines[own.clip_id]
                is_own = own.annotator == clip.annotator and own.extras.get(SEEN_SCORE) == seen
                if is_own and line.id not in self._claimed and self._is_at(clip, line):
                    return _Origin(line, (line,))
        return None

    def _says_what_its_origin_says(self, clip: Clip, origin: _Origin | None) -> bool:
        """Whether an annotation says the same as some version of its decision, then or since."""
        return origin is not None and any(self._says_the_same(clip, line) for line in origin.versions)

    def _says_the_same(self, clip: Clip, line: Line) -> bool:
        """Whether an annotation has the level, concepts, times and note of a ledger's line."""
        concepts = set(filter(None, line.row.get("concepts", "").split(";")))
        note = self._note(clip, line)
        is_same = clip.level == line.row.get("level") and {*clip.concepts} == concepts
        return is_same and self._is_at(clip, line) and note == line.row.get("note", "")

    def _note(self, clip: Clip, line: Line | None) -> str:
        """Return an annotation's note; in a file that holds no notes, the note of its decision, if any."""
        if self._has_notes:
            return " ".join(clip.extras.get("note", "").split())
        return "" if line is None else line.row.get("note", "")

    def _row(self, clip: Clip, seen: str, replaced: Line | None, kind: str) -> TableRow:
        """Write an annotation as a decision for the ledger.

        Parameters
        ----------
        clip : Clip
            The annotation.
        seen : str
            Whether the model's score was in sight: "1" or "0".
        replaced : Line or None
            The line that the decision replaces, whose kind it takes.
        kind : str
            Kind of a decision that replaces none; if empty, it follows from the span.

        Raises
        ------
        FilmError
            The annotation is no valid decision about this film.
        """
        start_s, end_s = self._times_of(clip, replaced)
        place = 0
        if replaced is not None:
            kind = replaced.kind
        elif not kind:
            kind, place = self._kind_and_place(clip, seen)
        if kind == "judgement" and seen == "0":
            place = place or self._place_at(start_s, end_s)
            if not place:  # a blind judgement is of a drawn window, whose ends may not be moved
                raise FilmError(said("import_moved"))
            start_s, end_s = self._decisions.windows[place - 1]
        more = {
            "level": clip.level,
            "concepts": clip.concepts,
            "note": self._note(clip, replaced),
            "place": place,
            "is_blind": seen == "0",
            "origin": "own" if replaced is None else replaced.row.get("origin", "own"),
        }
        rules = self._decisions.rules
        row = rules.row_of(kind, start_s, end_s, clip.annotator, draw=self._decisions.draw, more=more)
        if replaced is not None:
            row = {**replaced.row, **row}  # further columns of the replaced line stay
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
        return TableRow(row, "" if replaced is None else replaced.id, kind)

    def _kind_and_place(self, clip: Clip, seen: str) -> tuple[str, int]:
        """Return the kind of a new decision, and the place of its window in the draw (0 if it is none).

        It is a judgement if its span is a drawn window that was judged blindly, or a passage that the model
        found; else it is a passage that the annotator marked.
        """
        start_s = float(clip.start_s or 0.0)
        end_s = float(clip.end_s or 0.0)
        is_blind = seen == "0"
        if is_blind:
            place = self._place_at(start_s, end_s)
            return ("judgement", place) if place else ("passage", 0)
        passages = self._decisions.film.segments()[["start_s", "end_s"]].to_numpy().tolist()
        for passage_start_s, passage_end_s in passages:
            if self._are_near(start_s, passage_start_s) and self._are_near(end_s, passage_end_s):
                return "judgement", 0
        return "passage", 0

    def _place_at(self, start_s: float, end_s: float) -> int:
        """Return the place in the draw, from 1 on, of the window with these ends; 0 if none has them."""
        for place, (first_s, last_s) in enumerate(self._decisions.windows, start=1):
            if self._are_near(start_s, first_s) and self._are_near(end_s, last_s):
                return place
        return 0

    def _times_of(self, clip: Clip, replaced: Line | None) -> tuple[float, float]:
        """Return an annotation's start and end in seconds; those of the replaced line if they are the same.

        The times in a ledger are exact, and those in files of other formats are rounded.
        """
        if replaced is not None and self._is_at(clip, replaced):
            return float(replaced.row["start_s"]), float(replaced.row["end_s"])
        return float(clip.start_s or 0.0), float(clip.end_s or 0.0)

    def _is_at(self, clip: Clip, line: Line) -> bool:
        """Whether an annotation has the start and end of a decision, but for the rounding of the file."""
        starts_there = self._are_near(float(clip.start_s or 0.0), float(line.row["start_s"]))
        return starts_there and self._are_near(float(clip.end_s or 0.0), float(line.row["end_s"]))

    def _are_near(self, one_s: float, other_s: float) -> bool:
        """Whether two times are the same but for the rounding of the file."""
        return abs(one_s - other_s) <= self._file.same_s


def _overlap(clip: Clip, line: Line) -> bool:
    """Whether the spans of an annotation and a decision overlap."""
    starts_before = float(clip.start_s or 0.0) < float(line.row["end_s"])
    return starts_before and float(line.row["start_s"]) < float(clip.end_s or 0.0)


def lines_of(file: Annotated, every: Iterable[TakenFrom]) -> list[str]:
    """Write for each annotator of a file a line with the numbers of annotations taken in and left out."""
    lines = []
    for taken in every:
        parts = [f"{taken.n_new} new", f"{taken.n_changed} changed", f"{taken.n_same} as they stand"]
        n_out = taken.left_out.total()
        if n_out:
            parts.append(f"{n_out} left out")
        lines.append(f"{file.path}: {taken.annotator}: {', '.join(parts)}")
    return lines


def notices_of(file: Annotated, every: Sequence[TakenFrom]) -> list[str]:
    """Write notices for annotations that were left out and blind judgements changed in sight of the score."""
    notices = []
    for taken in every:
        for why, n in taken.left_out.items():
            notices.append(f"{file.path}: {taken.annotator}: {counted(n, 'span')} left out: {why}")
        if taken.n_in_sight:
            judgements = said_counted("n_judgements", taken.n_in_sight)
            facts = {"path": file.path, "who": taken.annotator, "n": judgements}
            notices.append(said("import_in_sight", **facts))
    return notices
