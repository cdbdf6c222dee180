"""Undo and redo what somebody did since the workspace was opened."""

from obygaze_film.workspace.ledger import Ledger
from obygaze_film.workspace.ledger_lines import Line
from obygaze_film.workspace.rules import name_of, now

Act = tuple[Line, ...]
"""The lines that one act of a person wrote, usually one. A decision that changes one of another kind is
followed by a line that takes the other one back."""


class Acts:
    """The acts of people since the workspace was opened: those that can be undone, or be done again.

    Parameters
    ----------
    ledger : Ledger
        To undo an act, a further line is written there that takes back the act's lines.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._done: list[Act] = []  # what can be undone, the latest last
        self._undone: list[Act] = []  # the acts by which something was undone, the latest last

    @property
    def last_annotator(self) -> str:
        """Who acted last; empty if nobody did."""
        if not self._done:
            return ""
        last_act = self._done[-1]
        return last_act[0].annotator

    def did(self, *lines: Line) -> None:
        """Remember the lines of an act, so that it can be undone.

        After it the person can no longer do again what they undid before.
        """
        self._done.append(lines)
        self._undone = [act for act in self._undone if act[0].annotator != lines[0].annotator]

    def take_back(self, *lines: Line) -> Line:
        """Write a line to the ledger that takes back these lines, which are all of one person."""
        row = {"annotator": lines[0].annotator, "judged_at": now()}
        return self._ledger.add("undo", row, [line.id for line in lines])

    def undo(self, annotator: str) -> Line | None:
        """Take back a person's latest act; return the decision that it was about, None without an act."""
        return self._step(annotator, self._done, self._undone)

    def redo(self, annotator: str) -> Line | None:
        """Do again what a person undid last; return the decision that it was about."""
        return self._step(annotator, self._undone, self._done)

    def _step(self, annotator: str, acts: list[Act], reversed_acts: list[Act]) -> Line | None:
        """Take back a person's latest act of `acts`, and add the line that does so to `reversed_acts`.

        Undoing is taking back the act; redoing is taking back the line that took it back. Returns the
        decision that the act was about; None if the person has no act.
        """
        own_acts = [act for act in acts if act[0].annotator == name_of(annotator)]
        if not own_acts:
            return None
        act = own_acts[-1]
        reversed_acts.append((self.take_back(*act),))
        acts.remove(act)
        decision = act[0]
        while decision.kind == "undo":  # it takes back a decision, or another line that takes one back
            decision = self._ledger.lines[decision.replaces[0]]
        return decision
