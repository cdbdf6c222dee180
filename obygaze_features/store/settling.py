"""Choose the journal line whose bytes each row of a sealed store takes."""

from collections import Counter
from dataclasses import dataclass, field, replace

from obygaze_features.errors import StoreError
from obygaze_features.store.format import STATUSES
from obygaze_features.store.journal import JournalEntry, is_done
from obygaze_features.store.parts import Part
from obygaze_features.store.records import StoredClip
from obygaze_features.store.sights import refuse_holes
from obygaze_features.store.stage import Stage


@dataclass
class SettledRows:
    """Journal lines of every row to seal, best first; lines with missing or wrong bytes are dropped."""

    stage: Stage
    order: list[int]
    lines: dict[int, tuple[JournalEntry, ...]]
    lost: dict[int, str] = field(default_factory=dict)

    def line(self, position: int) -> JournalEntry | None:
        """Return the line with the features of the clip at a position of the sealed store."""
        line = self.lines.get(self.order[position], (None,))[0]
        return line if line is not None and is_done(line) else None

    def of(self, part: Part) -> list[JournalEntry | None]:
        """Return the lines of a part's rows."""
        return [self.line(position) for position in part.rows]

    def drop(self, position: int, name: str) -> None:
        """Drop the best line of a row, because its bytes differ from the line's digests."""
        row = self.order[position]
        gone, *others = self.lines[row]
        if not gone.writer:
            raise StoreError(
                f"clip {gone.clip_id}, array {name}: not what the store that this stage grows has a digest "
                f"of; run: obygaze store verify --full {self.stage.grows and self.stage.grows.path}"
            )
        if any(is_done(line) for line in others):
            self.lines[row] = tuple(others)
        else:
            self.lost.setdefault(row, name)

    def clip(self, row: int) -> StoredClip:
        """Make the sealed store's record of a row."""
        plan = self.stage.clips[row]
        span = (plan.start_s, plan.end_s)
        bare = StoredClip(plan.clip_id, STATUSES[0], "", plan.movie, *span, text=plan.text)
        if row not in self.lines:
            return bare
        line = self.lines[row][0]
        return replace(bare, status=line.status, reason=line.reason, source=line.source, digests=line.digests)

    def devices(self) -> dict[str, int]:
        """Count the clips computed on each GPU model; clips computed on a CPU are not counted."""
        named = [line.source.get("device") for line, *_ in self.lines.values() if is_done(line)]
        return dict(sorted(Counter(str(name) for name in named if name is not None).items()))

    def annul(self) -> None:
        """Mark clips whose bytes match no journal line as missing, and raise a StoreError."""
        reasons = {
            self.stage.clips[row].clip_id: f"{self.lost[row]} is not what the journal says"
            for row in sorted(self.lost)
        }
        with self.stage.writer() as writer:
            writer.annul(reasons)
        clip, reason = next(iter(reasons.items()))
        raise StoreError(
            f"{self.stage.path}: {len(reasons)} clips are not what they were when committed, "
            f"the first is {clip} ({reason}); they are marked missing now: extract again, then seal"
        )


def settled_rows(stage: Stage, *, allow_missing: bool, max_failed: int | None) -> SettledRows:
    """Sort the rows by clip id, each with its lines, best first; refuse a stage that is not ready.

    Raises
    ------
    StoreError
        Clips are missing, have failed for want of videos that some machine finds, or too many have failed.
    """
    lines = {
        row: tuple(line for line in some if is_done(line)) or some[:1]
        for row, some in stage.settled().items()
    }
    missing = [clip.clip_id for row, clip in enumerate(stage.clips) if row not in lines]
    if missing and not allow_missing:
        raise StoreError(
            f"{stage.path}: {len(missing)} of {len(stage.clips)} clips are still to do, "
            f"the first is {missing[0]}; extract again, or allow missing clips (--allow-missing)"
        )
    if not allow_missing:
        refuse_holes(stage, lines)
    failed = sum(entries[0].status == "failed" for entries in lines.values())
    if max_failed is not None and failed > max_failed:
        raise StoreError(
            f"{stage.path}: {failed} clips have failed, and at most {max_failed} may (--max-failed); "
            "`obygaze extract` with --retry-failed tries them again"
        )
    return SettledRows(
        stage, sorted(range(len(stage.clips)), key=lambda row: stage.clips[row].clip_id), lines
    )
