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
    counted,
    find_film,
)
from obygaze_film.errors import FilmError
from obygaze_film.notes import counted_message, message
from obygaze_film.scored_files import MOST_BYTES
from obygaze_film.workspace.ledger import TableRow
from obygaze_film.workspace.ledger_lines import Line

if TYPE_CHECKING:
    from obygaze_film.workspace.decisions import Decisions

ROUNDING_S: Final = 0.0015
"""Seconds by which a time of a file may differ from a decision's and be the same: formats round to
milliseconds."""

FRAME_ROUNDING_S: Final = 0.021
"""The same for files that count in frames: half a frame at 24000/1001 frames per second."""

FRAME_KINDS: Final = frozenset({"markers", "edl", "xmeml"})
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
    def rounding_s(self) -> float:
        """Seconds by which a time may differ from a decision's and still be the same."""
        return FRAME_ROUNDING_S if self.kind in FRAME_KINDS else ROUNDING_S

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
        The codebook of the levels and concepts.
    movie : str
        The film that is annotated, for files that do not name it.
    tiers : mapping, optional
        Name of a tier -> its role, as of `import_spans`.
    annotator : str
        Who annotated, for files that do not name anybody.

    Raises
    ------
    ManifestError
        The file is of no known kind, or something in it cannot be read; the message names the place.
    FilmError
        Its times are in frames, and the file does not say how many a second has.
    """
    from obygaze_features.manifest import import_spans  # noqa: PLC0415 - slow, and films are opened without it

    try:
        imported = import_spans(
            [path], Path(), tiers=tiers, movie=movie, annotator=annotator, codebook=codebook
        )
    except ManifestError as error:
        if "--rate" in str(error):
            # The message advises an option that only `manifest import spans` has: the note names the detour.
            raise FilmError(message("import_rate", error=error, path=path)) from None
        raise
    (account,) = imported.accounts  # one for each file
    return Annotated(
        path,
        sha256=sha256_of(read_bytes(path, MOST_BYTES)),
        clips=imported.manifest.clips,
        shows_model_output=account.shows_model_output,
        kind=account.kind,
        notices=imported.notices,
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

    def leave_out(self, reason: str) -> None:
        """Count an annotation that gives no decision, for a reason that the user is told."""
        self.left_out[reason] += 1
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
        if not clip.level and _is_other_text(clip):
            continue
        if clip.level and not clip.annotator:
            raise FilmError(message("import_nobody", path=file.path))
        taken = by_annotator.setdefault(clip.annotator, TakenFrom(clip.annotator))
        if find_film(clip.movie, [film.movie]) is None:
            taken.leave_out(message("import_film", movie=clip.movie))
        elif not clip.level or clip.start_s is None or clip.end_s is None:
            taken.leave_out(message("import_level"))
        elif clip.extras.get(HOW) == AGREED:
            taken.leave_out(message("import_agreed"))
        else:
            reader.take(clip, _seen_score(clip, file, is_blind), taken)
    return list(by_annotator.values())


def _is_other_text(clip: Clip) -> bool:
    """Whether a span without a level is a person's note, or a text by nobody: neither needs a message."""
    if not clip.annotator:
        return True
    people = PeopleTier.parse(clip.extras.get("tier", ""))
    return people is not None and people.what == "note"


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
        raise FilmError(message("import_beside", path=file.path))
    if is_blind is not None:
        return "0" if is_blind else "1"
    # The importer of EAF documents infers "0" where there is no model's tier: the score may have been seen
    # elsewhere, so that this does not state it.
    is_inferred = seen == "0" and file.kind == "eaf"
    if is_inferred or not seen:
        raise FilmError(message("import_how", path=file.path))
    return seen


class _Origin(NamedTuple):
    """The decision in the ledger that an annotation goes back to.

    Attributes
    ----------
    target : Line
        The line that the annotation replaces if it says something else.
    versions : tuple of Line
        The decision as it was when the file was written, and the lines that replaced it since. An annotation
        that says the same as one of them says nothing new.
    """

    target: Line
    versions: tuple[Line, ...]


class _Reader:
    """Takes in a file's annotations one by one: finds the decision each goes back to, and what is new."""

    def __init__(self, decisions: "Decisions", file: Annotated) -> None:
        self._decisions = decisions
        self._file = file
        # Ids of decisions that an annotation that was taken before goes back to.
        self._claimed_ids: set[str] = set()
        # Id of a decision that was replaced -> the standing line that it became.
        self._successors: dict[str, Line] = {}
        for line in decisions.lines.values():
            for replaced in decisions.replaced(line):
                self._successors[replaced.id] = line
        self._file_holds_notes = any("note" in clip.extras for clip in file.clips)

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
        is_changed = origin is not None and not is_same
        is_blind_changed = is_changed and seen == "0" and self._file.shows_model_output
        if is_blind_changed:
            # Whoever changed the blind judgement in this file had the score in sight. The blind one stays,
            # and the change becomes a further judgement, in sight.
            seen = "1"
            origin = self._origin_by_times(clip, seen)
            is_same = self._says_what_its_origin_says(clip, origin)
        if is_same and origin is not None:
            self._claimed_ids.add(origin.target.id)
            taken.n_same += 1
            taken.rows.append(None)
            return
        kind = "judgement" if is_blind_changed else ""
        target = None if origin is None else origin.target
        try:
            row = self._row(clip, seen, target, kind)
        except ObygazeError as error:
            taken.leave_out(str(error))
            return
        taken.rows.append(row)
        if is_blind_changed:
            taken.n_in_sight += 1
        if target is None:
            taken.n_new += 1
        else:
            self._claimed_ids.add(target.id)
            taken.n_changed += 1

    def _origin_of(self, clip: Clip, seen: str) -> _Origin | None:
        """Find the decision that an annotation goes back to: by the id that it names, else by its times.

        The named decision must be of the same annotator, with the score in sight or not as `seen` says, and
        overlap the annotation. If it is at other times, a decision at the annotation's own times goes first:
        some programs write the ids of other annotations.
        """
        by_times = self._origin_by_times(clip, seen)
        named = self._decisions.ledger.lines.get(clip.extras.get(DECISION, ""))
        if named is None or not self._may_go_back_to(clip, seen, named):
            return by_times
        if by_times is not None and not self._is_at(clip, named):
            return by_times
        return self._with_later_versions(named)

    def _may_go_back_to(self, clip: Clip, seen: str, line: Line) -> bool:
        """Whether an annotation can go back to the decision whose id it names (`_origin_of`)."""
        has_same_author = line.annotator == clip.annotator and line.kind in WITH_LEVEL
        return has_same_author and line.row.get(SEEN_SCORE) == seen and _overlap(clip, line)

    def _with_later_versions(self, line: Line) -> _Origin:
        """Return a decision together with the lines that replaced it since.

        If an earlier import replaced the decision, a change replaces what that import wrote. If the decision
        was replaced at the desk, a change does not replace the desk's line, as nobody chose between the two:
        both stand.
        """
        successor = self._successors.get(line.id)
        if successor is None:
            return _Origin(target=line, versions=(line,))
        # The line itself, and what stood between it and its successor.
        since = [old for old in self._decisions.replaced(successor) if old.clock >= line.clock]
        target = successor if self._decisions.is_imported(successor) else line
        return _Origin(target, versions=(successor, *since))

    def _origin_by_times(self, clip: Clip, seen: str) -> _Origin | None:
        """Find a standing decision of the same annotator at an annotation's times, with `seen` the same.

        Decisions that an earlier annotation of the file goes back to are passed over.
        """
        for kind in WITH_LEVEL:
            for decided in self._decisions.kept[kind]:
                line = self._decisions.lines[decided.clip_id]
                is_own = decided.annotator == clip.annotator and decided.extras.get(SEEN_SCORE) == seen
                if is_own and line.id not in self._claimed_ids and self._is_at(clip, line):
                    return _Origin(target=line, versions=(line,))
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
        if self._file_holds_notes:
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
                raise FilmError(message("import_moved"))
            start_s, end_s = self._decisions.windows[place - 1]  # without the rounding of the file
        note = self._note(clip, replaced)
        rules = self._decisions.rules
        row = rules.row_of(
            kind,
            start_s,
            end_s,
            clip.annotator,
            draw=self._decisions.draw,
            level=clip.level or "",
            concepts=clip.concepts,
            note=note,
            place=place,
            is_blind=seen == "0",
            origin="own" if replaced is None else replaced.row.get("origin", "own"),
        )
        if replaced is not None:
            row = {**replaced.row, **row}  # further columns of the replaced line stay
            # `row_of` writes no empty cells: a note and concepts that the annotation dropped must not stay.
            if not note:
                row.pop("note", None)
            if not clip.concepts:
                row.pop("concepts", None)
        # The file does not say when it was decided. Without this machine's time it gives the same lines on
        # every machine.
        row.pop("judged_at", None)
        row[DEFINITION] = clip.extras.get(DEFINITION) or self._decisions.codebook.definition()
        rules.refuse(kind, row, start_s, end_s)
        rules.clip_of_new(kind, row, self._file.path)  # raises if the decision is not valid
        return TableRow(row, replaces="" if replaced is None else replaced.id, kind=kind)

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
        for place, (window_start_s, window_end_s) in enumerate(self._decisions.windows, start=1):
            if self._are_near(start_s, window_start_s) and self._are_near(end_s, window_end_s):
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
        has_same_start = self._are_near(float(clip.start_s or 0.0), float(line.row["start_s"]))
        return has_same_start and self._are_near(float(clip.end_s or 0.0), float(line.row["end_s"]))

    def _are_near(self, time_s: float, other_s: float) -> bool:
        """Whether two times are the same but for the rounding of the file."""
        return abs(time_s - other_s) <= self._file.rounding_s


def _overlap(clip: Clip, line: Line) -> bool:
    """Whether the spans of an annotation and a decision overlap."""
    start_s, end_s = float(clip.start_s or 0.0), float(clip.end_s or 0.0)
    return start_s < float(line.row["end_s"]) and float(line.row["start_s"]) < end_s


def lines_of(file: Annotated, results: Iterable[TakenFrom]) -> list[str]:
    """Write for each annotator of a file a line with the numbers of annotations taken in and left out."""
    lines = []
    for taken in results:
        parts = [f"{taken.n_new} new", f"{taken.n_changed} changed", f"{taken.n_same} as they stand"]
        n_left_out = taken.left_out.total()
        if n_left_out:
            parts.append(f"{n_left_out} left out")
        lines.append(f"{file.path}: {taken.annotator}: {', '.join(parts)}")
    return lines


def notices_of(file: Annotated, results: Sequence[TakenFrom]) -> list[str]:
    """Write notices on annotations that were left out and blind judgements changed in sight of the score."""
    notices = []
    for taken in results:
        for reason, n in taken.left_out.items():
            notices.append(f"{file.path}: {taken.annotator}: {counted(n, 'span')} left out: {reason}")
        if taken.n_in_sight:
            judgements = counted_message("n_judgements", taken.n_in_sight)
            facts = {"path": file.path, "who": taken.annotator, "n": judgements}
            notices.append(message("import_in_sight", **facts))
    return notices
