"""Undo and redo what somebody did since the workspace was opened."""

from obygaze_film.workspace.ledger import Ledger
from obygaze_film.workspace.ledger_lines import Line
from obygaze_film.workspace.rules import name_of, now

Act = tuple[Line, ...]
"""The lines that one act of a person wrote, all by that person; usually one line. A decision that changes one
of another kind is followed by a line that takes the other one back."""


class Acts:
    """The acts of people since the workspace was opened: those that can be undone, or be done again.

    Parameters
    ----------
    ledger : Ledger
        To undo an act, a further line is written there that takes back the act's lines.
    """

    def __init__(self, ledger: Ledger) -> None:
        """Begin without acts: what was decided before the workspace was opened can't be undone in it."""
        self._ledger = ledger
        # Both lists have the latest act last. An act is the lines that it wrote into the ledger.
        self._done: list[Act] = []  # what can be undone
        self._undoing: list[Act] = []  # acts that undid something: taking these back is a redo

    @property
    def last_annotator(self) -> str:
        """Name of the person who acted last since the workspace was opened; empty if nobody did."""
        if not self._done:
            return ""
        return _annotator_of(self._done[-1])

    def remember(self, *lines: Line) -> None:
        """Remember the lines of a new act, so that it can be undone.

        As in any editor, what the person undid before a new act cannot be redone after it.
        """
        self._done.append(lines)
        self._undoing = [act for act in self._undoing if _annotator_of(act) != _annotator_of(lines)]

    def take_back(self, *lines: Line) -> Line:
        """Append an `undo` line to the ledger, which takes back these lines of one person; return it.

        Lines that were taken back stay in the ledger, and no longer count.
        """
        row = {"annotator": _annotator_of(lines), "judged_at": now()}
        return self._ledger.add("undo", row, [line.id for line in lines])

    def undo(self, annotator: str) -> Line | None:
        """Take back a person's latest act, by a line in the ledger.

        Returns
        -------
        Line or None
            The decision that it was about. None if there is no act to take back.
        """
        return self._take_back_latest(annotator, acts=self._done, reversals=self._undoing)

    def redo(self, annotator: str) -> Line | None:
        """Do again what a person undid last, by a line in the ledger.

        Nothing is removed from a ledger: to undo a decision is to add a line that takes it back. So to redo
        is to take back that line, by another one, which can be undone in turn.

        Returns
        -------
        Line or None
            The decision that it was about. None if there is nothing to do again.
        """
        return self._take_back_latest(annotator, acts=self._undoing, reversals=self._done)

    def _take_back_latest(self, annotator: str, acts: list[Act], reversals: list[Act]) -> Line | None:
        """Take back a person's latest act in a list, by a further line of the ledger.

        An act is the lines that it wrote into the ledger. It is removed from `acts`, and the line that takes
        it back is an act too, which is added to the other list. An undo takes back a decision, a redo takes
        back the undo, and another undo takes back the redo:

            line in the ledger      can be undone   can be redone
            1: a decision           1
            2: undo, takes back 1                   2
            3: redo, takes back 2   3
            4: undo, takes back 3                   4

        Parameters
        ----------
        annotator : str
        acts : list of Act
            Where the act is: what can be undone, or what can be redone.
        reversals : list of Act
            The other one of these two lists.

        Returns
        -------
        Line or None
            The decision that all of these acts are about, here line 1. None if the person has no act in
            `acts`.
        """
        name = name_of(annotator)  # without extra blanks, as the ledger writes it
        own_acts = [act for act in acts if _annotator_of(act) == name]
        if not own_acts:
            return None

        latest = own_acts[-1]
        line_that_takes_back = self.take_back(*latest)
        acts.remove(latest)
        reversals.append((line_that_takes_back,))
        return self._decision_of(latest)

    def _decision_of(self, act: Act) -> Line:
        """Return the decision that an act made, took back, or brought back.

        An act that took something back begins with an `undo` line, which names the line that it took back.
        That may be an `undo` line too, so that they are followed until a line is a decision.
        """
        line = act[0]  # further lines of an act only take back what the decision changed
        while line.kind == "undo":
            # The first id is that of the decision or undo itself; others are of its earlier versions.
            id_taken_back = line.replaces[0]
            line = self._ledger.lines[id_taken_back]
        return line


def _annotator_of(act: Act) -> str:
    """Return whose act it is; all lines of an act are by one person."""
    return act[0].annotator
