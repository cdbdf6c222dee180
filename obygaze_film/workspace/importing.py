"""Import the annotations in other tools' files into a film's ledger.

For each annotation the decision that it goes back to is found in the ledger: by the decision's id, if the
file names it (EAF and CSV), else by annotator, times, and whether the score was shown. An annotation that
says the same as its decision changes nothing, even if that decision was replaced since. One that says
something else replaces its decision. One that goes back to no decision is a new decision. A decision that the
file lacks stays as it is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

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
    refuse_twins,
)
from obygaze_features.untrusted import read_bytes
from obygaze_film.errors import FilmError
from obygaze_film.notes import counted_message, message
from obygaze_film.scored_files import MAX_BYTES
from obygaze_film.workspace.ledger import LEDGER, TableRow
from obygaze_film.workspace.ledger_lines import Line

if TYPE_CHECKING:
    from obygaze_film.workspace.decisions import Decisions

HUNDREDTHS_ROUNDING_S: Final = 0.0065
"""Seconds by which a time in hundredths of a second may differ from a decision's and be the same: half of
one, and the milliseconds of the decision. Subtitles that an editor saved as `ass` have such times."""

OPTIONS_OF_SPANS: Final = re.compile(r"--(?:rate|unit|start|word|column|wide|movie|encoding)\b")
"""Options of `obygaze manifest import spans` that messages of `import_spans` advise, such as `--rate` for
times in frames. An import into a film has none of them."""

WORD_OF_A_GUESS: Final = "which is a guess"
"""Part of the notice of `import_spans` that it guessed the encoding of a file."""

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
        """Tolerance in seconds within which a time in the file and a decision's time are equal.

        Formats round times: to milliseconds, hundredths or frames. If obygaze exports a format that is read
        as this kind of file, it is that format's rounding; for other kinds it is that of milliseconds.
        """
        from obygaze_film.exchange.registry import (  # noqa: PLC0415 - slow, and films are opened without it
            FORMATS,
            MILLISECOND_ROUNDING_S,
        )

        if self.kind == "ass":  # we write none: an editor saved our subtitles as such
            return HUNDREDTHS_ROUNDING_S
        for written in FORMATS.values():
            if written.read_as == self.kind:
                return written.rounding_s
        return MILLISECOND_ROUNDING_S

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
        An option of `manifest import spans` has to say how to read it, such as how many frames a second has.
        Or it is not UTF-8, and names or notes in it depend on the guess of its encoding.
    """
    from obygaze_features.manifest import import_spans  # noqa: PLC0415 - slow, and films are opened without it

    try:
        imported = import_spans(
            [path], Path(), tiers=tiers, movie=movie, annotator=annotator, codebook=codebook
        )
    except ManifestError as error:
        # The text tells: there are no classes of errors for what an option would solve.
        if OPTIONS_OF_SPANS.search(str(error)):
            # This message explains how to convert the file with `obygaze manifest import spans` first.
            raise FilmError(message("import_options", error=error, path=path)) from None
        raise
    _refuse_guessed_names(path, imported.manifest.clips, imported.notices)
    (account,) = imported.accounts  # one for each file
    return Annotated(
        path,
        sha256=sha256_of(read_bytes(path, MAX_BYTES)),
        clips=imported.manifest.clips,
        shows_model_output=account.shows_model_output,
        kind=account.kind,
        notices=imported.notices,
    )


def _refuse_guessed_names(path: Path, clips: Iterable[Clip], notices: Iterable[str]) -> None:
    """Refuse a file whose encoding was guessed, if the guess decides how its people or notes are written.

    A ledger keeps its lines: with a wrong guess the person would count as another one from then on. Levels
    and concepts do not matter, as a wrong one is none of the codebook.
    """
    is_guessed = any(WORD_OF_A_GUESS in notice for notice in notices)
    if not is_guessed:
        return
    for clip in clips:
        for text in (clip.annotator, clip.extras.get("note", "")):
            if not text.isascii():
                raise FilmError(message("import_guess", path=path, text=text))


@dataclass
class AnnotatorResult:
    """The result of comparing one person's annotations in a file with the ledger.

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
    n_with_score : int
        Blind judgements that were changed with the score shown. The changed judgement is added, and the
        blind one stays.
    left_out : Counter of str
        Reason for leaving out -> number of annotations that were left out for it.
    """

    annotator: str
    rows: list[TableRow | None] = field(default_factory=list)
    n_new: int = 0
    n_changed: int = 0
    n_same: int = 0
    n_with_score: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def document(self) -> dict[str, object]:
        """The annotator and the numbers of annotations, as a document for JSON output."""
        numbers = {"new": self.n_new, "changed": self.n_changed, "same": self.n_same}
        return {"annotator": self.annotator, **numbers, "left_out": dict(self.left_out)}

    def leave_out(self, reason: str) -> None:
        """Count an annotation that gives no decision, for a reason that the user is told.

        None takes its place in `rows`, so that the numbers of the rows after it stay the same.
        """
        self.left_out[reason] += 1
        self.rows.append(None)


def compare_annotations(
    decisions: "Decisions", file: Annotated, is_blind: bool | None
) -> list[AnnotatorResult]:
    """Compare a file's annotations with the ledger's decisions; return a result for each annotator.

    Nothing is written to the ledger.

    Parameters
    ----------
    decisions : Decisions
        The decisions about one film.
    file : Annotated
    is_blind : bool or None
        Whether the model's score was hidden, as the person who imports the file declares. It holds for
        annotations that do not state it themselves. None if nothing is declared.

    Raises
    ------
    FilmError
        An annotation has a level and no annotator. Or neither the file nor the person says whether the score
        was shown, or they contradict each other.
    ManifestError
        An annotator's name is another spelling of a name in the ledger (`_refuse_other_spellings`).
    """
    _refuse_other_spellings(decisions, file)
    comparison = _Comparison(decisions, file)
    result_of: dict[str, AnnotatorResult] = {}
    for clip in file.clips:
        if _is_ignored(clip):
            continue
        if not clip.annotator:
            raise FilmError(message("import_nobody", path=file.path))
        result = result_of.setdefault(clip.annotator, AnnotatorResult(clip.annotator))
        reason = _why_left_out(clip, decisions.film.movie)
        if reason:
            result.leave_out(reason)
        else:
            comparison.add(clip, _seen_score(clip, file, is_blind), result)
    return list(result_of.values())


def _refuse_other_spellings(decisions: "Decisions", file: Annotated) -> None:
    """Refuse an annotator of a file whose name is another spelling of one in the ledger, such as ab of AB.

    A ledger keeps its lines: with both, the tables would be refused by all that reads them as manifests, and
    one person would count as two judges.
    """
    known_names = decisions.annotators
    for clip in file.clips:
        if not clip.annotator or _is_ignored(clip) or clip.annotator in known_names:
            continue
        place_of_new_name = (file.path, f"clip {clip.clip_id!r}")
        for known_name in known_names:
            refuse_twins(
                "annotator",
                {known_name: (decisions.folder, LEDGER), clip.annotator: place_of_new_name},
            )


def _is_ignored(clip: Clip) -> bool:
    """Whether a span of a file is no annotation, so that it is left out without a message.

    Such spans have no level. They are by nobody (subtitles, for example), or are notes of people, which the
    name of their tier says.
    """
    if clip.level:
        return False
    if not clip.annotator:
        return True
    people_tier = PeopleTier.parse(clip.extras.get("tier", ""))  # None if it is not one of people's decisions
    return people_tier is not None and people_tier.what == "note"


def _why_left_out(clip: Clip, movie: str) -> str:
    """Return why an annotation can give no decision about a film; empty if it can."""
    if find_film(clip.movie, [movie]) is None:
        return message("import_film", movie=clip.movie)
    if not clip.level or clip.start_s is None or clip.end_s is None:
        return message("import_level")
    if clip.extras.get(HOW) == AGREED:  # the tier holds what several people agreed on
        return message("import_agreed")
    return ""


def _seen_score(clip: Clip, file: Annotated, is_blind: bool | None) -> str:
    """Return whether the annotator was shown the model's score: "1" if so, "0" if they judged blindly.

    Parameters
    ----------
    clip : Clip
        The annotation.
    file : Annotated
        The file that it is from.
    is_blind : bool or None
        What the person who imports the file declares; None if they declare nothing.

    Raises
    ------
    FilmError
        Nothing tells, or what is declared contradicts the file.
    """
    seen_in_file = clip.extras.get(SEEN_SCORE, "")

    # 1. The name of the annotation's tier may say how people judged, such as `AB blind`. The reader of the
    # file has put that in the column too.
    tier_says_how = bool(clip.extras.get(HOW, ""))
    if tier_says_how:
        return seen_in_file

    # 2. What the person who imports declares. Nobody is blind beside a model's output in the same file.
    if is_blind is not None:
        if is_blind and file.shows_model_output:
            raise FilmError(message("import_beside", path=file.path))
        return JUDGED_BLINDLY if is_blind else SCORE_WAS_SHOWN

    # 3. The file. Without a model's output it says nothing: the annotator may have seen the score elsewhere.
    if not seen_in_file:
        raise FilmError(message("import_how", path=file.path))
    return seen_in_file


def notice_on_unused_declaration(file: Annotated, is_blind: bool | None) -> str:
    """Say of how many annotations the tier says otherwise than the person declares; "" if of none.

    What the tier says counts, as it was written when the annotations were made.

    Parameters
    ----------
    file : Annotated
    is_blind : bool or None
        What the person who imports the file declares; None if they declare nothing.
    """
    if is_blind is None:
        return ""
    by_tier = SCORE_WAS_SHOWN if is_blind else JUDGED_BLINDLY
    n_otherwise = 0
    for clip in file.clips:
        tier_says_how = bool(clip.extras.get(HOW, ""))
        if clip.level and tier_says_how and clip.extras.get(SEEN_SCORE) == by_tier:
            n_otherwise += 1
    if n_otherwise == 0:
        return ""
    option, how = ("--blind", "in sight of the score") if is_blind else ("--in-sight", "blindly")
    annotations = counted(n_otherwise, "annotation")
    return f"{file.path}: {option} is not used for {annotations}, as the tiers say that they were made {how}"


JUDGED_BLINDLY: Final = "0"
SCORE_WAS_SHOWN: Final = "1"
"""Cells of the column `seen_score`: whether the annotator saw the model's score."""


class _Origin(NamedTuple):
    """The decision in the ledger that an annotation was exported from.

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


class _DecidedSpan(NamedTuple):
    """The span of a new decision.

    Attributes
    ----------
    kind : str
        Kind of the decision.
    start_s, end_s : float
    place : int
        Place in the draw of a window that was judged blindly, from 1 on; 0 for all others.
    """

    kind: str
    start_s: float
    end_s: float
    place: int = 0


def _with_columns_of_replaced(row: Mapping[str, str], replaced_row: Mapping[str, str]) -> dict[str, str]:
    """Add to a new row the columns that only the replaced row has, such as its model's passage.

    The note and the concepts are not added: if the new row lacks them, the annotator deleted them.
    """
    was_deleted = {column for column in ("note", "concepts") if column not in row}
    inherited = {column: cell for column, cell in replaced_row.items() if column not in was_deleted}
    return {**inherited, **row}


class _Comparison:
    """Compares a file's annotations one by one with the decisions of a film's ledger."""

    def __init__(self, decisions: "Decisions", file: Annotated) -> None:
        """Begin to compare a file's annotations; `add` compares one with what people decided so far."""
        self._decisions = decisions
        self._file = file
        self._file_holds_notes = any("note" in clip.extras for clip in file.clips)
        # Ids of decisions that were matched with an annotation: no second annotation is matched with them.
        self._matched_ids: set[str] = set()
        # Id of a decision that was replaced -> the one that stands in its place now
        self._standing_successors = _standing_successors(decisions)

    def add(self, clip: Clip, seen_score: str, result: AnnotatorResult) -> None:
        """Compare one annotation with the ledger, and add the outcome to the annotator's result.

        The annotation is a new decision, or a change of the decision that it was exported from, or says the
        same as that. `seen_score` is "1" if the annotator saw the model's score, "0" if they judged blindly.
        """
        origin = self._origin_of(clip, seen_score)  # the decision that the annotation was exported from
        if origin is None:
            self._add_decision(clip, seen_score, origin=None, result=result)
            return

        if self._is_unchanged(clip, origin):
            self._add_same(origin, result)
            return
        # An annotation exported as blind was changed in a file that also shows the model's output. Whoever
        # changed it saw that output, and so the change is not blind.
        was_exported_as_blind = seen_score == JUDGED_BLINDLY
        if was_exported_as_blind and self._file.shows_model_output:
            self._add_changed_with_score(clip, result)
        else:
            self._add_decision(clip, seen_score, origin, result)

    def _add_same(self, origin: _Origin, result: AnnotatorResult) -> None:
        """Add to a result an annotation that says what the ledger says already; it gives no decision.

        Its decision (`origin`) is used up: no other annotation of the file is compared with it.
        """
        self._matched_ids.add(origin.target.id)
        result.n_same += 1
        # `rows` has an entry for each annotation, as numbers of rows are part of what is written: None for
        # one that gives no decision.
        result.rows.append(None)

    def _add_changed_with_score(self, clip: Clip, result: AnnotatorResult) -> None:
        """Add the change of a blind judgement in a file that shows a model's output.

        Whoever made the change saw the score. So the blind judgement stays, and the change is added as a
        judgement of the same person with the score shown. If the ledger has one already, from an earlier
        import of the file, the change is compared with that one.
        """
        origin = self._origin_by_times(clip, SCORE_WAS_SHOWN)
        if origin is not None and self._is_unchanged(clip, origin):
            self._add_same(origin, result)
            return
        is_added = self._add_decision(clip, SCORE_WAS_SHOWN, origin, result, kind="judgement")
        if is_added:
            result.n_with_score += 1

    def _add_decision(
        self, clip: Clip, seen_score: str, origin: _Origin | None, result: AnnotatorResult, kind: str = ""
    ) -> bool:
        """Add an annotation to a result as a decision: a new one, or one that replaces a line of the ledger.

        Parameters
        ----------
        clip : Clip
            The annotation.
        seen_score : str
            "1" if the annotator saw the model's score, "0" if they judged blindly.
        origin : _Origin or None
            The decision that the annotation was exported from, and which line it replaces now; None if it is
            new.
        result : AnnotatorResult
        kind : str
            Kind of a new decision, such as `judgement`. If empty, the annotation's span tells the kind.

        Returns
        -------
        bool
            Whether it was added. One that is no valid decision is left out, and counted by the result.
        """
        line_to_replace = None if origin is None else origin.target
        try:
            row = self._row(clip, seen_score, line_to_replace, kind)
        except ObygazeError as error:
            result.leave_out(str(error))
            return False

        result.rows.append(row)
        if line_to_replace is None:
            result.n_new += 1
        else:
            self._matched_ids.add(line_to_replace.id)  # no other annotation replaces it
            result.n_changed += 1
        return True

    def _origin_of(self, clip: Clip, seen_score: str) -> _Origin | None:
        """Find the decision that an annotation was exported from; None if it is a new one.

        An annotation may name the id of its decision. But some programs copy ids to other annotations, so
        that the id is believed only if nothing contradicts it. Otherwise the decision at the annotation's
        times is its origin, if there is one.
        """
        origin_by_times = self._origin_by_times(clip, seen_score)
        id_in_file = clip.extras.get(DECISION, "")
        named = self._decisions.ledger.lines.get(id_in_file)
        if named is None:  # it names no decision
            return origin_by_times
        if not self._can_be_exported_from(named, clip, seen_score):  # as of another annotator
            return origin_by_times

        # If its times are those of another decision, the id was copied from another annotation. If they are
        # those of no decision, the annotator moved its ends.
        has_times_of_another = origin_by_times is not None and not self._is_at(clip, named)
        if has_times_of_another:
            return origin_by_times
        return self._with_later_versions(named)

    def _can_be_exported_from(self, line: Line, clip: Clip, seen_score: str) -> bool:
        """Whether an annotation can have been exported from a decision, and then changed.

        The decision must have a level and the same annotator, the spans must overlap, and both must be made
        with the model's score shown (`seen_score` is "1"), or both without ("0").
        """
        has_level = line.kind in WITH_LEVEL
        has_same_annotator = line.annotator == clip.annotator
        was_made_likewise = line.row.get(SEEN_SCORE) == seen_score
        return has_level and has_same_annotator and was_made_likewise and _overlap(clip, line)

    def _with_later_versions(self, exported: Line) -> _Origin:
        """Return what an annotation is compared with, and which line it would replace.

        While the annotator worked on the file, other lines may have replaced the decision in the ledger. An
        annotation that says what the decision said, or what one of these lines says, is no change.

        Parameters
        ----------
        exported : Line
            The decision from which the annotation was exported.
        """
        # The line that stands in its place now; None if nothing has replaced it, so that it stands itself.
        standing = self._standing_successors.get(exported.id)
        if standing is None:
            return _Origin(target=exported, versions=(exported,))

        line_to_replace = self._line_to_replace(exported, standing)
        versions = (standing, *self._versions_since(exported, standing))
        return _Origin(target=line_to_replace, versions=versions)

    def _line_to_replace(self, exported: Line, standing: Line) -> Line:
        """Return the line that a changed annotation is to replace.

        A decision was exported, and changed in another tool. Meanwhile another line has replaced it in the
        ledger (`standing`):

        - That line was imported from an earlier version of the file. The annotator has changed the annotation
          again, which replaces that line.
        - That line was decided at the desk. The annotation does not overrule it, but replaces the exported
          decision, as that line does: both stand, and the person is asked to choose.

        Parameters
        ----------
        exported : Line
            The decision that was exported.
        standing : Line
            The line that stands in its place now.
        """
        is_earlier_version_of_file = self._decisions.is_from_other_tool(standing)
        return standing if is_earlier_version_of_file else exported

    def _versions_since(self, exported: Line, standing: Line) -> list[Line]:
        """Return a decision (`exported`) and the versions between it and the one that stands now.

        Versions from before the export do not count: an annotation that says what one of these says is a
        change of the decision. Their clocks are lower, as each line has a higher clock than the lines that it
        replaced.
        """
        replaced = self._decisions.replaced(standing)
        return [version for version in replaced if version.clock >= exported.clock]

    def _origin_by_times(self, clip: Clip, seen_score: str) -> _Origin | None:
        """Find a standing decision of the same annotator at an annotation's times; None if there is none.

        Both must be made with the model's score shown (`seen_score` is "1"), or both without ("0"). Decisions
        that were matched with another annotation of the file do not count.
        """
        for kind in WITH_LEVEL:
            for decision in self._decisions.clips_by_kind[kind]:
                is_free = decision.clip_id not in self._matched_ids
                has_same_annotator = decision.annotator == clip.annotator
                was_made_likewise = decision.extras.get(SEEN_SCORE) == seen_score
                line = self._decisions.lines[decision.clip_id]
                if is_free and has_same_annotator and was_made_likewise and self._is_at(clip, line):
                    return _Origin(target=line, versions=(line,))
        return None

    def _is_unchanged(self, clip: Clip, origin: _Origin) -> bool:
        """Whether an annotation says the same as its decision did when it was exported, or does since."""
        return any(self._says_the_same(clip, line) for line in origin.versions)

    def _says_the_same(self, clip: Clip, line: Line) -> bool:
        """Whether an annotation has the level, concepts, times and note of a ledger's line.

        A file without any notes has lost them: its annotations then count as having the line's note
        (`_note`).
        """
        concepts_of_line = {name for name in line.row.get("concepts", "").split(";") if name}
        has_same_labels = clip.level == line.row.get("level") and {*clip.concepts} == concepts_of_line
        has_same_note = self._note(clip, line) == line.row.get("note", "")
        has_same_times = self._is_at(clip, line)
        return has_same_labels and has_same_note and has_same_times

    def _note(self, clip: Clip, line: Line | None) -> str:
        """Return an annotation's note; in a file that holds no notes, the note of its decision (`line`)."""
        if self._file_holds_notes:
            return " ".join(clip.extras.get("note", "").split())  # blanks as in the ledger
        return "" if line is None else line.row.get("note", "")

    def _row(self, clip: Clip, seen_score: str, replaced: Line | None, kind: str) -> TableRow:
        """Write an annotation as a decision for the ledger; raise FilmError if it is no valid one.

        Levels and concepts are the annotation's. What a file of another tool does not hold, such as exact
        times and the model's passage that was judged, is taken from the line that is replaced.

        Parameters
        ----------
        clip : Clip
            The annotation.
        seen_score : str
            "1" if the annotator saw the model's score, "0" if they judged blindly.
        replaced : Line or None
            The line that the decision replaces, whose kind it has; None if it is new.
        kind : str
            Kind of a new decision; if empty, its span tells the kind.
        """
        is_blind = seen_score == JUDGED_BLINDLY
        span = self._span_of(clip, replaced, kind, is_blind=is_blind)
        who_marked_span = "own"  # the annotator, unless the replaced line says otherwise
        if replaced is not None:
            who_marked_span = replaced.row.get("origin", "own")

        # The cells that are written at the desk too
        row = self._decisions.rules.row_of(
            span.kind,
            span.start_s,
            span.end_s,
            clip.annotator,
            draw=self._decisions.draw,
            level=clip.level or "",
            concepts=clip.concepts,
            note=self._note(clip, replaced),
            place=span.place,
            is_blind=is_blind,
            origin=who_marked_span,
        )
        if replaced is not None:
            row = _with_columns_of_replaced(row, replaced.row)

        # The cell with the time of the decision goes: the file does not say when it was made, and with the
        # time of the import each machine would write other lines.
        row.pop("judged_at", None)
        row[DEFINITION] = clip.extras.get(DEFINITION) or self._decisions.codebook.definition()
        self._refuse_invalid(row, span)
        replaced_id = "" if replaced is None else replaced.id
        return TableRow(row, replaces=replaced_id, kind=span.kind)

    def _refuse_invalid(self, row: dict[str, str], span: "_DecidedSpan") -> None:
        """Raise FilmError if a decision that is to be added (column -> cell) is not valid for the film."""
        rules = self._decisions.rules
        rules.refuse_invalid(span.kind, row, span.start_s, span.end_s)
        rules.checked_clip(span.kind, row, self._file.path)  # raises an error if the row is not valid

    def _span_of(self, clip: Clip, replaced: Line | None, kind: str, *, is_blind: bool) -> "_DecidedSpan":
        """Return the exact span of an annotation's decision, and its kind.

        The kind is that of the line that it replaces. A new decision has the kind of the argument, or if that
        is empty, the one that fits its span (`_kind_of_span`).

        A blind judgement (made with the model's score hidden) is of a window that was drawn, and gets the
        exact times of this window, as the file may round them. FilmError is raised if no window has its ends:
        then the annotator has moved them.
        """
        start_s, end_s = self._times_of(clip, replaced)
        if replaced is not None:
            kind_of_decision: str = replaced.kind
        else:
            kind_of_decision = kind or self._kind_of_span(start_s, end_s, is_blind=is_blind)

        is_of_drawn_window = kind_of_decision == "judgement" and is_blind
        if not is_of_drawn_window:
            return _DecidedSpan(kind_of_decision, start_s, end_s)
        place = self._place_at(start_s, end_s)
        was_moved = place == 0  # no window has these ends
        if was_moved:
            raise FilmError(message("import_moved"))
        window_start_s, window_end_s = self._decisions.windows[place - 1]
        return _DecidedSpan(kind_of_decision, window_start_s, window_end_s, place)

    def _kind_of_span(self, start_s: float, end_s: float, *, is_blind: bool) -> str:
        """Return the kind of a new decision on a span: `judgement`, or `passage`.

        People judge a span that is given: a drawn window if they judge blindly, or a segment that the model
        found. Any other span is a passage that the annotator marked.
        """
        if is_blind:
            return "judgement" if self._place_at(start_s, end_s) else "passage"
        segments = self._decisions.film.segments()[["start_s", "end_s"]].to_numpy().tolist()
        for segment_start_s, segment_end_s in segments:
            if self._are_near(start_s, segment_start_s) and self._are_near(end_s, segment_end_s):
                return "judgement"
        return "passage"

    def _place_at(self, start_s: float, end_s: float) -> int:
        """Return the place in the draw, from 1 on, of the window with these ends; 0 if none has them."""
        for place, (window_start_s, window_end_s) in enumerate(self._decisions.windows, start=1):
            if self._are_near(start_s, window_start_s) and self._are_near(end_s, window_end_s):
                return place
        return 0

    def _times_of(self, clip: Clip, replaced: Line | None) -> tuple[float, float]:
        """Return an annotation's start and end in seconds, without the rounding of the file if possible.

        `replaced` is the decision that the annotation replaces, which has exact times; None if it is new.
        """
        # The replaced line has the same times, and has them exactly.
        if replaced is not None and self._is_at(clip, replaced):
            return float(replaced.row["start_s"]), float(replaced.row["end_s"])
        return float(clip.start_s or 0.0), float(clip.end_s or 0.0)

    def _is_at(self, clip: Clip, line: Line) -> bool:
        """Whether an annotation has the start and end of a decision, within the rounding of the file."""
        has_same_start = self._are_near(float(clip.start_s or 0.0), float(line.row["start_s"]))
        return has_same_start and self._are_near(float(clip.end_s or 0.0), float(line.row["end_s"]))

    def _are_near(self, time_s: float, other_s: float) -> bool:
        """Whether two times are the same within the rounding of the file."""
        return abs(time_s - other_s) <= self._file.rounding_s


def _standing_successors(decisions: "Decisions") -> dict[str, Line]:
    """Map the id of each decision that was replaced to the standing line that replaced it in the end."""
    successors = {}
    for line in decisions.lines.values():  # those that stand
        for replaced in decisions.replaced(line):
            successors[replaced.id] = line
    return successors


def _overlap(clip: Clip, line: Line) -> bool:
    """Whether the spans of an annotation and a decision overlap."""
    start_s = float(clip.start_s or 0.0)
    end_s = float(clip.end_s or 0.0)
    line_start_s = float(line.row["start_s"])
    line_end_s = float(line.row["end_s"])
    return start_s < line_end_s and line_start_s < end_s


def summary_lines(file: Annotated, results: Iterable[AnnotatorResult]) -> list[str]:
    """Write for each annotator of a file a line with the numbers of annotations imported and left out."""
    lines = []
    for result in results:
        parts = [f"{result.n_new} new", f"{result.n_changed} changed", f"{result.n_same} as they stand"]
        n_left_out = result.left_out.total()
        if n_left_out:
            parts.append(f"{n_left_out} left out")
        lines.append(f"{file.path}: {result.annotator}: {', '.join(parts)}")
    return lines


def import_notices(file: Annotated, results: Sequence[AnnotatorResult]) -> list[str]:
    """Write notices on annotations left out, and on blind judgements changed with the score shown."""
    notices = []
    for result in results:
        for reason, n in result.left_out.items():
            notices.append(f"{file.path}: {result.annotator}: {counted(n, 'span')} left out: {reason}")
        if result.n_with_score:
            judgements = counted_message("n_judgements", result.n_with_score)
            facts = {"path": file.path, "who": result.annotator, "n": judgements}
            notices.append(message("import_in_sight", **facts))
    return notices
