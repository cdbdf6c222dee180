"""Lay out the three figures of a film's page: the share of time, the number of passages, and the AUC."""

from typing import TYPE_CHECKING, NamedTuple

from obygaze_film.claims import phrases
from obygaze_film.claims.kinds import FilmClaim, JudgedShare
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
    words, expected = view.words, view.expected
    if view.judges:
        return _judged_share(view)
    what = phrases.expected_what(expected, view.positive, words)
    value, ends = phrases.share_value(expected, words), phrases.share_ends(expected, words)
    if expected.number is None:
        return KeyFigure(value, "", None, what, phrases.no_share_sentence(expected, words))
    return KeyFigure(value, ends, _bar(expected), what, phrases.expected_note(expected, words))


def _judged_share(view: "FilmView") -> KeyFigure:
    """Show the share of all judges together, or the only one; else each judge's own beside the others'."""
    words = view.words
    shares = [claim for claim in view.judges if isinstance(claim, JudgedShare)]
    together = [claim for claim in shares if claim.is_of_panel]
    if len(shares) > 1 and not together:
        rest = [claim for claim in view.judges if claim not in shares]
        return KeyFigure(
            phrases.shares_side_by_side(shares, words),
            "",
            None,
            phrases.side_by_side_what(shares, view.positive, words),
            phrases.side_by_side_note(shares, rest, words),
        )
    main = (together or shares)[0]
    rest = [claim for claim in view.judges if claim is not main]
    return KeyFigure(
        phrases.share_value(main, words),
        phrases.share_ends(main, words),
        _bar(main),
        phrases.judged_share_what(main, view.positive, words),
        phrases.judged_share_note(main, rest, words),
    )


def _passages(view: "FilmView") -> KeyFigure:
    """Show how many passages reach the threshold, and how many at the edges of their bands."""
    words, marked = view.words, view.marked_count
    n = 0 if marked is None else round(marked.number or 0)
    what = words[{0: "segments_number_none", 1: "segments_number_one"}.get(n, "segments_number")]
    if marked is None:
        why = words.say("export_no_p", why=view.why_no_cards)
        return KeyFigure("–", "", None, what, why)
    return KeyFigure(phrases.count_value(marked), "", None, what, phrases.marked_note(marked, words))


def _ranked(view: "FilmView") -> str:
    """Say which scenes the AUC sets apart: those of the levels that the model was tested on."""
    words, model = view.words, view.model
    tested = model.calibration.clips if model.calibration is not None else {}
    if model.concept:
        return words.say("within_auc_concept", positive=view.positive)
    others = [level for level in tested if level not in model.positive]
    if not others:
        return words["within_auc"]
    names = [words.again(view.names.level(level)) for level in others]
    return words.say("within_auc_levels", positive=view.positive, others=" / ".join(names))


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
