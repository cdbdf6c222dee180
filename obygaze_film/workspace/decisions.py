"""Keep what people decide about a scored film in its ledger; tables of the decisions are exports of it."""

import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Final, NamedTuple

from obygaze_features.door import read_bytes
from obygaze_features.errors import InputError, ObygazeError
from obygaze_features.io import sha256_of, write_new
from obygaze_features.manifest import (
    BUILTIN,
    CONTENT_S,
    DEFINITION,
    PLACE,
    SEEN_SCORE,
    Clip,
    Codebook,
    Manifest,
    find_codebook,
    repeated_concepts,
)
from obygaze_film.draws import LAW, SEED, Draw
from obygaze_film.errors import FilmError
from obygaze_film.exchange.decided import Decided
from obygaze_film.judged_windows import JUDGED_AT, judged_at, named_sampling, sampling_of
from obygaze_film.notes import counted_message, message
from obygaze_film.scored_files import JUDGEMENTS, MOST_BYTES, PASSAGES, RECORD
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.acts import Acts
from obygaze_film.workspace.authority import reason_against, refused_claims
from obygaze_film.workspace.definitions import (
    UNKNOWN,
    ChangedText,
    Meanings,
    changed_texts,
    codebook_in,
    stored,
)
from obygaze_film.workspace.importing import IMPORT, Annotated, AnnotatorResult, compare_annotations
from obygaze_film.workspace.ledger import LEDGER, MOST_OF_A_KIND, Ledger
from obygaze_film.workspace.ledger_lines import DECISIONS, HEADERS, Header, Line, in_order
from obygaze_film.workspace.rules import (
    DEFAULT_PLANNED,
    PLANNED,
    Cells,
    FilmRules,
    Reading,
    name_of,
    read_line,
)
from obygaze_film.workspace.settling import (
    DECIMALS,
    Disagreement,
    disagreements,
    problem_of,
    span_key,
)
from obygaze_film.workspace.tables import (
    COLUMNS,
    KINDS,
    NOTES,
    Decision,
    EditedTable,
    ExportedTable,
    State,
    read_edited,
    state_of,
    table_text,
)

__all__ = ["COLUMNS", "JUDGEMENTS", "KINDS", "NOTES", "PASSAGES", "Decisions", "State", "state_of"]

Places = frozenset[int]
"""Places of windows in the draw, from 1 on."""

ALL_PLACES: Final = None
"""Stands for all places of the draw, where a set of places is expected."""

DRAW_COLUMNS: Final = (SEEN_SCORE, PLACE, LAW, SEED, CONTENT_S, JUDGED_AT)
"""Columns that say how a judged window was drawn, and when it was judged.

Every judgement in a manifest has them, possibly empty.
"""

ONE_PER_SPAN: Final = ("judgement", "agreed")
"""Kinds of decisions of which a person has at most one on a span. Passages that people mark may overlap."""

JudgedSpan = tuple[object, ...]
"""What has at most one judgement: annotator, movie, start, end, and whether the score was in sight."""


class Decisions:
    """What people decided about one film: the decisions of all files of its ledger.

    Every decision is appended to the ledger at once, and the tables are written anew. If a table's file is
    not as it was written here, somebody edited it elsewhere, and its new rows are added to the ledger.

    Parameters
    ----------
    folder : Path
        The scored film's.
    film : Timeline
    codebook : Codebook
        Of the levels and concepts.
    same_meaning : bool
        Whether the person declares that the codebook means the same as all others under which the film was
        judged. That is kept in the ledger.

    Attributes
    ----------
    ledger : Ledger
        All lines of the film's ledger, also those that were replaced or taken back.
    rules : FilmRules
        What decisions about this film must be.
    kept : dict
        Kind -> the valid decisions that stand, as clips, in the same order on every machine. Their clip ids
        are the ids of their lines; columns without a field of `Clip` are in `extras`.
    lines : dict
        Id -> the ledger's line of each of these decisions; other lines of the ledger are not in it.
    definition : str
        Digest of the codebook's definitions; of several digests that mean the same, the one that represents
        them.
    notices : list of str
        Messages for the user, each one once. Whoever prints them empties the list.

    Raises
    ------
    ObygazeError
        A table lacks columns, or a row is no valid decision; the message names file and line.
    """

    def __init__(
        self, folder: Path, film: Timeline, codebook: Codebook, *, same_meaning: bool = False
    ) -> None:
        self.folder = folder
        self.film = film
        self.codebook = codebook
        self.rules = FilmRules(film, codebook)
        self._lock = RLock()  # the desk's server decides and reads in several threads
        # The state of the film's record: if it changes, the film was scored again since.
        self._state_when_opened = state_of(folder / RECORD)

        # Notices for the user: all so far, so that none is given twice, and how many there were of each kind.
        self.notices: list[str] = []
        self._given_notices: set[str] = set()
        self._n_notices_of_kind = Counter[str]()

        # Where decisions are written.
        self.ledger = Ledger(folder, self._say, self._new_header)
        self._acts = Acts(self.ledger)  # for undo and redo
        self._tables = {kind: ExportedTable(folder, kind) for kind in KINDS}

        # What stands in the ledger, and under which definitions; `refresh` finds it.
        self.kept: dict[str, list[Clip]] = {}
        self.lines: dict[str, Line] = {}
        self._readings: dict[str, Reading] = {}  # id of a line -> the line as the rules read it
        self._meanings = Meanings(())
        self.definition = codebook.definition()
        # Digests of other codebooks that the person declares to mean the same as this one.
        self._same_meaning: tuple[str, ...] = ()

        self.refresh(is_opening=True)
        if same_meaning:  # only once the ledger was read it is known which other definitions were used
            self._declare_same_meaning()
        self._say_other_definitions()

    # --- what is there
    # ---------------------------------------------------------------------------
    @property
    def default_annotator(self) -> str:
        """Who decided last since the workspace was opened; if nobody did, the only person who ever decided.

        Empty if several people decided, or none.
        """
        if self._acts.last_annotator:
            return self._acts.last_annotator
        names = {clip.annotator for clips in self.kept.values() for clip in clips}
        return names.pop() if len(names) == 1 else ""

    @property
    def draw(self) -> Draw:
        """The draw of the windows to judge blindly.

        Its method of sampling is that by which windows were judged blindly before, so that judging goes on.
        """
        judgements = self.kept.get("judgement", ())
        # Only a blind judgement of a drawn window has a place in the draw.
        blind_judgements = [clip for clip in judgements if self._place_in_draw(clip) > 0]
        return self.rules.draws[sampling_of(blind_judgements)]

    @property
    def windows(self) -> list[tuple[float, float]]:
        """Start and end in seconds of the windows to judge blindly, in the order of the draw."""
        return self.rules.windows[self.draw.sampling]

    def place_of(self, clip: Clip) -> int:
        """Return the place in the draw, from 1 on, of a window that was judged blindly; 0 for other clips."""
        return self.rules.place_of(clip)

    def verdict(self, level: str, concepts: Iterable[str] = ()) -> str:
        """Return whether a judgement agrees with a model that marks the span (`FilmRules.verdict`)."""
        return self.rules.verdict(level, concepts)

    def _place_in_draw(self, clip: Clip) -> int:
        """Return the place in the draw, from 1 on, of a standing blind judgement; 0 for other decisions."""
        return self._readings[clip.clip_id].place

    def blind_judgements(self, *, any_definition: bool = False) -> dict[str, dict[int, Clip]]:
        """Return the blind judgements of each person: annotator -> place in the draw -> judgement.

        Judgements by another method of sampling than that of `draw` are left out, and so are those under
        other definitions than today's, unless `any_definition` is set.
        """
        judged: dict[str, dict[int, Clip]] = {}
        sampling = self.draw.sampling
        for clip in self.kept["judgement"]:
            place = self._place_in_draw(clip)
            is_of_draw = place > 0 and named_sampling(clip) == sampling
            has_definition = any_definition or self.is_current(clip.clip_id)
            if clip.level and is_of_draw and has_definition:
                judged.setdefault(clip.annotator, {})[place] = clip
        return judged

    def n_stated_by(self, annotator: str) -> int:
        """Return how many windows a person said that they would judge, before judging the first one.

        It is never more than the film's windows. It is 0 if their judgements don't say it, because they
        judged none, or because they filled in a list elsewhere, which was imported.
        """
        judged = self.blind_judgements().get(annotator, {}).values()
        cells = [clip.extras.get(PLANNED, "") for clip in judged]
        numbers = [int(cell) for cell in cells if cell.isdecimal()]
        return min(max(numbers, default=0), len(self.windows))

    def n_planned_by(self, annotator: str) -> int:
        """Return how many windows a person is to judge.

        - As many as they said.
        - If they never said a number, because their list was imported: as many as they judged.
        - If they judged none: `DEFAULT_PLANNED`, or all of the film's windows if there are fewer.
        """
        n_stated = self.n_stated_by(annotator)
        if n_stated:
            return n_stated
        n_judged = len(self.blind_judgements().get(annotator, ()))
        if n_judged:
            return n_judged
        return min(DEFAULT_PLANNED, len(self.windows))

    def places_seen_by(self, annotator: str) -> Places | None:
        """Return the places of the draw at which a person may see others' blind judgements.

        - All (`ALL_PLACES`), if they judged as many windows as they said, or all windows of the film.
        - None of them, if they said a number and have not judged as many yet.
        - The places that they judged, if they never said a number because their judgements were imported:
          they may still judge the other windows blindly.
        """
        own = self.blind_judgements().get(annotator, {})
        n_stated = self.n_stated_by(annotator)
        n_to_judge = n_stated or len(self.windows)
        if own and len(own) >= n_to_judge:
            return ALL_PLACES
        if n_stated:
            return frozenset()
        return frozenset(own)

    def places_seen_by_all(self) -> Places | None:
        """Return the places at which every judge may see the others' blind judgements.

        `ALL_PLACES` if every judge may see all. Blind judgements without the name of a judge are nobody's,
        and so they keep nothing hidden.
        """
        places_seen_by_all: Places | None = ALL_PLACES
        for annotator in self.blind_judgements():
            if annotator:
                places_seen_by_all = _common_places(places_seen_by_all, self.places_seen_by(annotator))
        return places_seen_by_all

    def ids_hidden_from(self, annotator: str, places_seen: Places | None) -> list[str]:
        """List the ids of the blind judgements of other people that a person may not see yet.

        Judgements under earlier definitions are hidden too.

        Parameters
        ----------
        annotator : str
            The person.
        places_seen : frozenset of int
            Places of the draw at which they may see others' judgements (`places_seen_by`); or `ALL_PLACES`.
        """
        if places_seen is ALL_PLACES:
            return []
        hidden_ids = []
        for judge, judgements in self.blind_judgements(any_definition=True).items():
            if judge == annotator:
                continue
            for place, clip in judgements.items():
                if place not in places_seen:
                    hidden_ids.append(clip.clip_id)
        return hidden_ids

    def hides_others_from(self, annotator: str) -> bool:
        """Whether any blind judgement of others is hidden from a person (`places_seen_by`)."""
        return bool(self.ids_hidden_from(annotator, self.places_seen_by(annotator)))

    def conflicts(self) -> set[str]:
        """Return the ids of standing decisions between which their author has yet to choose.

        Either two of them replace the same line, or they are two judgements of one person on one span. Such
        decisions come from machines that did not know of each other, for example.
        """
        # Of each of these a person should have one standing decision; here are those that they have.
        ids_by_replaced_line: dict[tuple[str, str], list[str]] = {}  # annotator and id of the replaced line
        ids_by_span: dict[tuple[str, JudgedSpan], list[str]] = {}  # kind and span
        for clips in self.kept.values():
            for clip in clips:
                line = self.lines[clip.clip_id]
                for replaced_id in dict.fromkeys(line.replaces):  # each once
                    ids_by_replaced_line.setdefault((line.annotator, replaced_id), []).append(line.id)
                if line.kind in ONE_PER_SPAN:
                    ids_by_span.setdefault((line.kind, _judged_span(clip)), []).append(line.id)
        conflicting_ids: set[str] = set()
        for ids in (*ids_by_replaced_line.values(), *ids_by_span.values()):
            if len(ids) > 1:
                conflicting_ids.update(ids)
        return conflicting_ids

    def judgements(self, clips: Iterable[Clip] | None = None) -> Manifest:
        """Make a manifest of the judgements that were made under today's definitions.

        Of several judgements of one person on one span the latest counts.

        Parameters
        ----------
        clips : iterable of Clip, optional
            The judgements to take; by default all that stand.
        """
        candidates = self.kept["judgement"] if clips is None else clips
        latest: dict[JudgedSpan, Clip] = {}
        for clip in candidates:
            if not clip.level or not self.is_current(clip.clip_id):
                continue
            extras = {name: clip.extras.get(name, "") for name in DRAW_COLUMNS}
            extras[DEFINITION] = self._definition_today(self.lines[clip.clip_id])
            latest[_judged_span(clip)] = replace(clip, extras=extras)
        return Manifest(tuple(latest.values()), self.folder, self.codebook)

    def _definition_today(self, line: Line) -> str:
        """Return the digest under which a current decision is exported: the codebook's, or `UNKNOWN`.

        A current decision may have been made under another definition that means the same as the codebook's.
        """
        if self.definition_of(line) == UNKNOWN:
            return UNKNOWN
        return self.codebook.definition()

    def disagreements(
        self, shown_ids: Container[str] | None = None, agreed_ids: Container[str] | None = None
    ) -> list[Disagreement]:
        """List the spans that people gave different levels under today's definitions.

        Parameters
        ----------
        shown_ids : container of str, optional
            Ids of the judgements and passages that are compared; by default all that stand.
        agreed_ids : container of str, optional
            Ids of the agreed decisions that may settle a difference; by default all that stand.
        """
        judged = self._current(("judgement", "passage"), shown_ids)
        agreed = self._current(("agreed",), agreed_ids)
        return disagreements(judged, agreed)

    def _current(self, kinds: Iterable[str], shown_ids: Container[str] | None) -> list[Clip]:
        """List the standing decisions of some kinds that give a level under today's definitions.

        Only those whose id is in `shown_ids` are listed; all of them if it is None.
        """
        current = []
        for kind in kinds:
            for clip in self.kept[kind]:
                is_shown = shown_ids is None or clip.clip_id in shown_ids
                if clip.level and is_shown and self.is_current(clip.clip_id):
                    current.append(clip)
        return current

    def decided(self, shown_ids: Container[str] | None = None) -> list[Decided]:
        """List what people decided under today's definitions, for exports.

        Only decisions whose id is in `shown_ids` are listed; by default all that stand.
        """
        all_decided = []
        for clips in self.kept.values():
            for clip in clips:
                is_shown = shown_ids is None or clip.clip_id in shown_ids
                if not is_shown or not self.is_current(clip.clip_id):
                    continue
                decided = self._decided(clip)
                if decided.level or decided.note:
                    all_decided.append(decided)
        return all_decided

    def _decided(self, clip: Clip) -> Decided:
        """Describe a standing decision for exports."""
        line = self.lines[clip.clip_id]
        # The judges of an agreed decision are those whose decisions it settles.
        settled_judges = {self.lines[parent_id].annotator for parent_id in line.parents}
        return Decided(
            clip.start_s or 0.0,
            clip.end_s or 0.0,
            judges=tuple(sorted(settled_judges)) or (clip.annotator,),
            level=clip.level or "",
            concepts=clip.concepts,
            note=line.row.get("note", ""),
            is_blind=clip.extras.get(SEEN_SCORE) == "0",
            is_agreed=line.kind == "agreed",
            id=line.id,
            definition=self.definition_of(line) if clip.level else UNKNOWN,
        )

    # --- under which definitions
    # ---------------------------------------------------------------------------
    def definition_of(self, line: Line) -> str:
        """Return the digest of the definitions that a line was decided under; `UNKNOWN` if nothing states it.

        A line may state its own definition. Otherwise, if it was decided at the desk, the header of its file
        has the codebook. The header of an imported table does not count: it has the codebook of the person
        who imported the table.
        """
        if DEFINITION in line.row:
            return self._meanings.of(line.row[DEFINITION])
        if self._is_of_table(line):
            return UNKNOWN
        header = self.ledger.header_of(line)
        stated_codebook = None if header is None else header.codebook
        if stated_codebook is None or codebook_in(stated_codebook) is None:  # none, or not readable
            return UNKNOWN
        return self._meanings.of(stated_codebook.definition)

    def is_current(self, line_id: str) -> bool:
        """Whether a standing decision was made under today's definitions, or does not say under which."""
        return self.definition_of(self.lines[line_id]) in {UNKNOWN, self.definition}

    def changed_definitions(self, language: str = "en") -> list[ChangedText]:
        """List the levels and concepts that codebooks of earlier decisions define differently from today's.

        Only decisions that stand count. Each change is listed once, with both texts.
        """
        changed: dict[ChangedText, None] = {}  # the keys are the list, without repetitions
        for line in self._under_other_definitions():
            header = self.ledger.header_of(line)
            if self._is_of_table(line) or header is None or header.codebook is None:
                continue
            earlier_codebook = codebook_in(header.codebook)
            if earlier_codebook is not None:
                changed |= dict.fromkeys(changed_texts(earlier_codebook, self.codebook, language))
        return [*changed]

    def _new_header(self) -> Header:
        """Return the header of a file of the ledger that begins now: codebook, what means the same, draw."""
        return Header(stored(self.codebook), self._same_meaning, self.draw)

    def _is_of_table(self, line: Line) -> bool:
        """Whether a line of the ledger was imported from a table or file, not decided at the desk."""
        first = self._first_of_file(line)
        return first is not None and first.kind == "table"

    def _first_of_file(self, line: Line) -> Line | None:
        """Return the first line, number 1, of a line's file, which says where the file's lines come from."""
        return self.ledger.lines.get(f"{line.sitting}-1")

    def _declare_same_meaning(self) -> None:
        """Declare in the ledger that all other definitions of standing decisions mean the same as today's."""
        other_definitions = sorted({self.definition_of(line) for line in self._under_other_definitions()})
        if other_definitions:
            self._same_meaning = tuple(other_definitions)
            self.ledger.begin()  # the header of a new file keeps the declaration
            self._update()

    def _under_other_definitions(self) -> list[Line]:
        """List the lines that stand and were decided under other definitions than today's."""
        return [line for line_id, line in self.lines.items() if not self.is_current(line_id)]

    def _say_other_definitions(self) -> None:
        """Say how many decisions name no definitions, and how many were made under others than today's."""
        labelled = [line for line in self.lines.values() if line.row.get("level")]
        unknown = [line for line in labelled if self.ledger.header_of(line) is None]
        if unknown:
            decided = counted_message("n_decisions", len(unknown))
            self._say(message("defined_unknown", folder=self.folder, decisions=decided))
        others = [line for line in self._under_other_definitions() if line.row.get("level")]
        if others:
            names = sorted({self._meanings.name(self.definition_of(line)) for line in others})
            facts = {"decisions": counted_message("n_decisions", len(others)), "names": "; ".join(names)}
            self._say(message("defined_otherwise", folder=self.folder, **facts))

    @property
    def headers(self) -> list[Header]:
        """The headers of the ledger's files; files of earlier versions have none."""
        headers = [line.header for line in self.ledger.lines.values() if line.kind in HEADERS]
        return [header for header in headers if header is not None]

    # --- what is decided
    # ---------------------------------------------------------------------------
    def keep(
        self,
        kind: str,
        start_s: float,
        end_s: float,
        annotator: str,
        *,
        level: str = "",
        concepts: Sequence[str] = (),
        note: str = "",
        origin: str = "own",
        place: int = 0,
        n_planned: int = 0,
        parents: Sequence[str] = (),
        mode: str = "read",
        changed_id: str = "",
    ) -> str:
        """Write a person's decision on a span to the ledger, and return its id.

        A judgement replaces what the same person judged of the same span before, if both were made blindly,
        or both in sight of the score.

        Parameters
        ----------
        kind : str
            One of `KINDS`.
        start_s, end_s : float
            Ends of the span.
        annotator : str
            Who decides.
        level, concepts, note
            What is decided: a note has no level and no concepts.
        origin : str
            Of a passage: `own` if the person marked it, else the model's passage that it was made from.
        place : int
            Of a blind judgement: the place of its window in the draw, from 1 on. 0 for all others.
        n_planned : int
            Of a blind judgement: how many windows the person plans to judge.
        parents : sequence of str
            Of an agreed decision: the ids of the decisions that it settles.
        mode : str
            Mode of the desk: `blind` hides all scores, `read` shows them.
        changed_id : str
            Id of the person's own decision that this one takes the place of; empty if there is none.

        Raises
        ------
        FilmError
            The decision is not valid, or the decision that it changes does not stand or is somebody else's.
        """
        is_agreed_blindly = (
            kind == "agreed" and mode == "blind" and self._can_agree_blindly(start_s, end_s, parents)
        )
        # First it is checked whether the decision is valid by itself.
        row = self.rules.row_of(
            kind,
            start_s,
            end_s,
            annotator,
            draw=self.draw,
            level=level,
            concepts=concepts,
            note=note,
            origin=origin,
            place=place,
            n_planned=n_planned,
            parents=parents,
            is_blind=is_agreed_blindly,
        )
        self.rules.refuse(kind, row, start_s, end_s)
        clip = self.rules.clip_of_new(kind, row, self.folder)
        names_a_place = kind == "judgement" and place != 0
        if names_a_place and not self.place_of(clip):  # no window there, or one with other ends
            raise FilmError(message("no_window", start=start_s, end=end_s, place=place))
        # Then whether it fits what stands, which others may have changed meanwhile.
        with self._lock:
            self._refuse_scored_again()
            self.refresh()
            if kind == "agreed":
                self._refuse_unsettled(row)
            changed = self._own_standing(changed_id, clip.annotator) if changed_id else None
            line = self._add(kind, row, clip, changed)
            self._update()
            return line.id

    def _add(self, kind: str, row: Cells, clip: Clip, changed: Line | None) -> Line:
        """Write a checked decision to the ledger, so that it can be undone, and return its line.

        Parameters
        ----------
        kind : str
        row : dict
            The decision.
        clip : Clip
            The same decision as a clip.
        changed : Line or None
            The decision that it takes the place of, beside those on its own span (`_ids_on_span`).
        """
        # A line can only replace one of its own kind: one of another kind is taken back.
        is_of_other_kind = changed is not None and changed.kind != kind
        replaced_ids = []
        if changed is not None and not is_of_other_kind:
            replaced_ids.append(changed.id)
        if kind in ONE_PER_SPAN:
            replaced_ids += [old_id for old_id in self._ids_on_span(kind, clip) if old_id not in replaced_ids]
        line = self.ledger.add(kind, row, replaced_ids)
        if changed is not None and is_of_other_kind:
            self._acts.remember(line, self._acts.take_back(changed))
        else:
            self._acts.remember(line)
        return line

    def delete(self, line_id: str, annotator: str) -> Line:
        """Take back a decision of the same person, whenever it was made, and return it.

        Its earlier versions are taken back too: otherwise the latest of them would stand again.

        Raises
        ------
        FilmError
            It is somebody else's, or was changed or deleted meanwhile.
        """
        with self._lock:
            self.refresh()
            line = self._own_standing(line_id, name_of(annotator))
            self._acts.remember(self._acts.take_back(line, *self.replaced(line)))
            self._update()
            return line

    def undo(self, annotator: str) -> Line | None:
        """Undo a person's latest act since the workspace was opened; return the decision that it was about.

        None if there is nothing to undo.
        """
        with self._lock:
            self.refresh()
            line = self._acts.undo(annotator)
            self._update()
            return line

    def redo(self, annotator: str) -> Line | None:
        """Do again what a person undid last, unless they decided something since; return that decision.

        None if there is nothing to do again.
        """
        with self._lock:
            self.refresh()
            line = self._acts.redo(annotator)
            self._update()
            return line

    def history(self, line_id: str) -> list[Line]:
        """Return the earlier versions of a decision, the latest first; of versions that say the same, one."""
        versions = [self.lines[line_id]]
        for line in self.replaced(self.lines[line_id]):
            if all(_content(line) != _content(version) for version in versions):
                versions.append(line)
        return versions[1:]

    def replaced(self, line: Line) -> list[Line]:
        """Find all earlier versions of a line: the lines that it replaced, and those that they replaced.

        The latest comes first. Lines that a version asks to replace and may not (`reason_against`) are none.
        """
        earlier: dict[str, Line] = {}
        to_follow = [line]
        while to_follow:
            version = to_follow.pop(0)
            for target_id in version.replaces:
                target = self.ledger.lines.get(target_id)
                is_known = target_id in earlier
                if target is not None and not is_known and reason_against(version, target) is None:
                    earlier[target_id] = target
                    to_follow.append(target)
        return sorted(earlier.values(), key=lambda old: (-old.clock, old.id))

    def is_imported(self, line: Line) -> bool:
        """Whether a line came in by an import of another tool's file."""
        first = self._first_of_file(line)
        return first is not None and first.row.get("kind") == IMPORT

    def _own_standing(self, line_id: str, annotator: str) -> Line:
        """Return the standing decision with an id; refuse if there is none, or if it is somebody else's."""
        line = self.lines.get(line_id)
        if line is None or line.annotator != annotator:
            raise FilmError(message("not_standing"))
        return line

    def _ids_on_span(self, kind: str, clip: Clip) -> list[str]:
        """Return the ids of the same person's standing decisions on a new decision's span, which it replaces.

        A judgement replaces one that was made likewise, blindly or in sight of the score; an agreed decision
        replaces both, as people settle a difference once.
        """
        key_of = _settled_span if kind == "agreed" else _judged_span
        return [old.clip_id for old in self.kept[kind] if key_of(old) == key_of(clip)]

    def _can_agree_blindly(self, start_s: float, end_s: float, parent_ids: Sequence[str]) -> bool:
        """Whether an agreed decision on a span counts as blind where the desk hides the scores.

        The decisions that it settles must all be blind. If people agreed on the span before with the score in
        sight, they know it, and the decision is not blind.
        """
        span = round(start_s, DECIMALS), round(end_s, DECIMALS)
        for clip in self.kept["agreed"]:
            if span_key(clip) == span and clip.extras.get(SEEN_SCORE) == "1":
                return False
        parents = [self.lines.get(parent_id) for parent_id in parent_ids]
        return all(parent is not None and parent.row.get(SEEN_SCORE) == "0" for parent in parents)

    def _refuse_scored_again(self) -> None:
        """Refuse to decide if the film was scored again since it was opened: the scores shown are old."""
        if state_of(self.folder / RECORD) != self._state_when_opened:
            raise FilmError(message("scored_again", folder=self.folder))

    def _refuse_unsettled(self, row: Mapping[str, str]) -> None:
        """Refuse an agreed decision whose parents do not stand, or are not of its span."""
        problem = problem_of(row, self.lines)
        if problem is not None:
            raise FilmError(message(f"agreed_{problem}"))

    # --- reading and writing
    # ---------------------------------------------------------------------------
    def refresh(self, *, is_opening: bool = False) -> None:
        """Read what others appended to the ledger, or edited in the tables.

        An edited table that can't be read raises an error while the decisions are opened (`is_opening`).
        Later there is only a notice, and the table's file is not written until somebody mends it.
        """
        with self._lock:
            edited_tables = [table for table in self._tables.values() if table.is_edited()]
            lines_before = dict(self.ledger.lines)
            for table in edited_tables:
                try:
                    self._read_edits(table)
                except (ObygazeError, OSError) as error:
                    if is_opening:
                        raise
                    table.mark_unreadable()
                    self._say(message("table_held", error=error))
            self.ledger.read()
            if is_opening or edited_tables or lines_before != self.ledger.lines:
                self._update()

    def _read_edits(self, table: ExportedTable) -> None:
        """Append the decisions that a person wrote into an exported table to the ledger.

        A table that is as it was exported holds none, and neither does one that was deleted.
        """
        # Order matters: the state is taken before the table is read, so that later edits are noticed. The
        # ledger is read after the table, so that it has every decision that was exported into the table.
        state = state_of(table.path)
        if state is None:
            table.remember(None)
            return
        data = read_bytes(table.path, MOST_BYTES, within=self.folder)
        self.ledger.read()
        self._find_standing()
        exported = self.table(table.kind)
        if data == exported.encode():
            table.remember(state, exported)
        else:
            table.remember(state)
            self._add_edits(table, sha256_of(data))

    def _add_edits(self, table: ExportedTable, digest: str) -> None:
        """Append the new decisions of an edited table, whose content has this digest, to the ledger."""
        lines = [line for line in self.ledger.lines.values() if line.kind == table.kind]
        decisions = {line.id: Decision(line, self.definition_of(line)) for line in lines}
        standing_ids = [clip.clip_id for clip in self.kept[table.kind]]
        edited = read_edited(table, self.rules, decisions, standing_ids, self._meanings)
        n_added = self.ledger.add_table(digest, table.kind, edited.new_decisions)
        if n_added:
            self._say_what_was_edited(table, edited, n_added, digest=digest[:16])
        elif any(edited.new_decisions):
            self._say(message("table_known", path=table.path))
        self._say_missing_rows(table, edited, standing_ids)

    def _say_what_was_edited(
        self, table: ExportedTable, edited: EditedTable, n_added: int, digest: str
    ) -> None:
        """Say how many decisions were taken in from a table, and which of its rows may be mistakes.

        Those repeat a concept, or name a decision that they may not replace.
        """
        decided = counted_message("n_decisions", n_added)
        self._say(message("table_edited", path=table.path, digest=digest, decisions=decided))
        cells = [(table.path, row.line, row.cells) for row in edited.rows]
        for notice in repeated_concepts(cells).values():
            self._say(f"{table.path}: {notice}")
        for row in edited.further_rows:
            facts = {"who": row.annotator, "name": row.line.id, "other": row.line.annotator}
            self._say(message("row_beside", path=table.path, line=row.number, **facts))

    def _say_missing_rows(
        self, table: ExportedTable, edited: EditedTable, standing_ids: Sequence[str]
    ) -> None:
        """Say how many standing decisions have no row in an edited table: deleting a row deletes no decision.

        Nothing is said if the ledger was written to after the table: the table can't have rows for what was
        decided since.
        """
        ids_in_table = {row.cells.get("clip_id") for row in edited.rows}
        n_missing = sum(clip_id not in ids_in_table for clip_id in standing_ids)
        if n_missing and table.path.stat().st_mtime > self._ledger_written_at():
            facts = {"decisions": counted_message("n_decisions", n_missing), "ledger": LEDGER}
            self._say(message("table_lacked", path=table.path, **facts))

    def take_in(self, file: Annotated, *, is_blind: bool | None = None) -> list[AnnotatorResult]:
        """Take the annotations of another tool's file into the ledger; return the result for each annotator.

        Parameters
        ----------
        file : Annotated
        is_blind : bool, optional
            Whether the model's score was out of sight; for annotations that do not state it themselves.

        Raises
        ------
        FilmError
            Neither the file nor `is_blind` says whether the score was in sight, or the film was scored again
            since it was opened.
        """
        with self._lock:
            self._refuse_scored_again()
            self.refresh()
            results = compare_annotations(self, file, is_blind)
            for result in results:
                self._add_imported(file, result, is_blind)
            self._update()
            return results

    def _add_imported(self, file: Annotated, result: AnnotatorResult, is_blind: bool | None) -> None:
        """Append the new decisions of one annotator of a file to the ledger, unless they are there already.

        Equal files of one annotator, imported in the same way, are added once: a digest of what is imported
        names the ledger's file. A file may be of several films, each of which has its own digest.
        """
        has_new_decisions = any(row is not None for row in result.rows)  # None: the ledger has it already
        if not has_new_decisions:
            return
        content = f"{file.sha256}\n{self.film.movie}\n{result.annotator}\n{is_blind}"
        digest = sha256_of(content.encode())
        about = {"annotator": result.annotator, "file": file.path.name}
        n_added = self.ledger.add_table(digest, IMPORT, result.rows, about)
        if not n_added:
            self._say(message("import_known", path=file.path, who=result.annotator))

    def _ledger_written_at(self) -> float:
        """Return when a file of the ledger was last written to, in seconds since 1970."""
        return max(map(os.path.getmtime, self.ledger.folder.glob("*.jsonl")))

    def _is_valid(self, line: Line) -> bool:
        """Whether a line is a valid decision by the rules of this film and codebook."""
        return self._reading_of(line).clip is not None

    def _reading_of(self, line: Line) -> Reading:
        """Read a line by the rules, and say what is wrong with it; an unchanged line is read only once."""
        reading = self._readings.get(line.id)
        if reading is None or reading.line != line:
            path, number = self.ledger.where[line.id]
            reading = read_line(self.rules, line, path, number)
            self._readings[line.id] = reading
            for problem in reading.problems:
                self._say(problem, "nonsense")
        return reading

    def _recorded_draws(self) -> tuple[Draw, ...]:
        """Find for each method of sampling the draw by which most windows were judged blindly at the desk.

        If two draws by a method have equally many, that whose windows have the lower contents is taken, so
        that every machine takes the same.
        """
        n_judged_by: Counter[Draw] = Counter()
        for line in self.ledger.lines.values():
            header = self.ledger.header_of(line)
            is_drawn = line.kind == "judgement" and bool(line.row.get(PLACE)) and not self._is_of_table(line)
            if is_drawn and header is not None and header.draw is not None:
                n_judged_by[header.draw] += 1

        most_judged_first = sorted(n_judged_by, key=lambda draw: (-n_judged_by[draw], draw.content))
        draw_by_method: dict[str, Draw] = {}
        for draw in most_judged_first:
            if draw.sampling not in draw_by_method and self.rules.is_of_film(draw):
                draw_by_method[draw.sampling] = draw
        return tuple(draw_by_method.values())

    def _find_standing(self) -> None:
        """Find the decisions that stand (`kept` and `lines`), and say what is wrong in the ledger."""
        self._follow_recorded_draws()
        self._meanings = Meanings(self.headers, [self.codebook])
        self.definition = self._meanings.of(self.codebook.definition())
        lines: dict[str, Line] = {}
        clip_of_line: dict[str, Clip] = {}
        for line in self.ledger.standing(self._is_valid):
            clip = self._reading_of(line).clip
            if clip is not None:
                lines[line.id] = line
                clip_of_line[line.id] = clip
        n_left_out = _remove_invalid_agreements(lines)
        if n_left_out:
            decisions = counted_message("n_decisions", n_left_out)
            self._say(message("agreed_left", folder=self.folder, decisions=decisions))
        kept: dict[str, list[Clip]] = {kind: [] for kind in DECISIONS}
        for line in lines.values():
            kept[line.kind].append(clip_of_line[line.id])
        # Assigned once complete: other threads may be reading the attributes.
        self.lines = lines
        self.kept = {kind: _latest_last_on_each_span(clips) for kind, clips in kept.items()}
        self._say_content()

    def _follow_recorded_draws(self) -> None:
        """Let the rules follow the draws that the ledger records (`_recorded_draws`)."""
        recorded_draws = self._recorded_draws()
        if recorded_draws != self.rules.recorded:
            self.rules = replace(self.rules, recorded=recorded_draws)
            self._readings = {}  # all lines are read anew: by other draws their windows have other places

    def _say_content(self) -> None:
        """Say of how many windows the content changed since the draw; else, how many can't be read today.

        If windows changed, the draw is an earlier one. It may have windows that can't be read today, and then
        it would not be right to say that these are never drawn.
        """
        n_changed = self.rules.n_changed(self.draw.sampling)
        if n_changed:
            notice = message("note_content", n=n_changed, s="" if n_changed == 1 else "s")
            self._say(message("note_of", movie=self.film.movie, notice=notice))
            return
        for unread in self.rules.unread_notices:
            self._say(unread)

    def _update(self) -> None:
        """Find what stands after the ledger changed, say what is wrong in it, and write the tables anew."""
        self._find_standing()
        self._say_refused_claims()
        self._say_how_many_more()
        conflicts = self.conflicts()
        if conflicts:
            self._say(message("beside", folder=self.folder, n=len(conflicts)))
        for kind, table in self._tables.items():
            try:
                table.write(self.table(kind), is_empty=not self.kept[kind])
            except OSError as error:
                facts = {"error": error.strerror, "ledger": LEDGER}
                self._say(message("table_unwritten", path=table.path, **facts))

    def _say_refused_claims(self) -> None:
        """Say which lines, up to `MOST_OF_A_KIND`, ask to replace or to take back what they may not."""
        claims = list(refused_claims(self.ledger.lines.values(), self._is_valid))
        for claim in claims[:MOST_OF_A_KIND]:
            path, number = self.ledger.where[claim.line.id]
            act = message("claim_undo" if claim.line.kind == "undo" else "claim_replace")
            facts = {"who": claim.line.annotator, "name": claim.target.id, "other": claim.target.annotator}
            reason = message(f"claim_{claim.reason}")
            self._say(message("claim", path=path, line=number, act=act, reason=reason, **facts))
        # All claims were listed anew: the number is set and not added to.
        self._n_notices_of_kind["claims"] = len(claims)

    def table(self, kind: str, shown_ids: Container[str] | None = None) -> str:
        """Write the standing decisions of a kind as a table: those whose id is in `shown_ids`, if given."""
        lines = [self.lines[clip.clip_id] for clip in self.kept[kind]]
        shown = [line for line in lines if shown_ids is None or line.id in shown_ids]
        return table_text(kind, [Decision(line, self.definition_of(line)) for line in shown])

    def _say(self, message: str, kind: str = "") -> None:
        """Add a message to `notices`, unless it was added before.

        Of a kind of which there may be many only the first `MOST_OF_A_KIND` are added; all are counted.
        """
        if message in self._given_notices:
            return
        if kind:
            self._n_notices_of_kind[kind] += 1
            if self._n_notices_of_kind[kind] > MOST_OF_A_KIND:
                return
        self._given_notices.add(message)
        self.notices.append(message)

    def _say_how_many_more(self) -> None:
        """Say of each kind how many notices there are beyond the first `MOST_OF_A_KIND`."""
        for kind, n in self._n_notices_of_kind.items():
            if n > MOST_OF_A_KIND:
                self._say(counted_message(f"more_{kind}", n - MOST_OF_A_KIND, folder=self.folder))


def copy_decisions(folder: Path, out: Path) -> None:
    """Copy a scored film's ledger and tables into another folder of the film, where people go on deciding."""
    ledger_files = (folder / LEDGER).glob("*.jsonl")
    tables = [folder / name for name in COLUMNS if (folder / name).is_file()]
    for path in (*ledger_files, *tables):
        copy = out / path.relative_to(folder)
        copy.parent.mkdir(exist_ok=True)
        with suppress(InputError):  # a link or folder of this name was reported when the ledger was read
            write_new(copy, read_bytes(path, MOST_BYTES, within=folder))


def codebook_of(name: str, path: Path | None) -> Codebook:
    """Read the codebook of the judgements from a file; without a file, return the built-in one of a name."""
    if path is None and name not in BUILTIN:
        raise FilmError(
            f"the model's codebook {name!r} is not built in: give its file (the labels' own) with --codebook"
        )
    return find_codebook(str(path or name))


def codebook_in_ledger(folder: Path, name: str) -> Codebook:
    """Return the latest codebook of a name in the headers of a film's ledger, else the built-in one.

    Raises
    ------
    FilmError
        It is not built in, and no header of the ledger has it.
    """
    ledger = Ledger(folder, say=lambda _: None)
    ledger.read()
    for line in sorted(ledger.lines.values(), key=in_order, reverse=True):
        if line.header is None or line.header.codebook is None:
            continue
        book = codebook_in(line.header.codebook)
        if book is not None and book.name == name:
            return book
    return codebook_of(name, None)


class PeoplesDecisions(NamedTuple):
    """What people decided about a film, for exports, and messages for the user about it."""

    decided: list[Decided]
    notices: list[str]


def read_decided(folder: Path, film: Timeline) -> PeoplesDecisions:
    """Read what people decided in a film's folder, under the codebook that they used last."""
    tables = [folder / name for name in COLUMNS]
    if not (folder / LEDGER).is_dir() and not any(path.is_file() for path in tables):
        return PeoplesDecisions([], [message("nobody_decided", folder=folder)])
    decisions = Decisions(folder, film, codebook_in_ledger(folder, film.model().codebook))
    decided = decisions.decided()
    if not decided:
        decisions.notices.append(message("nobody_decided", folder=folder))
    return PeoplesDecisions(decided, decisions.notices)


def _judged_span(clip: Clip) -> JudgedSpan:
    """Return what a person has at most one judgement on: a later judgement on it replaces the earlier one."""
    return clip.annotator, clip.movie, clip.start_s, clip.end_s, clip.extras.get(SEEN_SCORE)


def _remove_invalid_agreements(lines: dict[str, Line]) -> int:
    """Remove agreed decisions that don't count (`problem_of`) from standing lines; return how many."""
    n_removed = 0
    for line in [*lines.values()]:
        if line.kind == "agreed" and problem_of(line.row, lines) is not None:
            del lines[line.id]
            n_removed += 1
    return n_removed


def _latest_last_on_each_span(clips: Sequence[Clip]) -> list[Clip]:
    """Reorder the decisions of one person on one span by the time at which they were made.

    A person who decided on two machines may have two such decisions, in an order of the ledger that says
    nothing of their times. Wherever only one of them is taken, it is the last one. They change places among
    themselves: decisions on other spans keep theirs.
    """
    indices_of_span: dict[JudgedSpan, list[int]] = {}
    for index, clip in enumerate(clips):
        indices_of_span.setdefault(_judged_span(clip), []).append(index)
    ordered = [*clips]
    for indices in indices_of_span.values():
        by_time = sorted((clips[index] for index in indices), key=judged_at)
        for index, clip in zip(indices, by_time, strict=True):
            ordered[index] = clip
    return ordered


def _common_places(places: Places | None, other_places: Places | None) -> Places | None:
    """Return the places that are in both of two sets, each of which may be `ALL_PLACES`."""
    if places is ALL_PLACES:
        return other_places
    if other_places is ALL_PLACES:
        return places
    return places & other_places


def _settled_span(clip: Clip) -> JudgedSpan:
    """Return the span of an agreed decision: a person settles it once."""
    return clip.annotator, clip.movie, *span_key(clip)


def _content(line: Line) -> tuple[str, ...]:
    """Return what a line says, to compare it with others: span, level, concepts and note."""
    return tuple(line.row.get(name, "") for name in ("start_s", "end_s", "level", "concepts", "note"))
