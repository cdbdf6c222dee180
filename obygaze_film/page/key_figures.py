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


def _bar(claim: FilmClaim) -> dict[str, str] | None:
    if claim.number is None or claim.interval is None:
        return None
    return charts.bar(claim.number, claim.interval.low, claim.interval.high)


def _share(view: "FilmView") -> KeyFigure:
    """Show the share that people's judgements give; without them, the one that the model expects."""
    words, judged, expected = view.words, view.judged_share, view.expected
    if judged is not None:
        what = words.say("corrected", positive=view.positive, n=judged.n)
        note = phrases.judged_share_note(judged, view.other_shares, words)
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
    is_one = marked is not None and marked.number == 1
    what = words["segments_number_one" if is_one else "segments_number"]
    if marked is None:
        why = words.say("export_no_p", why=view.why_no_cards)
        return KeyFigure("–", "", None, what, why)
    return KeyFigure(str(round(marked.number or 0)), "", None, what, phrases.marked_note(marked, words))


def _ranked(view: "FilmView") -> str:
    """Say which scenes the AUC sets apart: those of the levels that the model was tested on."""
    words, model = view.words, view.model
    tested = model.calibration.clips if model.calibration is not None else {}
    others = [level for level in tested if level not in model.positive]
    if not others:
        return words["within_auc"]
    return words.say("within_auc_levels", positive=view.positive, others=" / ".join(others))


def _auc(view: "FilmView") -> KeyFigure:
    """Show how well the model ranks moments within films left out of training."""
    words, shown = view.words, view.model_evidence
    return KeyFigure(
        phrases.number_value(shown, words),
        phrases.number_ends(shown, words),
        _bar(shown),
        _ranked(view),
        phrases.evidence_note(shown, words),
    )
