"""Keep what people decide about a scored film in its ledger; tables of the decisions are exports of it."""

import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

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
    Problems,
    find_codebook,
    repeated_concepts,
)
from obygaze_film.draws import LAW, SEED, Draw
from obygaze_film.errors import FilmError
from obygaze_film.exchange.decided import Decided
from obygaze_film.judged_windows import law_of, named_law
from obygaze_film.notes import said, said_counted
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
from obygaze_film.workspace.importing import IMPORT, Annotated, TakenFrom, taken_from
from obygaze_film.workspace.ledger import LEDGER, MOST_OF_A_KIND, Ledger
from obygaze_film.workspace.ledger_lines import DECISIONS, HEADERS, Header, Line, in_order
from obygaze_film.workspace.rules import FIXED, TO_JUDGE, FilmRules, Reading, name_of, read_line
from obygaze_film.workspace.settling import Disagreement, disagreements, problem_of
from obygaze_film.workspace.tables import (
    COLUMNS,
    KINDS,
    NOTES,
    Decision,
    ExportedTable,
    State,
    TakenIn,
    read_edited,
    state_of,
    table_text,
)

__all__ = ["COLUMNS", "FIXED", "JUDGEMENTS", "KINDS", "NOTES", "PASSAGES", "Decisions", "State", "state_of"]

OF_THE_DRAW: Final = (SEEN_SCORE, PLACE, LAW, SEED, CONTENT_S)
"""Columns that judgements are counted by; all that are made into a manifest have them."""

ONE_A_PLACE: Final = ("judgement", "agreed")
"""Kinds of decisions of which a person has one in a place; passages of one's own may overlap."""

Place = tuple[object, ...]
"""Where a person has one judgement: annotator, movie, start, end, and whether the score was in sight."""


class Decisions:
    """What people decided about one film: the union of its ledger's sittings.

    Every decision is appended at once, and the tables are written anew. A table that is not as it was written
    here was edited elsewhere: what it says comes in as a sitting.

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
    kept : dict
        Kind -> the decisions that stand, nonsense left out, in one order everywhere. Their ids are the
        ledger's; further columns are in `extras`.
    lines : dict
        Id -> line of these decisions.
    definition : str
        Of the codebook, or the one that means the same and stands for it.
    notices : list of str
        What is to be said, each thing once; who says it empties the list.

    Raises
    ------
    ObygazeError
        A table has not the columns of such a table, or nonsense in a row; names file and line.
    """

    def __init__(
        self, folder: Path, film: Timeline, codebook: Codebook, *, same_meaning: bool = False
    ) -> None:
        self.folder, self.film, self.codebook = folder, film, codebook
        self.rules = FilmRules(film, codebook)
        self.kept: dict[str, list[Clip]] = {}
        self.lines: dict[str, Line] = {}
        self.notices: list[str] = []
        self._said: set[str] = set()
        self._n_of_kind = Counter[str]()
        self._same_meaning: tuple[str, ...] = ()
        self.ledger = Ledger(folder, self._say, self._header)
        self._acts = Acts(self.ledger)
        self._readings: dict[str, Reading] = {}
        self._meanings = Meanings(())
        self.definition = codebook.definition()
        self._tables = {kind: ExportedTable(folder, kind) for kind in KINDS}
        self._lock = RLock()
        self._record = state_of(folder / RECORD)
        self.refresh(opening=True)
        others = sorted({self.definition_of(line) for line in self._elsewhere_defined()})
        if same_meaning and others:
            self._same_meaning = tuple(others)
            self.ledger.begin()
            self._settle()
        self._tell_definitions()

    # --- what is there
    # ---------------------------------------------------------------------------
    @property
    def who(self) -> str:
        """Who decided last in this sitting, else who decided all there is, if that is one person."""
        if self._acts.last_annotator:
            return self._acts.last_annotator
        names = {clip.annotator for clips in self.kept.values() for clip in clips}
        return names.pop() if len(names) == 1 else ""

    @property
    def draw(self) -> Draw:
        """The draw of the windows to judge blindly, by the law of those judged before."""
        judged = [clip for clip in self.kept.get("judgement", ()) if self._readings[clip.clip_id].place]
        return self.rules.draws[law_of(judged)]

    @property
    def windows(self) -> list[tuple[float, float]]:
        """Windows to judge blindly, in the order of the draw."""
        return self.rules.windows[self.draw.law]

    def place_of(self, clip: Clip) -> int:
        """Return the place in the draw of a window that was judged blindly; 0 if it is none."""
        return self.rules.place_of(clip)

    def verdict(self, level: str, concepts: Iterable[str] = ()) -> str:
        """Say what a judgement of a passage that the model marks is (`FilmRules.verdict`)."""
        return self.rules.verdict(level, concepts)

    def blind(self, *, any_definition: bool = False) -> dict[str, dict[int, Clip]]:
        """Map who judged blindly to their judgements by place in the draw.

        Judgements under other definitions than today's count only where they are asked for.
        """
        judged: dict[str, dict[int, Clip]] = {}
        law = self.draw.law
        for clip in self.kept["judgement"]:
            place = self._readings[clip.clip_id].place
            is_asked_for = any_definition or self.is_current(clip.clip_id)
            if clip.level and place and named_law(clip) == law and is_asked_for:
                judged.setdefault(clip.annotator, {})[place] = clip
        return judged

    def fixed_by(self, who: str) -> int:
        """Return how many windows somebody had decided to judge, before the first; at most all there are."""
        judged = self.blind().get(who, {}).values()
        numbers = [clip.extras.get(FIXED, "") for clip in judged]
        fixed = max([int(text) for text in numbers if text.isdecimal()], default=TO_JUDGE)
        return min(fixed, len(self.windows))

    def hides(self, who: str) -> bool:
        """Whether others' blind judgements are hidden from somebody: until their own are finished."""
        others = self.blind(any_definition=True)
        others.pop(who, None)
        return bool(others) and not self._is_finished(who)

    @property
    def has_unfinished(self) -> bool:
        """Whether anybody with a name has judged fewer windows blindly than they had fixed."""
        return any(name and not self._is_finished(name) for name in self.blind())

    def _is_finished(self, who: str) -> bool:
        """Whether somebody has judged as many windows blindly as they had fixed."""
        n_own = len(self.blind().get(who, ()))
        return n_own > 0 and n_own >= self.fixed_by(who)

    def conflicts(self) -> set[str]:
        """Return the ids of standing decisions between which their author has yet to choose.

        Such decisions come from machines that did not know of each other, for example. Either two of them
        replace the same line, or they are two judgements of one person in one place.
        """
        first_at: dict[object, str] = {}  # a place, or a line that is replaced -> the first decision there
        conflicting: set[str] = set()
        for clips in self.kept.values():
            for clip in clips:
                line = self.lines[clip.clip_id]
                places: list[object] = [(line.annotator, replaced_id) for replaced_id in line.replaces]
                if line.kind in ONE_A_PLACE:
                    places.append((line.kind, _place(clip)))
                for place in places:
                    first_id = first_at.setdefault(place, line.id)
                    if first_id != line.id:
                        conflicting |= {first_id, line.id}
        return conflicting

    def judgements(self, clips: Iterable[Clip] | None = None) -> Manifest:
        """Make a manifest of judgements under today's definitions; of several in one place the latest."""
        latest: dict[Place, Clip] = {}
        for clip in self.kept["judgement"] if clips is None else clips:
            if clip.level and self.is_current(clip.clip_id):
                extras = {name: clip.extras.get(name, "") for name in OF_THE_DRAW}
                known = self.definition_of(self.lines[clip.clip_id])
                extras[DEFINITION] = self.codebook.definition() if known else UNKNOWN
                latest[_place(clip)] = replace(clip, extras=extras)
        return Manifest(tuple(latest.values()), self.folder, self.codebook)

    def disagreements(self, shown: Container[str] | None = None) -> list[Disagreement]:
        """List what people differ on, under today's definitions; of the decisions `shown` alone, by id."""
        judged = self._current(("judgement", "passage"), shown)
        return disagreements(judged, self._current(("agreed",), shown))

    def _current(self, kinds: Iterable[str], shown: Container[str] | None) -> list[Clip]:
        """List standing decisions on a level of some kinds that were made under today's definitions.

        Of those whose id is in `shown` alone, unless it is None.
        """
        current = []
        for kind in kinds:
            for clip in self.kept[kind]:
                is_shown = shown is None or clip.clip_id in shown
                if clip.level and is_shown and self.is_current(clip.clip_id):
                    current.append(clip)
        return current

    def decided(self, shown: Container[str] | None = None) -> list[Decided]:
        """List what people decided under today's definitions, for exports; of the ids `shown` alone."""
        decided = []
        for clip in (clip for clips in self.kept.values() for clip in clips):
            line = self.lines[clip.clip_id]
            if not self.is_current(line.id) or (shown is not None and line.id not in shown):
                continue
            parents = [self.lines[name].annotator for name in line.parents]
            one = Decided(
                clip.start_s or 0.0,
                clip.end_s or 0.0,
                judges=tuple(sorted({*parents})) or (clip.annotator,),
                level=clip.level or "",
                concepts=clip.concepts,
                note=line.row.get("note", ""),
                is_blind=clip.extras.get(SEEN_SCORE) == "0",
                is_agreed=line.kind == "agreed",
                id=line.id,
                definition=self.definition_of(line) if clip.level else UNKNOWN,
            )
            if one.level or one.note:
                decided.append(one)
        return decided

    # --- under which definitions
    # ---------------------------------------------------------------------------
    def definition_of(self, line: Line) -> str:
        """Return the definition that a line was decided under; empty where nothing says.

        A row of a table says it itself: who took the table in need not be who decided.
        """
        if DEFINITION in line.row:
            return self._meanings.of(line.row[DEFINITION])
        header = self.ledger.header_of(line)
        if header is None or header.codebook is None or self._is_of_table(line):
            return UNKNOWN
        if codebook_in(header.codebook) is None:
            return UNKNOWN
        return self._meanings.of(header.codebook.definition)

    def is_current(self, name: str) -> bool:
        """Whether a decision that stands was made under today's definitions, or does not say under which."""
        return self.definition_of(self.lines[name]) in {UNKNOWN, self.definition}

    def changed_definitions(self, language: str = "en") -> list[ChangedText]:
        """List what the codebooks of decisions that stand say otherwise than today's, with both texts."""
        changed: dict[ChangedText, None] = {}
        for line in self._elsewhere_defined():
            header = self.ledger.header_of(line)
            before = None if header is None or header.codebook is None else codebook_in(header.codebook)
            if before is not None and not self._is_of_table(line):
                changed |= dict.fromkeys(changed_texts(before, self.codebook, language))
        return [*changed]

    def _header(self) -> Header:
        """Say what a sitting that begins now is of."""
        return Header(stored(self.codebook), self._same_meaning, self.draw)

    def _is_of_table(self, line: Line) -> bool:
        """Whether a line of the ledger was imported from a table or file, not decided at the desk.

        The first line of a sitting, number 1, says what kind of sitting it is.
        """
        first = self.ledger.lines.get(f"{line.sitting}-1")
        return first is not None and first.kind == "table"

    def _elsewhere_defined(self) -> list[Line]:
        """List the lines that stand and were decided under other definitions than today's."""
        return [line for name, line in self.lines.items() if not self.is_current(name)]

    def _tell_definitions(self) -> None:
        """Say which decisions are of sittings that name no definitions, or were made under others."""
        labelled = [line for line in self.lines.values() if line.row.get("level")]
        unknown = [line for line in labelled if self.ledger.header_of(line) is None]
        if unknown:
            decided = said_counted("n_decisions", len(unknown))
            self._say(said("defined_unknown", folder=self.folder, decisions=decided))
        others = [line for line in self._elsewhere_defined() if line.row.get("level")]
        if others:
            digests = sorted({self.definition_of(line)[:12] for line in others})
            facts = {"decisions": said_counted("n_decisions", len(others)), "digests": ", ".join(digests)}
            self._say(said("defined_otherwise", folder=self.folder, **facts))

    @property
    def headers(self) -> list[Header]:
        """What the film's sittings say of themselves."""
        headers = [line.header for line in self.ledger.lines.values() if line.kind in HEADERS]
        return [header for header in headers if header is not None]

    # --- what is decided
    # ---------------------------------------------------------------------------
    def keep(self, kind: str, start_s: float, end_s: float, who: str, **more: Any) -> str:
        """Keep a decision on a span (`level` and `concepts`, or `note`), and return its id.

        A judgement with a `place` is of the window at that place of the draw, and was made blindly; `windows`
        is the number that its judge has decided to judge. A judgement replaces what the same person judged of
        the span in the same way before: blindly, or with the score in sight. A decision with an `id` changes
        the one of this id, which no longer stands.
        """
        more["is_blind"] = kind == "agreed" and self._is_settled_blindly(more)
        row = self.rules.row_of(kind, start_s, end_s, who, draw=self.draw, more=more)
        self.rules.refuse(kind, row, start_s, end_s)
        problems = Problems(self.folder)
        clip = self.rules.checked(kind, row, "new", problems, 0)
        if clip is None:
            raise FilmError(problems.messages[0].partition(", ")[2])
        place = more.get("place", 0) if kind == "judgement" else 0
        if place and not self.place_of(clip):
            raise FilmError(said("no_window", start=start_s, end=end_s, place=place))
        with self._lock:
            if state_of(self.folder / RECORD) != self._record:
                raise FilmError(said("scored_again", folder=self.folder))
            self.refresh()
            if kind == "agreed":
                self._refuse_unsettled(row)
            edited = more.get("id", "")
            old = self._own(edited, clip.annotator) if edited else None
            replaced = [old.id] if old is not None and old.kind == kind else []
            if kind in ONE_A_PLACE:
                replaced += [other for other in self._in_place_of(kind, clip) if other not in replaced]
            line = self.ledger.add(kind, row, replaced)
            if old is None or old.kind == kind:
                self._acts.did(line)
            else:  # a line stands in place of its own kind alone: the other is taken back
                self._acts.did(line, self._acts.take_back(old))
            self._settle()
            return line.id

    def delete(self, name: str, annotator: str) -> Line:
        """Take back a decision of the same person, of whatever sitting, and return it.

        Raises
        ------
        FilmError
            It is somebody else's, or was changed or deleted meanwhile.
        """
        with self._lock:
            self.refresh()
            line = self._own(name, name_of(annotator))
            # With its earlier versions, of which otherwise the last would stand again.
            self._acts.did(self._acts.take_back(line, *self.replaced(line)))
            self._settle()
            return line

    def undo(self, annotator: str) -> Line | None:
        """Undo what the same person did last in this sitting; return the decision that it was about."""
        with self._lock:
            self.refresh()
            line = self._acts.undo(annotator)
            self._settle()
            return line

    def redo(self, annotator: str) -> Line | None:
        """Do again what the same person undid last, unless they decided something since."""
        with self._lock:
            self.refresh()
            line = self._acts.redo(annotator)
            self._settle()
            return line

    def history(self, name: str) -> list[Line]:
        """Return the earlier versions of a decision, the latest first, each content once."""
        shown = [self.lines[name]]
        for line in self.replaced(self.lines[name]):
            if all(_content(line) != _content(other) for other in shown):
                shown.append(line)
        return shown[1:]

    def replaced(self, line: Line) -> list[Line]:
        """Find all earlier versions of a line: the lines that it replaced, and those that they replaced."""
        before: dict[str, Line] = {}
        claims = [(line, name) for name in line.replaces]
        while claims:
            claiming, name = claims.pop(0)
            target = self.ledger.lines.get(name)
            if target is None or target.id in before or reason_against(claiming, target) is not None:
                continue
            before[target.id] = target
            claims += [(target, further) for further in target.replaces]
        return sorted(before.values(), key=lambda old: (-old.clock, old.id))

    def is_imported(self, line: Line) -> bool:
        """Whether a line came in by an import of a file."""
        first = self.ledger.lines.get(f"{line.sitting}-1")
        return first is not None and first.row.get("kind") == IMPORT

    def _own(self, name: str, who: str) -> Line:
        """Return the standing decision with an id, if it is the person's own; else refuse to change it."""
        line = self.lines.get(name)
        if line is None or line.annotator != who:
            raise FilmError(said("not_standing"))
        return line

    def _in_place_of(self, kind: str, clip: Clip) -> list[str]:
        """Return the ids of decisions of the same person in the same place, which a new one replaces."""
        return [old.clip_id for old in self.kept[kind] if _place(old) == _place(clip)]

    def _is_settled_blindly(self, asked: Mapping[str, Any]) -> bool:
        """Whether a decision that is agreed is made without the score, as all that it settles were."""
        parents = [self.lines.get(name) for name in asked.get("parents", ())]
        blind = [line for line in parents if line is not None and line.row.get(SEEN_SCORE) == "0"]
        return asked.get("mode") == "blind" and len(blind) == len(parents)

    def _refuse_unsettled(self, row: Mapping[str, str]) -> None:
        """Refuse an agreed decision whose parents do not stand, or are not of its span."""
        # A line as the ledger would have it: only its row is checked, and id and clock mean nothing.
        line = Line(id=f"{'0' * 16}-1", clock=1, kind="agreed", row=row)
        problem = problem_of(line, self.lines)
        if problem:
            raise FilmError(said(f"agreed_{problem}"))

    # --- reading and writing
    # ---------------------------------------------------------------------------
    def refresh(self, *, opening: bool = False) -> None:
        """Read what others appended to the ledger, or edited in the tables."""
        with self._lock:
            edited = [table for table in self._tables.values() if table.is_edited()]
            before = dict(self.ledger.lines)
            for table in edited:
                try:
                    self._take_in(table)
                except (ObygazeError, OSError) as error:
                    if opening:
                        raise
                    table.hold()
                    self._say(said("table_held", error=error))
            self.ledger.read()
            if opening or edited or before != self.ledger.lines:
                self._settle()

    def _take_in(self, table: ExportedTable) -> None:
        """Append the decisions that a person wrote into an exported table to the ledger, as one sitting.

        A table that is as it was exported holds none, and neither does one that was deleted.
        """
        state = state_of(table.path)
        table.was_read(state)
        if state is None:
            return
        data = read_bytes(table.path, MOST_BYTES, within=self.folder)
        # Only after the table was read is every decision sure to be in the ledger that was exported into it.
        self.ledger.read()
        self._find()
        exported = self.table(table.kind)
        if data == exported.encode():
            table.was_read(state, exported)
            return
        lines = [line for line in self.ledger.lines.values() if line.kind == table.kind]
        decisions = {line.id: Decision(line, self.definition_of(line)) for line in lines}
        standing_ids = [clip.clip_id for clip in self.kept[table.kind]]
        edited = read_edited(table, self.rules, decisions, standing_ids, self._meanings)
        n_new = self.ledger.add_table(sha256_of(data), table.kind, edited.new)
        if n_new:
            self._say_what_was_edited(table, edited, n_new, digest=sha256_of(data)[:16])
        elif any(edited.new):
            self._say(said("table_known", path=table.path))
        self._say_what_lacks(table, edited, standing_ids)

    def _say_what_was_edited(self, table: ExportedTable, edited: TakenIn, n_new: int, digest: str) -> None:
        """Say how many decisions were taken in from a table, and what is odd about its rows."""
        decided = said_counted("n_decisions", n_new)
        self._say(said("table_edited", path=table.path, digest=digest, decisions=decided))
        cells = [(table.path, row.line, row.cells) for row in edited.rows]
        for notice in repeated_concepts(cells).values():
            self._say(f"{table.path}: {notice}")
        for row in edited.beside:
            facts = {"who": row.annotator, "name": row.line.id, "other": row.line.annotator}
            self._say(said("row_beside", path=table.path, line=row.number, **facts))

    def _say_what_lacks(self, table: ExportedTable, edited: TakenIn, standing_ids: Sequence[str]) -> None:
        """Say how many standing decisions have no row any more: to delete a row deletes no decision.

        A table that is older than the latest sitting can't have a row for what was decided since.
        """
        ids_in_table = {row.cells.get("clip_id") for row in edited.rows}
        n_gone = sum(clip_id not in ids_in_table for clip_id in standing_ids)
        if n_gone and table.path.stat().st_mtime > self._latest_sitting():
            facts = {"decisions": said_counted("n_decisions", n_gone), "ledger": LEDGER}
            self._say(said("table_lacked", path=table.path, **facts))

    def take_in(self, file: Annotated, *, is_blind: bool | None = None) -> list[TakenFrom]:
        """Take annotations of a file into the ledger, as a sitting of each of their annotators.

        Parameters
        ----------
        file : Annotated
        is_blind : bool, optional
            Whether the model's score was out of sight, of what does not say so itself.

        Raises
        ------
        FilmError
            Neither says whether the score was in sight, or the film was scored again meanwhile.
        """
        with self._lock:
            if state_of(self.folder / RECORD) != self._record:
                raise FilmError(said("scored_again", folder=self.folder))
            self.refresh()
            every = taken_from(self, file, is_blind)
            for taken in every:
                about = {"annotator": taken.annotator, "file": file.path.name}
                named = sha256_of(f"{file.sha256}\n{taken.annotator}\n{is_blind}".encode())
                if any(taken.rows) and not self.ledger.add_table(named, IMPORT, taken.rows, about):
                    self._say(said("import_known", path=file.path, who=taken.annotator))
            self._settle()
            return every

    def _latest_sitting(self) -> float:
        """Return when a sitting was written to last."""
        return max(map(os.path.getmtime, self.ledger.folder.glob("*.jsonl")))

    def _is_valid(self, line: Line) -> bool:
        """Whether a line is a valid decision by the rules of this film and codebook."""
        return self._reading_of(line).clip is not None

    def _reading_of(self, line: Line) -> Reading:
        """Read a line by the rules; a line that was read before is not read again."""
        known = self._readings.get(line.id)
        if known is None or known.line != line:
            known = read_line(self.rules, line, *self.ledger.where[line.id])
            self._readings[line.id] = known
            for problem in known.problems:
                self._say(problem, "nonsense")
        return known

    def _recorded_draws(self) -> tuple[Draw, ...]:
        """Find by which draw of each law most windows were judged blindly, as their sittings say."""
        counts: Counter[Draw] = Counter()
        for line in self.ledger.lines.values():
            header = self.ledger.header_of(line)
            is_drawn = line.kind == "judgement" and bool(line.row.get(PLACE)) and not self._is_of_table(line)
            if is_drawn and header is not None and header.draw is not None:
                counts[header.draw] += 1
        recorded: dict[str, Draw] = {}
        for draw, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0].content)):
            if self.rules.is_of_film(draw):
                recorded.setdefault(draw.law, draw)
        return tuple(recorded.values())

    def _find(self) -> None:
        """Find what stands; say what is wrong, each thing once."""
        recorded = self._recorded_draws()
        if recorded != self.rules.recorded:
            self.rules = replace(self.rules, recorded=recorded)
            self._readings = {}  # places are of the draw
        self._meanings = Meanings(self.headers)
        self.definition = self._meanings.of(self.codebook.definition())
        kept: dict[str, list[Clip]] = {kind: [] for kind in DECISIONS}
        lines = {}
        for line in self.ledger.standing(self._is_valid):
            clip = self._reading_of(line).clip
            if clip is not None:
                kept[line.kind].append(clip)
                lines[line.id] = line
        self._leave_unsettled(kept, lines)
        self.lines = lines  # whole, as `kept`, for who reads them in another thread
        self.kept = kept
        n_changed = self.rules.n_changed(self.draw.law)
        if n_changed:
            notice = said("note_content", n=n_changed, s="" if n_changed == 1 else "s")
            self._say(said("note_of", movie=self.film.movie, notice=notice))

    def _leave_unsettled(self, kept: dict[str, list[Clip]], lines: dict[str, Line]) -> None:
        """Leave out what was agreed on decisions that no longer stand, and say how much it is."""
        n_open = 0
        settled = []
        for clip in kept["agreed"]:
            problem = problem_of(lines[clip.clip_id], lines)
            if problem:
                n_open += 1
                del lines[clip.clip_id]
            else:
                settled.append(clip)
        kept["agreed"] = settled
        if n_open:
            self._say(said("agreed_left", folder=self.folder, decisions=said_counted("n_decisions", n_open)))

    def _settle(self) -> None:
        """Find what stands, say what claims more than it may, and write the tables anew."""
        self._find()
        self._tell_claims()
        self._say_how_many_more()
        conflicts = self.conflicts()
        if conflicts:
            self._say(said("beside", folder=self.folder, n=len(conflicts)))
        for kind, table in self._tables.items():
            try:
                table.write(self.table(kind), is_empty=not self.kept[kind])
            except OSError as error:
                facts = {"error": error.strerror, "ledger": LEDGER}
                self._say(said("table_unwritten", path=table.path, **facts))

    def _tell_claims(self) -> None:
        """Say which lines ask to replace, or take back, what they may not."""
        claims = list(refused_claims(self.ledger.lines.values(), self._is_valid))
        for claim in claims[:MOST_OF_A_KIND]:
            path, number = self.ledger.where[claim.line.id]
            act = said("claim_undo" if claim.line.kind == "undo" else "claim_replace")
            facts = {"who": claim.line.annotator, "name": claim.target.id, "other": claim.target.annotator}
            reason = said(f"claim_{claim.reason}")
            self._say(said("claim", path=path, line=number, act=act, reason=reason, **facts))
        self._n_of_kind["claims"] = len(claims)

    def table(self, kind: str, only: Container[str] | None = None) -> str:
        """Write the decisions of a kind as a table; `only` those of some ids."""
        lines = [self.lines[clip.clip_id] for clip in self.kept[kind]]
        chosen = [line for line in lines if only is None or line.id in only]
        return table_text(kind, [Decision(line, self.definition_of(line)) for line in chosen])

    def _say(self, message: str, kind: str = "") -> None:
        """Keep a notice that is new; of a kind of which there may be many, the first ones."""
        if message in self._said:
            return
        if kind:
            self._n_of_kind[kind] += 1
            if self._n_of_kind[kind] > MOST_OF_A_KIND:
                return
        self._said.add(message)
        self.notices.append(message)

    def _say_how_many_more(self) -> None:
        """Count the notices of each kind behind the first ones."""
        for kind, n in self._n_of_kind.items():
            if n > MOST_OF_A_KIND:
                self._say(said_counted(f"more_{kind}", n - MOST_OF_A_KIND, folder=self.folder))


def copy_decisions(folder: Path, out: Path) -> None:
    """Copy what was decided about a film into another folder of it, where people go on deciding."""
    sittings = (folder / LEDGER).glob("*.jsonl")
    tables = [folder / name for name in COLUMNS if (folder / name).is_file()]
    for path in (*sittings, *tables):
        copy = out / path.relative_to(folder)
        copy.parent.mkdir(exist_ok=True)
        with suppress(InputError):  # a link or folder of this name was reported when the ledger was read
            write_new(copy, read_bytes(path, MOST_BYTES, within=folder))


def codebook_of(name: str, path: Path | None) -> Codebook:
    """Find the codebook of the judgements: a file, or the models' of a name."""
    if path is None and name not in BUILTIN:
        raise FilmError(
            f"the model's codebook {name!r} is not built in: give its file (the labels' own) with --codebook"
        )
    return find_codebook(str(path or name))


def codebook_in_ledger(folder: Path, name: str) -> Codebook:
    """Find the codebook of a name under which people decided last in a film's folder, else the built-in one.

    Raises
    ------
    FilmError
        It is not built in, and no sitting of the ledger has it.
    """
    ledger = Ledger(folder, lambda _: None)
    ledger.read()
    for line in sorted(ledger.lines.values(), key=in_order, reverse=True):
        kept = None if line.header is None else line.header.codebook
        book = None if kept is None else codebook_in(kept)
        if book is not None and book.name == name:
            return book
    return codebook_of(name, None)


class PeoplesDecisions(NamedTuple):
    """What people decided about a film, for exports, and what is to be said of it."""

    decided: list[Decided]
    notices: list[str]


def read_decided(folder: Path, film: Timeline) -> PeoplesDecisions:
    """Read what people decided in a film's folder, under the words that they decided under last."""
    tables = [folder / name for name in COLUMNS]
    if not (folder / LEDGER).is_dir() and not any(path.is_file() for path in tables):
        return PeoplesDecisions([], [said("nobody_decided", folder=folder)])
    decisions = Decisions(folder, film, codebook_in_ledger(folder, film.model().codebook))
    decided = decisions.decided()
    if not decided:
        decisions.notices.append(said("nobody_decided", folder=folder))
    return PeoplesDecisions(decided, decisions.notices)


def _place(clip: Clip) -> Place:
    """Return the place of a decision: a person has one judgement there, and a later one replaces it."""
    return clip.annotator, clip.movie, clip.start_s, clip.end_s, clip.extras.get(SEEN_SCORE)


def _content(line: Line) -> tuple[str, ...]:
    """Return what a line says, to compare it with others: span, level, concepts and note."""
    return tuple(line.row.get(name, "") for name in ("start_s", "end_s", "level", "concepts", "note"))
