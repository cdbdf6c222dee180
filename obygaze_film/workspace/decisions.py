"""Keep what people decide about a scored film in its ledger; tables of the decisions are exports of it."""

import os
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Final, NamedTuple

from msgspec import structs

from obygaze_features.errors import InputError, ManifestError, ObygazeError
from obygaze_features.io import sha256_of, write_new
from obygaze_features.lines import journals_in
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
    find_film,
    refuse_twins,
    repeated_concepts,
)
from obygaze_features.untrusted import read_bytes
from obygaze_film.draws import LAW, SEED, Draw
from obygaze_film.errors import FilmError
from obygaze_film.exchange.decided import Decided
from obygaze_film.judged_windows import (
    JUDGED_AT,
    judged_at,
    named_sampling,
    sampling_of,
    was_score_hidden,
)
from obygaze_film.notes import counted_message, message
from obygaze_film.scored_files import JUDGEMENTS, MAX_BYTES, PASSAGES, RECORD
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.acts import Acts
from obygaze_film.workspace.authority import in_force, reason_against, refused_claims
from obygaze_film.workspace.definitions import (
    UNKNOWN,
    ChangedText,
    Meanings,
    changed_texts,
    codebook_in,
    stored,
)
from obygaze_film.workspace.importing import IMPORT, Annotated, AnnotatorResult, compare_annotations
from obygaze_film.workspace.ledger import LEDGER, MAX_NOTICES_OF_A_KIND, Ledger
from obygaze_film.workspace.ledger_lines import DECISIONS, HEADERS, Header, Line, StoredCodebook, in_order
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

    A decision "stands" (is in force) until a later line of the ledger replaces it or takes it back. It is
    "current" if it was made under the codebook's present definitions.

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
    clips_by_kind : dict
        Kind -> the valid decisions that stand, as clips, in the same order on every machine. Their clip ids
        are the ids of their lines; columns without a field of `Clip` are in `extras`.
    lines : dict
        Id -> line of each of these decisions. Lines that do not stand are only in `ledger`.
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
        """Read the decisions in a film's folder, and write the tables of them anew."""
        self.folder = folder
        self.film = film
        self.codebook = codebook
        self.rules = FilmRules(film, codebook)  # tell which decisions about this film are valid
        self._lock = RLock()  # the desk's server decides and reads in several threads
        # By this state of the record's file it is noticed later that the film was scored again meanwhile.
        self._record_when_opened = state_of(folder / RECORD)

        # Notices that the user has not seen yet
        self.notices: list[str] = []
        self._given_notices: set[str] = set()  # all so far, so that none is given twice
        self._n_notices_of_kind = Counter[str]()  # also of those that were too many to be given

        # The files: the ledger has every decision ever made, the tables (CSV) list those that count now
        self.ledger = Ledger(folder, say=self._notify, new_header=self._new_header)
        self._acts = Acts(self.ledger)  # what people can undo and redo
        self._tables = {kind: ExportedTable(folder, kind) for kind in KINDS}
        self._why_unwritten: dict[str, str] = {}  # kind of a table that could not be written -> the reason

        # The decisions that count now, of all in the ledger. Empty until `refresh` finds them below.
        self.clips_by_kind: dict[str, list[Clip]] = {}
        self.lines: dict[str, Line] = {}  # by id
        self._readings: dict[str, Reading] = {}  # id of a line -> the line as the rules read it

        # Definitions: what the levels and concepts meant to those who decided, each known by its digest
        self.definition = codebook.definition()  # today's
        self._meanings = Meanings(headers=())  # which of the ledger's mean the same; `refresh` finds that too
        self._same_meaning: tuple[str, ...] = ()  # of others that the user declares to mean the same

        self.refresh(is_opening=True)
        if same_meaning:  # only once the ledger was read it is known which other definitions were used
            self._declare_same_meaning()
        self._report_other_definitions()

    # --- what is there
    # ---------------------------------------------------------------------------
    @property
    def default_annotator(self) -> str:
        """Who decided last since the workspace was opened; if nobody did, the only person who ever decided.

        Empty if several people decided, or none.
        """
        if self._acts.last_annotator:
            return self._acts.last_annotator
        return self.annotators[0] if len(self.annotators) == 1 else ""

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who decided something that is kept, in alphabetical order."""
        names = {clip.annotator for clips in self.clips_by_kind.values() for clip in clips}
        return tuple(sorted(names))

    @property
    def draw(self) -> Draw:
        """The random order of the film's windows that are judged blindly, and how it was drawn.

        It is by the method of sampling by which windows were drawn so far, which may be that of an earlier
        version.
        """
        judgements = self.clips_by_kind.get("judgement", ())
        # Only blind judgements of drawn windows have a place in the draw. Emptied ones do not count.
        blind_judgements = [clip for clip in judgements if clip.level and self._place_in_draw(clip) > 0]
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
        for clip in self.clips_by_kind["judgement"]:
            if not clip.level:  # the person cleared it: it counts as not made
                continue
            if not any_definition and not self.is_current(clip.clip_id):
                continue
            place = self._place_in_draw(clip)  # 0: it is not blind
            if place > 0 and named_sampling(clip) == sampling:
                judged.setdefault(clip.annotator, {})[place] = clip
        return judged

    def n_stated_by(self, annotator: str) -> int:
        """Return how many windows a person said that they would judge, before judging the first one.

        Each of their judgements made at the desk has this number; if it was changed, the largest counts. It
        is 0 if they judged none at the desk, as they filled in a list elsewhere, for example.
        """
        judged = self.blind_judgements().get(annotator, {}).values()
        cells = [clip.extras.get(PLANNED, "") for clip in judged]
        numbers = [int(cell) for cell in cells if cell.isdecimal()]
        largest = max(numbers, default=0)
        return min(largest, len(self.windows))

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

    def places_shown_to(self, annotator: str) -> Places | None:
        """Return the places of the draw at which a person may see others' blind judgements.

        They are shown only where seeing them cannot influence the person's own blind judgements. `ALL_PLACES`
        (None) stands for all places.
        """
        judged_places = frozenset(self.blind_judgements().get(annotator, {}))
        n_judged = len(judged_places)
        # They judged all windows of the film, and cannot be influenced any more.
        if n_judged and n_judged >= len(self.windows):
            return ALL_PLACES

        # They said how many windows they would judge: they may see nothing until they are done.
        n_stated = self.n_stated_by(annotator)
        if n_stated:
            return ALL_PLACES if n_judged >= n_stated else frozenset()

        # Their judgements were imported, without a number: they may still judge the other windows blindly.
        return judged_places

    def places_shown_to_all(self) -> Places | None:
        """Return the places of the draw at which every judge may see the others' blind judgements.

        A page without a viewer's name shows these: nobody who looks at it sees what they may not see yet.
        `ALL_PLACES` if every judge may see all. Blind judgements without the name of a judge do not count.

        An example: if one judge may see places 1, 2 and 3, another 2, 3 and 4, and a third all, these are 2
        and 3.
        """
        places_shown: Places | None = ALL_PLACES
        for annotator in self.blind_judgements():
            if annotator:
                places_shown = _common_places(places_shown, self.places_shown_to(annotator))
        return places_shown

    def ids_hidden_from(self, annotator: str, places_shown: Places | None) -> list[str]:
        """List the ids of the blind judgements of other people that a person may not see yet.

        Judgements under earlier definitions are hidden too.

        Parameters
        ----------
        annotator : str
            The person.
        places_shown : frozenset of int, or `ALL_PLACES`
            Places of the draw at which they may see others' judgements (`places_shown_to`).
        """
        if places_shown is ALL_PLACES:
            return []
        hidden_ids = []
        for judge, judgements in self.blind_judgements(any_definition=True).items():
            if judge == annotator:
                continue
            for place, clip in judgements.items():
                if place not in places_shown:
                    hidden_ids.append(clip.clip_id)
        return hidden_ids

    def hides_others_from(self, annotator: str) -> bool:
        """Whether any blind judgement of others is hidden from a person (`places_shown_to`)."""
        return bool(self.ids_hidden_from(annotator, self.places_shown_to(annotator)))

    def conflicts(self) -> set[str]:
        """Return the ids of decisions of one person that exclude each other: the person has to choose one.

        Either two decisions replace the same earlier one, or they are two judgements on one span. Somebody
        who decides on two machines may have such decisions.
        """
        # Two decisions in one group exclude each other.
        ids_replacing_one = defaultdict[tuple[str, str], set[str]](set)  # annotator, replaced id -> ids
        ids_on_one_span = defaultdict[tuple[str, JudgedSpan], set[str]](set)  # kind, span -> ids
        for clips in self.clips_by_kind.values():
            for clip in clips:
                if not self.rules.is_about_film(clip):  # it is not shown
                    continue
                line = self.lines[clip.clip_id]
                for replaced_id in line.replaces:
                    ids_replacing_one[line.annotator, replaced_id].add(line.id)
                if line.kind in ONE_PER_SPAN:  # a judgement or an agreed decision, but not a passage
                    span = _decided_span(line.kind, clip)
                    ids_on_one_span[line.kind, span].add(line.id)

        conflicting_ids: set[str] = set()
        for ids in (*ids_replacing_one.values(), *ids_on_one_span.values()):
            if len(ids) > 1:
                conflicting_ids |= ids
        return conflicting_ids

    def judgements(self, clips: Iterable[Clip] | None = None) -> Manifest:
        """Make a manifest of the judgements with a level that were made under today's definitions.

        Of several judgements of one person on one span only the latest is in it.

        Parameters
        ----------
        clips : iterable of Clip, optional
            The judgements to take, those of one span from the earliest to the latest; by default all that
            stand.
        """
        candidates = self.clips_by_kind["judgement"] if clips is None else clips
        latest: dict[JudgedSpan, Clip] = {}  # a later judgement on a span takes the place of an earlier one
        for clip in candidates:
            if not clip.level or not self.is_current(clip.clip_id):
                continue
            columns = {name: clip.extras.get(name, "") for name in DRAW_COLUMNS}
            columns[DEFINITION] = self._definition_today(self.lines[clip.clip_id])
            latest[_judged_span(clip)] = replace(clip, extras=columns)
        return Manifest(tuple(latest.values()), self.folder, self.codebook)

    def _definition_today(self, line: Line) -> str:
        """Return the definition that an exported table states for a decision that counts today.

        It is the digest of today's codebook, also if the decision was made under an earlier digest of texts
        that people declared to mean the same. A decision of which nobody stated the definition is exported
        as such (`UNKNOWN`): to write the codebook's digest would state what is not known.
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
        judged = self._with_current_level(("judgement", "passage"), shown_ids)
        agreed = self._with_current_level(("agreed",), agreed_ids)
        return disagreements(judged, agreed)

    def _with_current_level(self, kinds: Iterable[str], shown_ids: Container[str] | None) -> list[Clip]:
        """List the standing decisions of some kinds that give this film a level under today's definitions.

        Only those whose id is in `shown_ids` are listed; all of them if it is None.
        """
        decisions = []
        for kind in kinds:
            for clip in self.clips_by_kind[kind]:
                is_shown = shown_ids is None or clip.clip_id in shown_ids
                gives_film_a_level = bool(clip.level) and self.rules.is_about_film(clip)
                if is_shown and gives_film_a_level and self.is_current(clip.clip_id):
                    decisions.append(clip)
        return decisions

    def decided(self, shown_ids: Container[str] | None = None) -> list[Decided]:
        """List what people decided under today's definitions, for exports.

        Only decisions whose id is in `shown_ids` are listed; by default all that stand. Those that the desk
        does not show to anybody (`is_listed`) are left out.
        """
        decisions = []
        for kind, clips in self.clips_by_kind.items():
            for clip in clips:
                is_shown = shown_ids is None or clip.clip_id in shown_ids
                if is_shown and self.is_listed(kind, clip) and self.is_current(clip.clip_id):
                    decisions.append(self.as_decided(clip))
        return decisions

    def is_listed(self, kind: str, clip: Clip) -> bool:
        """Whether a standing decision of a kind is shown and exported: of this film, and not removed.

        People remove a decision, with the note on it, by emptying its level. A decision of the kind `note`
        has no level, and is never removed so.
        """
        was_removed = kind != "note" and not clip.level
        return not was_removed and self.rules.is_about_film(clip)

    def as_decided(self, clip: Clip) -> Decided:
        """Describe a decision for other tools: who decided what of which span, and under which definition.

        `codebook` of the result is the one that explains the level, and None if nothing states under which
        definition it was given; `read_by` is today's codebook in any case.
        """
        line = self.lines[clip.clip_id]
        # The judges of an agreed decision are those whose decisions it settles, its parents.
        settled_judges = {self.lines[parent_id].annotator for parent_id in line.parents}
        judges = tuple(sorted(settled_judges)) or (clip.annotator,)
        # A decision without a level, such as a note, is not made under any definition. And ledgers of earlier
        # versions do not say under which one.
        definition = self.definition_of(line) if clip.level else UNKNOWN
        stated_codebook = None if definition == UNKNOWN else self.codebook
        return Decided(
            start_s=clip.start_s or 0.0,
            end_s=clip.end_s or 0.0,
            judges=judges,
            level=clip.level or "",
            concepts=clip.concepts,
            note=line.row.get("note", ""),
            is_blind=was_score_hidden(clip),
            is_agreed=line.kind == "agreed",
            id=line.id,
            definition=definition,
            codebook=stated_codebook,
            read_by=self.codebook,
        )

    # --- under which definitions
    # ---------------------------------------------------------------------------
    def definition_of(self, line: Line) -> str:
        """Return the digest of the definitions that a line was decided under; `UNKNOWN` if nothing states it.

        Of several digests that mean the same, it is the one that represents them (`Meanings`).
        """
        # The line itself may state it.
        if DEFINITION in line.row:
            return self._meanings.representative(line.row[DEFINITION])
        # Else the codebook tells that was in use at the desk, which the line's file of the ledger has. But
        # the file of an imported table has the codebook of who imported it, and not of the judges.
        if self._is_imported(line):
            return UNKNOWN
        stored_codebook = self._codebook_of_file(line)
        if stored_codebook is None:
            return UNKNOWN
        is_readable = codebook_in(stored_codebook) is not None
        if not is_readable:
            return UNKNOWN
        return self._meanings.representative(stored_codebook.definition)

    def _codebook_of_file(self, line: Line) -> StoredCodebook | None:
        """Return the codebook that the header of a line's file states; None if it states none."""
        header = self.ledger.header_of(line)
        return None if header is None else header.codebook

    def is_current(self, line_id: str) -> bool:
        """Whether a standing decision was made under today's definitions, or does not say under which."""
        return self.definition_of(self.lines[line_id]) in {UNKNOWN, self.definition}

    def changed_definitions(self, language: str) -> list[ChangedText]:
        """List the levels and concepts that codebooks of earlier decisions define differently from today's.

        Only decisions that stand count. Each change is listed once, with both texts.
        """
        changed: list[ChangedText] = []
        for line in self._under_other_definitions():
            stored_codebook = self._codebook_of_file(line)
            # The file of an imported table has the codebook of the person who imported it.
            if stored_codebook is None or self._is_imported(line):
                continue
            earlier_codebook = codebook_in(stored_codebook)
            if earlier_codebook is None:  # not readable
                continue
            for text in changed_texts(earlier_codebook, self.codebook, language):
                if text not in changed:
                    changed.append(text)
        return changed

    def _new_header(self) -> Header:
        """Return the header of a file of the ledger that begins now: codebook, what means the same, draw."""
        return Header(stored(self.codebook), self._same_meaning, self.draw)

    def _is_imported(self, line: Line) -> bool:
        """Whether a line came into the ledger with an imported table or file, and not from the desk."""
        first = self._first_of_file(line)
        return first is not None and first.kind == "table"

    def _first_of_file(self, line: Line) -> Line | None:
        """Return the first line, number 1, of a line's file, which says where the file's lines come from."""
        return self.ledger.lines.get(f"{line.sitting}-1")

    def _declare_same_meaning(self) -> None:
        """Declare in the ledger that all other definitions of standing decisions mean the same as today's.

        A new file of the ledger is begun, whose header keeps the declaration; decisions under the other
        definitions are current from then on.
        """
        other_definitions = sorted({self.definition_of(line) for line in self._under_other_definitions()})
        if other_definitions:
            self._same_meaning = tuple(other_definitions)  # `begin` writes it into the header
            self.ledger.begin()
            self._find_standing_and_write_tables()

    def _under_other_definitions(self) -> list[Line]:
        """List the lines that stand and were decided under other definitions than today's."""
        return [line for line_id, line in self.lines.items() if not self.is_current(line_id)]

    def _report_other_definitions(self) -> None:
        """Report decisions without definitions, and decisions under other definitions than today's.

        Only decisions with a level count: others say nothing that a definition explains.
        """
        with_level = [line for line in self.lines.values() if line.row.get("level")]

        # Files of the ledger by earlier versions of obygaze have no header that states definitions.
        n_without_header = len([line for line in with_level if self.ledger.header_of(line) is None])
        if n_without_header:
            decisions = counted_message("n_decisions", n_without_header)
            self._notify(message("defined_unknown", folder=self.folder, decisions=decisions))

        not_current = [line for line in with_level if not self.is_current(line.id)]
        if not_current:
            decisions = counted_message("n_decisions", len(not_current))
            names = sorted({self._meanings.name(self.definition_of(line)) for line in not_current})
            facts = {"decisions": decisions, "names": "; ".join(names)}
            self._notify(message("defined_otherwise", folder=self.folder, **facts))

    @property
    def headers(self) -> list[Header]:
        """The headers of the ledger's files; files of earlier versions have none."""
        first_lines = [line for line in self.ledger.lines.values() if line.kind in HEADERS]
        return [line.header for line in first_lines if line.header is not None]

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
        mode: str = "",
        changed_id: str = "",
    ) -> str:
        """Write a person's decision on a span to the ledger, and return its id.

        The decision must be valid by itself, and fit those that stand. It may take the place of an earlier
        one of the same person (`changed_id`). But a change that is made with the model's scores shown never
        replaces a blind judgement: this one stays, and both stand.

        Parameters
        ----------
        kind : str
            `judgement`, `passage`, `note` or `agreed`.
        start_s, end_s : float
            Ends of the span.
        annotator : str
            Who decides.
        level, concepts, note
            What is decided: a note has no level and no concepts.
        origin : str
            Of a passage: `own` if the person marked it, else the model's passage that it was made from.
        place : int
            Of a blind judgement: the place of its window in the draw, from 1 on. 0 for all others. It does
            not count if `mode` is `read`.
        n_planned : int
            Of a blind judgement: how many windows the person plans to judge.
        parents : sequence of str
            Of an agreed decision: the ids of the decisions that it settles.
        mode : str
            Mode of the desk: `blind` hides all scores, `read` shows them. Empty: `blind` if there is a place.
        changed_id : str
            Id of the person's own decision that this one takes the place of; empty if there is none. A blind
            judgement stays if `mode` is `read`.

        Raises
        ------
        FilmError
            The decision is not valid, the decision that it changes does not stand or is somebody else's, or
            the name is another spelling of one in the ledger.
        """
        mode = mode or ("blind" if place else "read")
        if mode == "read":  # the person sees the score, and so judges no window of the draw blindly
            place = 0
        # An agreed decision has no place. It is blind only if those that it settles are.
        is_agreed_blindly = False
        if kind == "agreed" and mode == "blind":
            is_agreed_blindly = self._can_agree_blindly(start_s, end_s, parents)
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

        # Is the decision valid by itself?
        self.rules.refuse_invalid(kind, row, start_s, end_s)
        clip = self.rules.checked_clip(kind, row, self.folder)
        is_blind_judgement = kind == "judgement" and place != 0
        if is_blind_judgement:
            is_of_that_window = self.place_of(clip) > 0
            if not is_of_that_window:  # there is no window at the place, or one with other ends
                raise FilmError(message("no_window", start=start_s, end=end_s, place=place))

        # Does it fit the decisions that stand? Others may have changed these meanwhile.
        with self._lock:
            self._refuse_if_scored_again()
            self.refresh()
            self._refuse_other_spelling(clip.annotator)
            if kind == "agreed":
                self._refuse_if_nothing_to_settle(row)
            replaced = None
            if changed_id:
                changed = self._own_decision(changed_id, clip.annotator)
                stays_blind_judgement = mode == "read" and self._is_blind_judgement(changed)
                if not stays_blind_judgement:
                    replaced = changed

            # Append it to the ledger, and bring tables up to date.
            line = self._write(kind, row, clip, replaced)
            self._find_standing_and_write_tables()
            return line.id

    def _refuse_other_spelling(self, annotator: str) -> None:
        """Refuse the name of a person if it is another spelling of one in the ledger, such as ab of AB.

        One person would count as two judges, and commands that read the tables would refuse them.
        """
        known_names = self.annotators
        if annotator in known_names:
            return
        for known_name in known_names:
            # The rule for names that are one is that of manifests, which raises an error. Its message names
            # places in files, and so another one is raised here.
            places_of_names = {known_name: (self.folder, LEDGER), annotator: ("", "the desk")}
            try:
                refuse_twins("annotator", places_of_names)
            except ManifestError:
                raise FilmError(message("other_spelling", name=annotator, known=known_name)) from None

    def _write(self, kind: str, row: Cells, clip: Clip, changed: Line | None) -> Line:
        """Write a checked decision to the ledger, remember it for undo, and return its line.

        `clip` is the decision of the row. It takes the place of `changed`, besides those on its own span.
        """
        # A line can only replace lines of its own kind.
        replaced_ids = []
        if changed is not None and changed.kind == kind:
            replaced_ids.append(changed.id)
        if kind in ONE_PER_SPAN:  # a judgement or an agreed decision, but not a passage
            replaced_ids += [old_id for old_id in self._ids_on_span(kind, clip) if old_id not in replaced_ids]
        line = self.ledger.add(kind, row, replaced_ids)

        # A changed decision of another kind, such as a passage that becomes a note, is taken back by a line
        # of its own. Both lines are one act, which is undone as a whole.
        lines_of_act = [line]
        if changed is not None and changed.kind != kind:
            lines_of_act.append(self._acts.take_back(changed))
        self._acts.remember(*lines_of_act)
        return line

    def delete(self, line_id: str, annotator: str) -> Line:
        """Take back (delete) a standing decision of a person, and return it.

        Its earlier versions are taken back too: otherwise the latest of them would stand again.

        Raises
        ------
        FilmError
            It is somebody else's, or was changed or deleted meanwhile.
        """
        with self._lock:
            self.refresh()
            line = self._own_decision(line_id, name_of(annotator))
            earlier_versions = self.replaced(line)
            deletion = self._acts.take_back(line, *earlier_versions)
            self._acts.remember(deletion)
            self._find_standing_and_write_tables()
            return line

    def undo(self, annotator: str) -> Line | None:
        """Undo what a person did last since the workspace was opened.

        What was undone is appended to the ledger, and the tables are written again.

        Returns
        -------
        Line or None
            The decision concerned. None if there is nothing to undo.
        """
        with self._lock:
            self.refresh()
            line = self._acts.undo(annotator)
            self._find_standing_and_write_tables()
            return line

    def redo(self, annotator: str) -> Line | None:
        """Do again what a person undid last, unless they decided something since.

        It is written to the ledger, as every decision is, and the tables are brought up to date.

        Returns
        -------
        Line or None
            The decision that was done again. None if there was nothing to do again.
        """
        with self._lock:
            self.refresh()  # others may have decided meanwhile
            line = self._acts.redo(annotator)
            self._find_standing_and_write_tables()
            return line

    def history(self, line_id: str) -> list[Line]:
        """Return the earlier versions of a decision that differ in content, the latest first.

        Versions with the content of a later one, or of the decision itself, are left out.
        """
        line = self.lines[line_id]
        contents = {_content(line)}
        versions = []
        for version in self.replaced(line):
            content = _content(version)
            if content not in contents:
                contents.add(content)
                versions.append(version)
        return versions

    def replaced(self, line: Line) -> list[Line]:
        """Find all earlier versions of a line: the lines that it replaced, and those that they replaced.

        The latest comes first. A replacement that is not allowed (`reason_against`) does not count.
        """
        earlier: dict[str, Line] = {}
        to_follow = [line]
        while to_follow:
            version = to_follow.pop(0)
            for target_id in version.replaces:
                target = self.ledger.lines.get(target_id)
                if target is None or target_id in earlier:
                    continue
                target = self._with_film_spelled(target)
                if reason_against(version, target) is None:
                    earlier[target_id] = target
                    to_follow.append(target)
        return sorted(earlier.values(), key=lambda old: (-old.clock, old.id))

    def is_from_other_tool(self, line: Line) -> bool:
        """Whether a line was imported from another tool's file, not from a table that obygaze exported."""
        first = self._first_of_file(line)
        return first is not None and first.row.get("kind") == IMPORT

    def _own_decision(self, line_id: str, annotator: str) -> Line:
        """Return a person's own standing decision by its id, to change or delete it.

        Raises
        ------
        FilmError
            No decision of this id stands, or it is somebody else's.
        """
        line = self.lines.get(line_id)
        if line is None or line.annotator != annotator:
            raise FilmError(message("not_standing"))
        return line

    def _is_blind_judgement(self, line: Line) -> bool:
        """Whether a standing decision is a judgement that was made without the model's score."""
        clip = self._reading_of(line).clip
        return line.kind == "judgement" and clip is not None and was_score_hidden(clip)

    def _ids_on_span(self, kind: str, clip: Clip) -> list[str]:
        """Return the ids of the same person's standing decisions that a new one on the same span replaces.

        A judgement only replaces one that was made likewise: blindly, or with the score shown. An agreed
        decision replaces both, as people settle a difference once.
        """
        span = _decided_span(kind, clip)
        return [old.clip_id for old in self.clips_by_kind[kind] if _decided_span(kind, old) == span]

    def _can_agree_blindly(self, start_s: float, end_s: float, parent_ids: Sequence[str]) -> bool:
        """Whether people who agree on a span while the desk hides the scores can be taken not to know them.

        They know the score if they agreed on the span before with the score shown, or if one of the decisions
        that they settle (`parent_ids`) was not made blindly.
        """
        # Did they agree on the span with the score shown?
        span = round(start_s, DECIMALS), round(end_s, DECIMALS)  # as `span_key` rounds them
        for clip in self.clips_by_kind["agreed"]:
            is_of_span = self.rules.is_about_film(clip) and span_key(clip) == span
            if is_of_span and not was_score_hidden(clip):
                return False

        # Was one of the decisions that they settle made with the score shown?
        for parent_id in parent_ids:
            parent = self.lines.get(parent_id)
            parent_clip = None if parent is None else self._reading_of(parent).clip
            if parent_clip is None:  # it was taken back meanwhile: nothing says that it was blind
                return False
            if not was_score_hidden(parent_clip):
                return False
        return True

    def _refuse_if_scored_again(self) -> None:
        """Refuse a decision if the film was scored again since it was opened: people see the old scores."""
        if state_of(self.folder / RECORD) != self._record_when_opened:
            raise FilmError(message("scored_again", folder=self.folder))

    def _refuse_if_nothing_to_settle(self, row: Mapping[str, str]) -> None:
        """Refuse an agreed decision (its cells by column) that settles no difference between people.

        A judgement that it settles may have been changed or taken back meanwhile (`problem_of` calls this
        "open"), or its judgements are of another span, or not of two people ("nothing"). Each of these two
        problems has its message.
        """
        problem = problem_of(row, self.lines)
        if problem is not None:
            raise FilmError(message(f"agreed_{problem}"))

    # --- reading and writing
    # ---------------------------------------------------------------------------
    def refresh(self, *, is_opening: bool = False) -> None:
        """Bring the decisions up to date: read what others appended to the ledger, or edited in the tables.

        What is new in an edited table is appended to the ledger. If anything changed, the tables are written
        anew.

        An edited table that can't be read raises an error while the decisions are opened (`is_opening`).
        Later there is only a notice, and the table's file is not written until somebody mends it.
        """
        with self._lock:
            # The present lines, to see afterwards whether the ledger changed.
            edited_tables = [table for table in self._tables.values() if table.is_edited()]
            lines_before = dict(self.ledger.lines)
            for table in edited_tables:
                try:
                    self._read_edits(table)  # adds lines to the ledger
                except (ObygazeError, OSError) as error:
                    if is_opening:
                        raise
                    table.mark_unreadable()
                    self._notify(message("table_held", error=error))

            self.ledger.read()
            has_ledger_changed = lines_before != self.ledger.lines
            if is_opening or edited_tables or has_ledger_changed:
                self._find_standing_and_write_tables()

    def _read_edits(self, table: ExportedTable) -> None:
        """Append the decisions that a person wrote into an exported table to the ledger.

        Nothing is appended if the table was deleted, or is as it would be exported now.
        """
        # The state is taken before the table is read, so that edits made meanwhile are noticed later.
        state = state_of(table.path)
        if state is None:  # the table was deleted
            table.remember(None)
            return
        data = read_bytes(table.path, MAX_BYTES, within=self.folder)

        # The ledger is read after the table: it then has every decision that was exported into the table.
        self.ledger.read()
        self._find_standing()

        # `remember` notes the state of the file, so that these edits are not read a second time.
        exported = self.table(table.kind)
        if data == exported.encode():
            table.remember(state, exported)
        else:
            table.remember(state)
            self._add_edits(table, sha256_of(data))

    def _add_edits(self, table: ExportedTable, digest: str) -> None:
        """Append the new decisions of an edited table to the ledger, and report what was added.

        The digest (SHA-256) of the table's content names the file of the ledger that the decisions are
        appended to, so that an equal table adds nothing a second time.
        """
        # Compare the table with the decisions that were exported into it.
        lines = [line for line in self._lines_of_ledger() if line.kind == table.kind]
        decisions = {line.id: Decision(line, self.definition_of(line)) for line in lines}
        standing_ids = [clip.clip_id for clip in self.clips_by_kind[table.kind]]
        edited = read_edited(table, self.rules, decisions, standing_ids, self._meanings)
        self._refuse_other_spellings(table, edited)

        # Add what it says that is new. `new_decisions` has an entry for each row; None: nothing new.
        has_new_decisions = any(row is not None for row in edited.new_decisions)
        n_added = self.ledger.add_table(digest, table.kind, edited.new_decisions)
        if n_added:
            self._report_edits(table, edited, n_added, digest)
        elif has_new_decisions:
            # The ledger has an equal table already, whose decisions were replaced since.
            self._notify(message("table_known", path=table.path))
        self._report_missing_rows(table, edited, standing_ids)

    def _refuse_other_spellings(self, table: ExportedTable, edited: EditedTable) -> None:
        """Refuse an edited table in which a new decision is by another spelling of a known name, as ab of AB.

        Names are known if they are in the ledger, or further up in the table.

        Raises
        ------
        ManifestError
            Names the row, and where the name is spelled otherwise.
        """
        place_of_name: dict[str, tuple[object, str]] = dict.fromkeys(self.annotators, (self.folder, LEDGER))
        for row, decision in zip(edited.rows, edited.new_decisions, strict=True):
            if decision is None:
                continue
            annotator = decision.row.get("annotator", "")
            if annotator in place_of_name:
                continue
            place_of_new_name = (table.path, f"line {row.line}")
            for known_name, place in place_of_name.items():
                refuse_twins("annotator", {known_name: place, annotator: place_of_new_name})
            place_of_name[annotator] = place_of_new_name

    def _report_edits(self, table: ExportedTable, edited: EditedTable, n_added: int, digest: str) -> None:
        """Report how many decisions an edited table added, and which of its rows may be mistakes."""
        name_in_ledger = digest[:16]  # the name of the ledger's file with these decisions
        decisions = counted_message("n_decisions", n_added)
        self._notify(message("table_edited", path=table.path, digest=name_in_ledger, decisions=decisions))
        # Rows that name a concept twice
        cells = [(table.path, row.line, row.cells) for row in edited.rows]
        for notice in repeated_concepts(cells).values():
            self._notify(f"{table.path}: {notice}")
        # Rows that name another person's decision: they can't replace it, and were added as further ones
        for row in edited.further_rows:
            facts = {"who": row.annotator, "name": row.line.id, "other": row.line.annotator}
            self._notify(message("row_beside", path=table.path, line=row.number, **facts))

    def _report_missing_rows(
        self, table: ExportedTable, edited: EditedTable, standing_ids: Sequence[str]
    ) -> None:
        """Report how many standing decisions an edited table lacks: deleting a row deletes no decision.

        `standing_ids` are the ids of the decisions of the table's kind that stand.
        """
        ids_in_table = {row.cells.get("clip_id") for row in edited.rows}
        n_missing = sum(clip_id not in ids_in_table for clip_id in standing_ids)
        # If the ledger was written to after the table, the missing rows may be decisions made since.
        ledger_written_at = max(map(os.path.getmtime, journals_in(self.ledger.folder)))
        is_table_newer = table.path.stat().st_mtime > ledger_written_at
        if n_missing and is_table_newer:
            facts = {"decisions": counted_message("n_decisions", n_missing), "ledger": LEDGER}
            self._notify(message("table_lacked", path=table.path, **facts))

    def import_annotations(self, file: Annotated, *, is_blind: bool | None = None) -> list[AnnotatorResult]:
        """Import the annotations of another tool's file into the ledger; return a result for each annotator.

        Parameters
        ----------
        file : Annotated
        is_blind : bool, optional
            Whether the model's score was hidden; for annotations that do not state it themselves.

        Raises
        ------
        FilmError
            Neither the file nor `is_blind` says whether the score was shown, or the film was scored again
            since it was opened.
        """
        with self._lock:
            self._refuse_if_scored_again()
            self.refresh()
            results = compare_annotations(self, file, is_blind)
            for result in results:
                self._add_imported(file, result, is_blind)
            self._find_standing_and_write_tables()
            return results

    def _add_imported(self, file: Annotated, result: AnnotatorResult, is_blind: bool | None) -> None:
        """Append the new decisions of one annotator of a file to the ledger, unless it has them already.

        `is_blind` is what the person who imports declared (`import_annotations`).
        """
        has_new_decisions = any(row is not None for row in result.rows)  # None: the ledger has it already
        if not has_new_decisions:
            return
        # The digest names the ledger's file, so that what was imported in the same way is added only once.
        imported = (file.sha256, self.film.movie, result.annotator, str(is_blind))
        digest = sha256_of("\n".join(imported).encode())
        about = {"annotator": result.annotator, "file": file.path.name}
        n_added = self.ledger.add_table(digest, IMPORT, result.rows, about)
        if not n_added:
            self._notify(message("import_known", path=file.path, who=result.annotator))

    def _lines_of_ledger(self) -> list[Line]:
        """Return all lines of the ledger, with the name of this film as the film's record has it."""
        return [self._with_film_spelled(line) for line in self.ledger.lines.values()]

    def _with_film_spelled(self, line: Line) -> Line:
        """Return a line with the film's name as its record has it, if the line spells it otherwise.

        A colleague may have scored the film under another spelling of its id, as tables may write one too.
        """
        movie = line.row.get("movie", "")
        is_spelled = movie in ("", self.film.movie)
        if is_spelled or find_film(movie, [self.film.movie]) is None:
            return line
        return structs.replace(line, row={**line.row, "movie": self.film.movie})

    def _is_valid(self, line: Line) -> bool:
        """Whether a line is a valid decision by the rules of this film and codebook."""
        return self._reading_of(line).clip is not None

    def _reading_of(self, line: Line) -> Reading:
        """Read a line as a decision, by the film's rules, and report its problems.

        The reading is kept, so that a line is read, and its problems are reported, only once. A line that is
        no valid decision has a reading without a clip.
        """
        known = self._readings.get(line.id)
        if known is not None and known.line == line:  # of two lines with one id, another may count now
            return known
        path, number_in_file = self.ledger.where[line.id]
        reading = read_line(self.rules, line, path, number_in_file)
        self._readings[line.id] = reading
        for problem in reading.problems:
            self._notify(problem, kind="nonsense")
        return reading

    def _recorded_draws(self) -> tuple[Draw, ...]:
        """Find for each method of sampling the draw by which most windows were judged blindly at the desk."""
        n_judged_by = self._n_judged_by_draw()

        def most_judged_first(draw: Draw) -> tuple[int, tuple[float, ...]]:
            """Return a sort key; draws with equally many judgements have the same order on every machine."""
            return -n_judged_by[draw], draw.content

        draw_by_method: dict[str, Draw] = {}
        for draw in sorted(n_judged_by, key=most_judged_first):
            is_first_of_method = draw.sampling not in draw_by_method
            if is_first_of_method and self.rules.is_of_film(draw):
                draw_by_method[draw.sampling] = draw
        return tuple(draw_by_method.values())

    def _n_judged_by_draw(self) -> Counter[Draw]:
        """Count the judgements of drawn windows by the draw that the headers of their files record."""
        n_judged_by: Counter[Draw] = Counter()
        for line in self.ledger.lines.values():
            is_of_drawn_window = line.kind == "judgement" and bool(line.row.get(PLACE))
            if not is_of_drawn_window:
                continue
            if self._is_imported(line):  # the header has the draw of the person who imported it
                continue
            header = self.ledger.header_of(line)
            if header is not None and header.draw is not None:
                n_judged_by[header.draw] += 1
        return n_judged_by

    def _find_standing(self) -> None:
        """Set `clips_by_kind` and `lines` to the decisions in force; report what is wrong in the ledger."""
        # 1. What the reading of decisions depends on: the draws, and which definitions mean the same
        self._follow_recorded_draws()
        self._meanings = Meanings(self.headers, [self.codebook])
        self.definition = self._meanings.representative(self.codebook.definition())

        # 2. The decisions that are valid, and that no other one replaces or takes back
        lines: dict[str, Line] = {}
        clips: dict[str, Clip] = {}  # by the id of their line
        for line in in_force(self._lines_of_ledger(), self._is_valid):
            clip = self._reading_of(line).clip
            if clip is not None:
                lines[line.id] = line
                clips[line.id] = clip

        # 3. Agreements on decisions that do not stand any more do not stand either.
        n_removed = _remove_invalid_agreements(lines)
        if n_removed:
            decisions = counted_message("n_decisions", n_removed)
            self._notify(message("agreed_left", folder=self.folder, decisions=decisions))

        # 4. Those that are left, by kind
        clips_of_kind: dict[str, list[Clip]] = {kind: [] for kind in DECISIONS}
        for line in lines.values():
            clips_of_kind[line.kind].append(clips[line.id])

        # Assigned once complete: other threads may be reading the attributes.
        self.lines = lines
        self.clips_by_kind = {
            kind: _latest_last_on_each_span(kind, of_kind) for kind, of_kind in clips_of_kind.items()
        }
        self._report_changed_windows()

    def _follow_recorded_draws(self) -> None:
        """Let the rules know the draws that the ledger records now; if they change, read all lines anew.

        The rules say which decisions are valid. That depends on the draw, which gives a judged window its
        place, so that what was read by other rules (`_readings`) is forgotten.
        """
        recorded_draws = self._recorded_draws()
        if recorded_draws != self.rules.recorded:
            self.rules = replace(self.rules, recorded=recorded_draws)
            self._readings = {}

    def _report_changed_windows(self) -> None:
        """Report how many windows have other seconds to judge than when they were drawn, or can't be read."""
        n_changed = self.rules.n_changed(self.draw.sampling)
        if n_changed:
            notice = message("note_content", n=n_changed, s="" if n_changed == 1 else "s")
            self._notify(message("note_of", movie=self.film.movie, notice=notice))
            return
        # Notices on windows that can't be read say that such windows are never drawn. They are left out if
        # windows changed: the draw was then made when these windows may have been readable.
        for notice_on_unread in self.rules.unread_notices:
            self._notify(notice_on_unread)

    def _find_standing_and_write_tables(self) -> None:
        """Bring everything up to date after the ledger changed.

        Three things follow: the decisions that stand are found anew (`clips_by_kind`, `lines`); notices are
        added on what is wrong in the ledger; and the tables of decisions are written. A table that can't be
        written is no error, as the ledger has all decisions: `_why_unwritten` says of which kind, and why.
        """
        self._find_standing()
        self._report_refused_claims()
        self._report_how_many_more()
        conflicting_ids = self.conflicts()  # of decisions that stand beside another of the same person
        if conflicting_ids:
            self._notify(message("beside", folder=self.folder, n=len(conflicting_ids)))

        self._why_unwritten = {}
        for kind, table in self._tables.items():
            has_no_decisions = not self.clips_by_kind[kind]
            try:
                table.write(self.table(kind), is_empty=has_no_decisions)
            except OSError as error:  # a full disk, for example
                facts = {"error": error.strerror, "ledger": LEDGER}
                notice = message("table_unwritten", path=table.path, **facts)
                self._why_unwritten[kind] = notice
                self._notify(notice)

    def require_tables(self) -> None:
        """Raise an error if a table of decisions could not be written, such as on a full disk.

        Commands call it before they read the tables, which would lack decisions. The desk does not: it reads
        the ledger, which has all, and only shows a notice.

        Raises
        ------
        FilmError
            The reason; of several tables, the first one's.
        """
        reasons = list(self._why_unwritten.values())
        if reasons:
            raise FilmError(reasons[0])

    def _report_refused_claims(self) -> None:
        """Report lines that ask to replace another line, or to take it back, and may not.

        Such a claim is refused if, for example, the other line is somebody else's. At most
        `MAX_NOTICES_OF_A_KIND` claims are reported one by one; the number of all is kept, so that
        `_report_how_many_more` can say how many there are besides.
        """
        claims = list(refused_claims(self._lines_of_ledger(), self._is_valid))
        for claim in claims[:MAX_NOTICES_OF_A_KIND]:
            path, number = self.ledger.where[claim.line.id]  # file and line number
            act = message("claim_undo" if claim.line.kind == "undo" else "claim_replace")
            reason = message(f"claim_{claim.reason}")
            people = {"who": claim.line.annotator, "other": claim.target.annotator}
            self._notify(
                message(
                    "claim",
                    path=path,
                    line=number,
                    act=act,
                    reason=reason,
                    name=claim.target.id,
                    **people,
                )
            )

        # The whole ledger was looked through: the number replaces that of an earlier call.
        self._n_notices_of_kind["claims"] = len(claims)

    def table(self, kind: str, shown_ids: Container[str] | None = None) -> str:
        """Return the text of a table (CSV) with the standing decisions of a kind.

        Only decisions whose id is in `shown_ids` are in it; by default all that stand.
        """
        standing_ids = [clip.clip_id for clip in self.clips_by_kind[kind]]
        rows = []
        for decision_id in standing_ids:
            if shown_ids is None or decision_id in shown_ids:
                line = self.lines[decision_id]  # of the ledger
                rows.append(Decision(line, self.definition_of(line)))
        return table_text(kind, rows)

    def _notify(self, message: str, kind: str = "") -> None:
        """Add a message to `notices`, unless it was added before.

        At most `MAX_NOTICES_OF_A_KIND` messages of a kind are added; the others are only counted. Messages
        without a kind are all added.
        """
        if message in self._given_notices:
            return
        if kind:
            self._n_notices_of_kind[kind] += 1
            if self._n_notices_of_kind[kind] > MAX_NOTICES_OF_A_KIND:
                return
        self._given_notices.add(message)
        self.notices.append(message)

    def _report_how_many_more(self) -> None:
        """Add a notice for each kind of which there are too many: how many more there are than were given."""
        for kind, n in self._n_notices_of_kind.items():
            if n > MAX_NOTICES_OF_A_KIND:
                self._notify(counted_message(f"more_{kind}", n - MAX_NOTICES_OF_A_KIND, folder=self.folder))


def copy_decisions(folder: Path, out: Path) -> None:
    """Copy a scored film's ledger and tables of decisions into another folder of the same film.

    Links and folders in the place of a file are left out.
    """
    ledger_files = journals_in(folder / LEDGER)
    tables = [folder / name for name in COLUMNS if (folder / name).is_file()]  # the keys are file names
    for path in (*ledger_files, *tables):
        copy = out / path.relative_to(folder)
        copy.parent.mkdir(exist_ok=True)
        with suppress(InputError):  # a link or folder of this name was reported when the ledger was read
            write_new(copy, read_bytes(path, MAX_BYTES, within=folder))


def codebook_of(name: str, path: Path | None) -> Codebook:
    """Read the codebook of the judgements from a file; without a file, return the built-in one of a name.

    Raises
    ------
    FilmError
        There is no file, and no built-in codebook of this name.
    """
    if path is None and name not in BUILTIN:
        raise FilmError(
            f"the model's codebook {name!r} is not built in: give its file (the labels' own) with --codebook"
        )
    return find_codebook(str(path or name))


def codebook_in_ledger(folder: Path, name: str) -> Codebook:
    """Return the codebook under which people decided last, by the headers of a film's ledger.

    It is the latest one of the model's codebook's name, as decisions under it can be compared with the model;
    else the latest one of any name, as of labels that were imported with a codebook of their own; else, of a
    ledger without a codebook, the built-in one of the name.

    Parameters
    ----------
    folder
        The folder of the scored film.
    name
        Name of the model's codebook.

    Raises
    ------
    FilmError
        No header of the ledger has a codebook, and none of this name is built in.
    """
    ledger = Ledger(folder, say=lambda _: None)  # what is wrong in it is reported when it is opened
    ledger.read()
    books = []  # the latest first
    for line in sorted(ledger.lines.values(), key=in_order, reverse=True):
        if line.header is None or line.header.codebook is None:
            continue
        book = codebook_in(line.header.codebook)
        if book is not None:  # None: its text can't be read
            books.append(book)

    books_of_model = [book for book in books if book.name == name]
    if books_of_model:
        return books_of_model[0]
    if books:
        return books[0]
    return codebook_of(name, path=None)


class PeoplesDecisions(NamedTuple):
    """What people decided about a film, for exports, and messages for the user about it."""

    decided: list[Decided]
    notices: list[str]


def read_decided(folder: Path, film: Timeline) -> PeoplesDecisions:
    """Read what people decided in a scored film's folder, under the codebook that they used last.

    If nobody decided anything, a notice says so. If there are decisions and all are left out, as they are not
    valid for example, that notice would be wrong: the notices of these decisions say which and why.
    """
    nobody_decided = message("nobody_decided", folder=folder)
    has_ledger = (folder / LEDGER).is_dir()
    has_table = any((folder / table).is_file() for table in KINDS.values())
    if not has_ledger and not has_table:
        return PeoplesDecisions(decided=[], notices=[nobody_decided])

    last_codebook = codebook_in_ledger(folder, name=film.model().codebook)
    decisions = Decisions(folder, film, last_codebook)
    decided = decisions.decided()
    notices = [*decisions.notices]
    is_explained = bool(notices)
    if not decided and not is_explained:
        notices.append(nobody_decided)
    return PeoplesDecisions(decided, notices)


def _judged_span(clip: Clip) -> JudgedSpan:
    """Return a key that two judgements share if the later one replaces the earlier one.

    They are by one person, of the same span, to the precision with which spans are compared, and both made
    blindly or both with the score shown.
    """
    return clip.annotator, clip.movie, *span_key(clip), was_score_hidden(clip)


def _remove_invalid_agreements(lines: dict[str, Line]) -> int:
    """Remove agreed decisions that are not valid (`problem_of`) from `lines`; return their number."""
    n_removed = 0
    for line in [*lines.values()]:
        if line.kind == "agreed" and problem_of(line.row, lines) is not None:
            del lines[line.id]
            n_removed += 1
    return n_removed


def _latest_last_on_each_span(kind: str, clips: Sequence[Clip]) -> list[Clip]:
    """Sort the decisions, all of one kind, of one person on one span by the time at which they were made.

    A person who decided on two machines may have several such decisions, and the order of the ledger need not
    be that of time. Where only one decision counts, it is the last one. A span keeps its places in the list:
    if its decisions were the second and the fifth, the earlier one becomes the second, and the later one the
    fifth.
    """
    places_of_span: dict[JudgedSpan, list[int]] = {}
    for place, clip in enumerate(clips):
        places_of_span.setdefault(_decided_span(kind, clip), []).append(place)
    in_order = list(clips)
    for places in places_of_span.values():
        earliest_first = sorted([clips[place] for place in places], key=judged_at)
        for place, clip in zip(places, earliest_first, strict=True):
            in_order[place] = clip
    return in_order


def _common_places(places: Places | None, other_places: Places | None) -> Places | None:
    """Return the places that are in both of two sets, each of which may be `ALL_PLACES`."""
    if places is ALL_PLACES:
        return other_places
    if other_places is ALL_PLACES:
        return places
    return places & other_places


def _decided_span(kind: str, clip: Clip) -> JudgedSpan:
    """Return a key that two decisions of a kind share if the later one replaces the earlier one."""
    return _settled_span(clip) if kind == "agreed" else _judged_span(clip)


def _settled_span(clip: Clip) -> JudgedSpan:
    """Return a key that two agreed decisions share if the later one replaces the earlier one.

    They are by one person and of the same span, to the precision with which spans are compared; whether the
    score was shown does not matter.
    """
    return clip.annotator, clip.movie, *span_key(clip)


def _content(line: Line) -> tuple[str, ...]:
    """Return what a line says, to compare it with others: span, level, concepts and note."""
    return tuple(line.row.get(name, "") for name in ("start_s", "end_s", "level", "concepts", "note"))
