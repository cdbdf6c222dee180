"""Lay out the three figures of a film's page: the share of time, the number of passages, and the AUC."""

from typing import TYPE_CHECKING, NamedTuple

from obygaze_film.claims import phrases
from obygaze_film.claims.kinds import FilmClaim
from obygaze_film.page import charts

if TYPE_CHECKING:
    from obygaze_film.page.view import FilmView


class KeyFigure(NamedTuple):
    """A number with its interval, as text and as a bar, with what it is and a note."""

    value: str
    interval: str
    bar: dict[str, str] | None
    what: str
    note: str


def key_figures(view: "FilmView") -> list[KeyFigure]:
    """Return the three figures of a film."""
    return [_share(view), _passages(view), _auc(view)]


def _bar(claim: FilmClaim, scale: float = 1.0) -> dict[str, str] | None:
    if claim.number is None or claim.interval is None:
        return None
    return charts.bar(claim.number, claim.interval.low, claim.interval.high, scale)


def _share(view: "FilmView") -> KeyFigure:
    """Show the share that people's judgements give; without them, the one that the model expects."""
    words, judged, expected = view.words, view.judged_share, view.expected
    if judged is not None:
        what = words.say("corrected", positive=view.positive, n=judged.n)
        note = phrases.judged_share_note(judged, words)
        return KeyFigure(
            phrases.share_value(judged, words), phrases.share_ends(judged, words), _bar(judged), what, note
        )
    what = words.say("expected", positive=view.positive)
    value, ends = phrases.share_value(expected, words), phrases.share_ends(expected, words)
    if expected.number is None:
        return KeyFigure(value, "", None, what, phrases.no_share_sentence(expected, words))
    return KeyFigure(value, ends, _bar(expected), what, phrases.expected_note(expected, words))


def _passages(view: "FilmView") -> KeyFigure:
    """Show how many passages reach the threshold, and how many at the edges of their bands."""
    words, marked = view.words, view.marked_count
    what = words["segments_number"]
    if marked is None:
        has_threshold = view.model.calibration is not None and view.model.threshold_p is not None
        why = words["export_no_p"] if has_threshold else words["uncalibrated"]
        return KeyFigure("–", "", None, what, why)
    value = str(round(marked.number or 0))
    bar = _bar(marked, max(marked.n_listed, 1))
    return KeyFigure(value, phrases.count_ends(marked), bar, what, phrases.marked_note(marked, words))


def _auc(view: "FilmView") -> KeyFigure:
    """Show how well the model ranks moments within films left out of training."""
    words, shown = view.words, view.model_evidence
    return KeyFigure(
        phrases.number_value(shown, words),
        phrases.number_ends(shown, words),
        _bar(shown),
        words["within_auc"],
        phrases.evidence_note(shown, words),
    )
