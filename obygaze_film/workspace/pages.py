"""Write the pages of the workspace: reading a film, judging windows of it blindly, comparing films."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from obygaze_features.manifest import SEEN_SCORE, import_spans
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import PLACE, correct_rate, judged_cells, least_judged, votes
from obygaze_film.page import charts
from obygaze_film.page.cards import timeline_position
from obygaze_film.page.phrases import SCRIPT, Words, clock
from obygaze_film.page.view import FilmView
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.anytime import anytime_interval
from obygaze_film.workspace.decisions import NOTES, Decisions
from obygaze_film.workspace.proxy import plays_in_browser, proxy_path
from obygaze_models.report import asset, json_data, page

AROUND_S = 15.0
"""Seconds shown before and after a window that is judged."""

TO_JUDGE = 40
"""Windows of a film that one is asked to judge, unless told otherwise."""

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
        if self.path is None or self.is_playable:
            return self.path
        return self.copy_path if self.copy_path.is_file() else None

    @cached_property
    def view(self) -> FilmView:
        """The content of the page."""
        return FilmView(self.timeline, f"f{self.number}", self.words, top=20)

    @cached_property
    def windows(self) -> list[tuple[float, float]]:
        """Windows in the order of the draw."""
        drawn = choose_next([self.timeline], 10**6, blind=True)
        return [(clip.start_s or 0.0, clip.end_s or 0.0) for clip in drawn]


def _asked_for(film: OpenFilm) -> list[str]:
    """List the concepts that a model of the film can perceive: no other is worth a tick beside its scores."""
    models, concepts = film.timeline.record.models, film.decisions.codebook.concepts
    perceived = {"", *(kind for model in models for kind in model.perceives)}
    known = all(model.perceives for model in models)
    return [each.name for each in concepts if not known or each.conveyed in perceived]


def _page(template: str, film: OpenFilm, mode: str, script: str, state: dict[str, Any], **values: Any) -> str:
    record, book = film.timeline.record, film.decisions.codebook
    rows = [row for name in (JUDGEMENTS, PASSAGES, NOTES) for row in film.decisions.rows[name]]
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
        who=rows[-1]["annotator"] if rows else "",
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
        view=view, depth=2, you=shown_decisions(film),
        folder=quote(str(film.decisions.folder)),
        texts=json_data({name: film.words[name] for name in SCRIPT}),
    )  # fmt: skip


def blind_page(film: OpenFilm) -> str:
    """Write the page on which windows are judged; it holds no score of the film."""
    script = asset("player.js", "obygaze_film.page") + asset("blind.js", "obygaze_film.page")
    n_windows = len(film.windows)
    return _page(
        "blind.html.j2", film, "blind", script, {"around": AROUND_S},
        n=min(TO_JUDGE, n_windows), n_windows=n_windows, least=min(10, n_windows),
    )  # fmt: skip


def shown_decisions(film: OpenFilm) -> list[dict[str, Any]]:
    """Describe what was decided in the film, in time order, for the tier "you" and the list."""
    positive, rows = film.timeline.model().positive, film.decisions.rows
    shown = []
    for name in (JUDGEMENTS, PASSAGES, NOTES):
        for row in rows[name]:
            if (
                row["movie"] != film.timeline.movie
                or not row["start_s"]
                or (name != NOTES and not row["level"])
            ):
                continue
            start, end = float(row["start_s"]), float(row["end_s"])
            kind = "note" if name == NOTES else "agree" if row["level"] in positive else "disagree"
            what = row["note"] if name == NOTES else f"{row['level']} {row['concepts']}".strip()
            concepts = [] if name == NOTES else row["concepts"].split(";")
            place = timeline_position(start, end, film.timeline.record.duration_s)
            shown.append({
                "kind": kind, "text": f"{clock(start)}–{clock(end)} {what} ({row['annotator']})",
                "own": name == PASSAGES, "who": row["annotator"], "concepts": concepts, **place,
            })  # fmt: skip
    return sorted(shown, key=lambda one: float(one["start"]))


def next_window(film: OpenFilm, who: str, n: int) -> dict[str, Any]:
    """Give the next window that somebody judges, or with `n` judged, the film's share.

    Returns
    -------
    dict
        `done`, and `window` (start, end, place) or `share`, a sentence; `sofar` a sentence on the interval
        that is valid at any time, once 10 are judged.
    """
    name = " ".join(who.split())
    judged = {
        int(row[PLACE])
        for row in film.decisions.rows[JUDGEMENTS]
        if row["annotator"] == name
        and row.get(SEEN_SCORE) == "0"
        and row.get(PLACE, "").isdecimal()
        and row["level"]
    }
    left = [place for place in range(1, len(film.windows) + 1) if place not in judged]
    answer: dict[str, Any] = {"done": len(judged)}
    if left and len(judged) < n:
        start, end = film.windows[left[0] - 1]
        answer["window"] = {"start": start, "end": end, "place": left[0]}
    answer |= _estimates(film, whole=len(judged) >= n)
    return answer


def _estimates(film: OpenFilm, *, whole: bool) -> dict[str, str]:
    """Say what the judgements so far tell of the film's share; of all who judged."""
    path = film.decisions.folder / JUDGEMENTS
    if not path.is_file():
        return {}
    judgements = import_spans(
        [path], film.decisions.folder, "judgements", codebook=film.decisions.codebook
    ).manifest
    cells, by_cell, _ = judged_cells(film.timeline, judgements)
    if len(by_cell) < least_judged(cells):
        return {}
    positive = " or ".join(film.timeline.model().positive)
    _, y, _ = votes(by_cell)
    share_of = dict(zip(sorted(by_cell), y.tolist(), strict=True))
    order = [cell for cell in cells.drawn(film.timeline.movie, 0) if cell in share_of]
    low, high = anytime_interval(cells, np.array(order), np.array([share_of[cell] for cell in order]))
    rate, _ = correct_rate(film.timeline, judgements)
    sofar = (
        f"{positive}: between {low:.0%} and {high:.0%} of the film, whenever you stop (95 %); "
        f"if this number had been fixed before, the interval would be {rate.high - rate.low:.0%} wide, "
        f"not {high - low:.0%}."
    )
    if not whole:
        return {"sofar": sofar}
    share = f"{positive}: {rate.value:.0%} of the film [{rate.low:.0%}, {rate.high:.0%}], 95 %"
    share += f", from {rate.n} windows."
    for pair in rate.agreement:
        kappa = "undefined" if pair.kappa is None else f"{pair.kappa:.2f}"
        if pair.low is not None and pair.high is not None:
            kappa += f" [{pair.low:.2f}, {pair.high:.2f}]"
        share += f" {' and '.join(pair.annotators)}: {pair.alike} of {pair.n} windows alike, kappa {kappa}."
    return {"sofar": sofar, "share": share}
