"""Lay out the three figures of a film's page: the share of time, the number of passages, and the AUC."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from obygaze_film.claims import of_film, phrases
from obygaze_film.claims.kinds import FilmClaim, JudgedShare
from obygaze_film.page import charts

if TYPE_CHECKING:
    from obygaze_film.page.view import FilmView


class KeyFigure(NamedTuple):
    """A number at the top of a film's page.

    Attributes
    ----------
    value, interval : str
        The number and its interval; the interval may be empty.
    bar : dict or None
        Both as a bar (`charts.bar`); None without a number or an interval.
    what : str
        What the number is, as the text right under it.
    note : str
        What it rests on, or why there is none.
    """

    value: str
    interval: str
    bar: dict[str, str] | None
    what: str
    note: str


def key_figures(view: "FilmView") -> list[KeyFigure]:
    """Return the three figures of a film, in the order in which its page shows them."""
    share = _judged_share(view) if view.judge_claims else _expected_share(view)
    return [share, _passages(view), _auc(view)]


def _bar(claim: FilmClaim) -> dict[str, str] | None:
    """Place a claim's number and interval on an axis from 0 to 1, in percent; None without either of them."""
    if claim.number is None or claim.interval is None:
        return None
    return charts.bar(claim.number, claim.interval.low, claim.interval.high)


def _expected_share(view: "FilmView") -> KeyFigure:
    """Show the share of the film's time that the model expects to be positive, or why it expects none.

    The model expects none if too much of the film has no probability, for instance.
    """
    words, expected = view.words, view.expected_share
    value = phrases.share_value(expected, words)
    what = phrases.expected_what(expected, view.positive, words)
    if expected.number is None:
        note = phrases.no_share_sentence(expected, words)
        return KeyFigure(value, interval="", bar=None, what=what, note=note)
    interval = phrases.share_ends(expected, words)
    note = phrases.expected_note(expected, words)
    return KeyFigure(value, interval, bar=_bar(expected), what=what, note=note)


def _judged_share(view: "FilmView") -> KeyFigure:
    """Show the share by the judgements of the panel (all judges together), or of the only judge.

    If there are several judges and no share of the panel, each judge's own share is shown.
    """
    shares = [claim for claim in view.judge_claims if isinstance(claim, JudgedShare)]
    shares_of_panel = [claim for claim in shares if claim.is_of_panel]
    if shares_of_panel:
        return _one_share(shares_of_panel[0], view)
    if len(shares) == 1:
        return _one_share(shares[0], view)
    return _shares_of_judges(shares, view)


def _one_share(share: JudgedShare, view: "FilmView") -> KeyFigure:
    """Show a share of the film's time by judgements, of one judge or of all together (the panel).

    The note has what else is claimed of these judgements, such as the agreement of the judges.
    """
    words = view.words
    other_claims = [claim for claim in view.judge_claims if claim is not share]
    return KeyFigure(
        value=phrases.share_value(share, words),
        interval=phrases.share_ends(share, words),
        bar=_bar(share),
        what=phrases.judged_share_what(share, view.positive, words),
        note=phrases.judged_share_note(share, other_claims, words),
    )


def _shares_of_judges(shares: Sequence[JudgedShare], view: "FilmView") -> KeyFigure:
    """Make the figure of a film that has no share of all judges together: each judge's own share.

    The shares stand side by side, without intervals. The note has the intervals, and says why there is no
    share of all together: that is among the other claims on the judges.
    """
    words = view.words
    other_claims = [claim for claim in view.judge_claims if claim not in shares]
    return KeyFigure(
        value=phrases.shares_side_by_side(shares, words),
        interval="",
        bar=None,
        what=phrases.side_by_side_what(shares, view.positive, words),
        note=phrases.side_by_side_note(shares, other_claims, words),
    )


def _passages(view: "FilmView") -> KeyFigure:
    """Show how many passages reach the threshold.

    The note says how many would reach it if all probabilities were at the lower ends of their bands, and how
    many at the upper ends.
    """
    words = view.words
    # The claim on passages that reach the threshold. (The claim on marked passages is another one: there is
    # none for a film that the model was trained on.)
    reaching = of_film.reaching_passages(view.film, view.model, view.segments)
    if reaching is None:  # no window of the film has a probability: a dash stands for the number
        why = words.say("export_no_p", why=view.why_no_passage)
        return KeyFigure("–", interval="", bar=None, what=words["segments_number_none"], note=why)
    n_passages = round(reaching.number or 0)
    # "no passages", "passage" or "passages"
    key_of_number = {0: "segments_number_none", 1: "segments_number_one"}
    what = words[key_of_number.get(n_passages, "segments_number")]
    note = phrases.marked_note(reaching, words)
    return KeyFigure(phrases.count_value(reaching), interval="", bar=None, what=what, note=note)


def _auc(view: "FilmView") -> KeyFigure:
    """Show how well the model ranks clips within films left out of training: its AUC, with the interval.

    It is a property of the model, and not of this film.
    """
    words, auc = view.words, view.model_evidence
    return KeyFigure(
        value=phrases.number_value(auc, words),
        interval=phrases.number_ends(auc, words),
        bar=_bar(auc),
        what=_auc_meaning(view),
        note=phrases.evidence_note(auc, words),
    )


def _auc_meaning(view: "FilmView") -> str:
    """Say what the AUC measures: how well the model ranks positive scenes above those of the other levels."""
    words, model = view.words, view.model
    # A concept is present or not: there are no levels to name.
    if model.concept:
        return words.say("within_auc_concept", positive=view.positive)
    # Keys of `Calibration.clips` are the levels of the clips on which the model was tested.
    tested_levels = list(model.calibration.clips) if model.calibration is not None else []
    other_levels = [level for level in tested_levels if level not in model.positive]
    # The model's file does not tell which other levels there were.
    if not other_levels:
        return words["within_auc"]
    names = [words.translated(view.names.level(level)) for level in other_levels]
    return words.say("within_auc_levels", positive=view.positive, others=" / ".join(names))
