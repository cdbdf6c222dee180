"""Write the pages of the workspace: reading a film, judging windows of it blindly, comparing films."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from statistics import median
from typing import Any

import numpy as np

from obygaze_features.manifest import SEEN_SCORE, Clip
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import correct_rate, judged_cells, least_judged, votes
from obygaze_film.page import charts
from obygaze_film.page.cards import timeline_position
from obygaze_film.page.phrases import SCRIPT, Words, clock
from obygaze_film.page.view import FilmView
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.anytime import anytime_interval
from obygaze_film.workspace.decisions import Decisions, state_of
from obygaze_film.workspace.proxy import plays_in_browser, proxy_path
from obygaze_models.report import asset, json_data, page

AROUND_S = 15.0
"""Seconds shown before and after a window that is judged."""

MOST_NAMED = 3
"""Pairs of judges whose agreement is told one by one."""

SOURCES = {"connect-src": "'self'", "media-src": "'self'"}


@dataclass(eq=False)
class OpenFilm:
    """A film of the workspace.

    Attributes
    ----------
    number : int
        In the addresses.
    timeline, decisions
    path : Path or None
        The user's copy.
    copied : float or None
        Share of the copy for the browser that is made; None where nobody asked for one.
    """

    number: int
    timeline: Timeline
    decisions: Decisions
    path: Path | None = None
    copied: float | None = None
    copy_error: str = ""
    words: Words = field(default_factory=lambda: Words("en"))

    def __post_init__(self) -> None:
        self._state = self.path and state_of(self.path)
        self.described: dict[str, dict[str, Any]] = {}

    @property
    def lost(self) -> str:
        """What became of the user's copy since the workspace was opened; empty if nothing."""
        now = self.path and state_of(self.path)
        if now == self._state:
            return ""
        return (
            f"{self.path} was {'replaced' if now else 'removed'} meanwhile: start 'obygaze film open' again"
        )

    @cached_property
    def is_playable(self) -> bool:
        """Whether browsers play the user's copy itself."""
        return self.path is not None and plays_in_browser(self.path)

    @property
    def copy_path(self) -> Path:
        """Where the copy for the browser is, or would be."""
        if self.path is None:
            raise FilmError("no film was given: add --film")
        return proxy_path(self.path)

    @property
    def played(self) -> Path | None:
        """The file that the browser plays; None without any."""
        if self.path is None or self.lost:
            return None
        if self.is_playable:
            return self.path
        return self.copy_path if self.copy_path.is_file() else None

    @cached_property
    def view(self) -> FilmView:
        """The content of the page."""
        return FilmView(self.timeline, f"f{self.number}", self.words, top=20)


def _asked_for(film: OpenFilm) -> list[str]:
    """List the concepts that a model of the film can perceive: no other is worth a tick beside its scores."""
    models, concepts = film.timeline.record.models, film.decisions.codebook.concepts
    perceived = {"", *(kind for model in models for kind in model.perceives)}
    known = all(model.perceives for model in models)
    return [each.name for each in concepts if not known or each.conveyed in perceived]


def _page(template: str, film: OpenFilm, mode: str, script: str, state: dict[str, Any], **values: Any) -> str:
    record, book = film.timeline.record, film.decisions.codebook
    film.decisions.refresh()
    return page(
        template,
        asset("film.css", "obygaze_film.page") + asset("workspace.css", "obygaze_film.page"),
        script,
        package="obygaze_film.page",
        sources=SOURCES,
        title=record.title,
        language="en",
        mode=mode,
        film=film,
        record=record,
        who=film.decisions.who,
        levels=book.levels,
        concepts=_asked_for(film),
        clock=clock,
        charts=charts,
        w=film.words,
        state=json_data(state | {"levels": book.level_names, "whole": record.duration_s}),
        **values,
    )


def read_page(film: OpenFilm) -> str:
    """Write the page of a film with its player, for reading and marking."""
    view = film.view
    digest = view.model.sha256[:12] or view.model.key
    cited = (
        f"{film.timeline.record.title} ({film.timeline.record.year or 'n.d.'}), {{0}}–{{1}}. Model {digest}, "
        f"obygaze {version('obygaze')}, {datetime.now(UTC):%Y-%m-%d}."
    )
    passages = [
        {"rank": card["rank"], "start": float(card["start"]), "end": float(card["end"])}
        for card in view.cards
    ]
    return _page(
        "read.html.j2", film, "read",
        "".join(asset(f"{name}.js", "obygaze_film.page") for name in ("timeline", "player", "read")),
        {"cited": cited, "passages": passages},
        view=view, depth=2, you=shown_decisions(film, film.decisions.who),
        folder=quote(str(film.decisions.folder)),
        texts=json_data({name: film.words[name] for name in SCRIPT}),
    )  # fmt: skip


def blind_page(film: OpenFilm) -> str:
    """Write the page on which windows are judged; it holds no score of the film."""
    script = asset("player.js", "obygaze_film.page") + asset("blind.js", "obygaze_film.page")
    n_windows, fixed = len(film.decisions.windows), film.decisions.fixed_by(film.decisions.who)
    return _page(
        "blind.html.j2", film, "blind", script, {"around": AROUND_S},
        n=min(fixed, n_windows), n_windows=n_windows, least=min(10, n_windows),
    )  # fmt: skip


def shown_decisions(film: OpenFilm, who: str) -> list[dict[str, Any]]:
    """Describe what was decided in the film, in time order, for the tier "you" and the list.

    Others' blind judgements are left out until those of `who` are finished.
    """
    decisions, shown = film.decisions, []
    conflicts, is_hidden = decisions.conflicts(), decisions.hides(who)
    for kind, clips in decisions.kept.items():
        for clip in clips:
            blind = clip.extras.get(SEEN_SCORE) == "0" and clip.annotator != who
            if (
                clip.movie != film.timeline.movie
                or not (clip.level or kind == "note")
                or (blind and is_hidden)
            ):
                continue
            if clip.clip_id not in film.described:
                film.described[clip.clip_id] = _described(film, kind, clip)
            one = film.described[clip.clip_id]
            shown.append(one | {"text": f"{one['text']}{BESIDE * (clip.clip_id in conflicts)}"})
    return sorted(shown, key=lambda one: float(one["start"]))


BESIDE = ": stands beside another decision in its place; decide again"


def _described(film: OpenFilm, kind: str, clip: Clip) -> dict[str, Any]:
    start, end = clip.start_s or 0.0, clip.end_s or 0.0
    what = clip.extras.get("note") or f"{clip.level} {';'.join(clip.concepts)}".strip()
    agrees = "agree" if clip.level in film.timeline.model().positive else "disagree"
    return {
        "kind": "note" if kind == "note" else agrees, "own": kind == "passage",
        "text": f"{clock(start)}–{clock(end)} {what} ({clip.annotator})",
        "who": clip.annotator, "concepts": clip.concepts,
        **timeline_position(start, end, film.timeline.record.duration_s),
    }  # fmt: skip


def next_window(film: OpenFilm, who: str, n: int, *, tell: bool = False) -> dict[str, Any]:
    """Give the next window that somebody judges, or with `n` judged, the film's share.

    Parameters
    ----------
    tell : bool
        Whether to tell the interval so far.

    Returns
    -------
    dict
        `done`, and `window` (start, end, place) or `share`, a sentence; `sofar` a sentence on the interval
        that is valid at any time, once 10 are judged: of their own judgements until they are finished.
    """
    decisions = film.decisions
    decisions.refresh()
    name = " ".join(who.split())
    judged = decisions.blind().get(name, {})
    left = next((place for place in range(1, len(decisions.windows) + 1) if place not in judged), 0)
    answer: dict[str, Any] = {"done": len(judged)}
    if left and len(judged) < n:
        start, end = decisions.windows[left - 1]
        answer["window"] = {"start": start, "end": end, "place": left}
    if tell or "window" not in answer:
        answer |= _estimates(film, name, whole=len(judged) >= n)
    return answer


def _estimates(film: OpenFilm, who: str, *, whole: bool) -> dict[str, str]:
    """Say what the judgements so far tell of the film's share; of all who judged, once one's own are done."""
    blind = film.decisions.blind()
    seen = [blind.get(who, {})] if film.decisions.hides(who) else blind.values()
    judgements = film.decisions.judgements(clip for judged in seen for clip in judged.values())
    cells, by_cell, _ = judged_cells(film.timeline, judgements)
    if len(by_cell) < least_judged(cells):
        return {}
    positive = " or ".join(film.timeline.model().positive)
    _, y, _ = votes(by_cell)
    share_of = dict(zip(sorted(by_cell), y.tolist(), strict=True))
    order = [cell for cell in cells.drawn(film.timeline.movie, 0) if cell in share_of]
    low, high = anytime_interval(cells, np.array(order), np.array([share_of[cell] for cell in order]))
    rate, notices = correct_rate(film.timeline, judgements)
    sofar = (
        f"{positive}: between {low:.0%} and {high:.0%} of the film, whenever you stop (95 %); "
        f"if this number had been fixed before, the interval would be {rate.high - rate.low:.0%} wide, "
        f"not {high - low:.0%}."
    )
    if not whole:
        return {"sofar": sofar}
    share = f"{positive}: {rate.value:.0%} of the film [{rate.low:.0%}, {rate.high:.0%}], 95 %"
    share += f", from {rate.n} windows."
    for pair in rate.agreement[:MOST_NAMED]:
        kappa = "undefined" if pair.kappa is None else f"{pair.kappa:.2f}"
        if pair.low is not None and pair.high is not None:
            kappa += f" [{pair.low:.2f}, {pair.high:.2f}]"
        share += f" {' and '.join(pair.annotators)}: {pair.alike} of {pair.n} windows alike, kappa {kappa}."
    kappas = sorted(pair.kappa for pair in rate.agreement if pair.kappa is not None)
    if len(rate.agreement) > MOST_NAMED and kappas:
        between = f"{kappas[0]:.2f} to {kappas[-1]:.2f}, median {median(kappas):.2f}"
        share += f" Kappa of {len(kappas)} pairs: {between}."
    return {"sofar": sofar, "share": " ".join([share, *(f"{line}." for line in notices if "pairs" in line)])}
