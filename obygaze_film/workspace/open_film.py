"""Hold a film that is open at the desk: its decisions, the user's copy of it, and the work that goes on."""

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Clip, Codebook, Manifest
from obygaze_film.film_time import is_enough_judged, seconds_inside
from obygaze_film.notes import Message, message
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import Decisions, state_of

if TYPE_CHECKING:
    from obygaze_features.store import Store
    from obygaze_film.claims import FilmClaim
    from obygaze_film.page.view import FilmView

Tell = Callable[[float], None]
"""A function that is called with the share of the work that is done, from 0 to 1."""

Note: TypeAlias = "FilmClaim | str"
"""What a job says at its end: a claim, a note (`Message`), or a text."""

NOTE_OF_DISK_ERROR: Final = {
    errno.ENOSPC: "disk_full",
    errno.EACCES: "disk_closed",
    errno.EPERM: "disk_closed",
    errno.EROFS: "disk_closed",
}
"""Number of an `OSError` -> the key of the note that explains it; `disk_other` explains all others."""


def message_of(error: Exception) -> Message:
    """Return an error's message as a note, which can be written in the reader's language.

    A message that was not written as a note is quoted in English.
    """
    if error.args and isinstance(error.args[0], Message):
        return error.args[0]
    if isinstance(error, OSError) and error.strerror:
        key = NOTE_OF_DISK_ERROR.get(error.errno or 0, "disk_other")
        return message(key, path=error.filename, error=error.strerror)
    return message("refused", error=str(error))


class Job:
    """Work in a thread of its own; a page asks from time to time how much of it is done.

    Before it begins, `share` and `notes` are None. While it runs, `share` is a number and `notes` are None.
    After it ended, both are there; after it failed, both are None and there is an `error`.

    Attributes
    ----------
    share : float or None
        Share of the work that is done, from 0 to 1; None before it begins and after it failed.
    error : str
        Why it failed; empty if it did not.
    notes : list of Note or None
        What it says at its end; None until then.
    """

    def __init__(self) -> None:
        self.share: float | None = None
        self.error = ""
        self.notes: list[Note] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the work has begun, and neither ended nor failed."""
        return self.share is not None and self.notes is None

    def begin(self, work: Callable[[Tell], list[Note]]) -> None:
        """Start the work in a thread, unless it is running; work that ended or failed is done again.

        Parameters
        ----------
        work : callable
            Does the work, and returns the notes to show at its end. Its argument is a function, which it
            calls with the share of the work that is done.
        """
        if self.is_running:
            return
        self.share = 0.0
        self.error = ""
        self.notes = None
        Thread(target=self._run, args=(work,), daemon=True).start()

    def _run(self, work: Callable[[Tell], list[Note]]) -> None:
        """Do the work; its end or its error is kept for the page, which would wait for ever otherwise."""
        try:
            self.notes = work(self._set_share)
        except (ObygazeError, OSError) as error:
            self._fail(message_of(error))
        except BaseException:  # a fault of obygaze, or no memory: the page is told, and the error is raised
            self._fail(message("work_failed"))
            raise

    def _set_share(self, share: float) -> None:
        self.share = share

    def _fail(self, error: str) -> None:
        self.share, self.error = None, error


@dataclass(eq=False)
class OpenFilm:
    """A film of the workspace.

    Attributes
    ----------
    number : int
        Its number in the addresses of its pages, from 0 on.
    timeline : Timeline
        The scored film.
    decisions : Decisions
        What people decided about it.
    path : Path or None
        The user's copy of the film.
    copying : Job
        Makes a copy that browsers play.
    described : dict
        Id of a decision and language -> the decision as the desk's script gets it (`pages._described`).
    """

    # What its pages, its pictures and its sound need is imported where it is used: the desk's address is
    # printed without it.

    number: int
    timeline: Timeline
    decisions: Decisions
    path: Path | None = None

    def __post_init__(self) -> None:
        self.copying = Job()
        self._state_when_opened = self.path and state_of(self.path)
        self.described: dict[tuple[str, str], dict[str, Any]] = {}  # by id and language
        self._views: dict[str, FilmView] = {}  # by language

    @property
    def lost(self) -> str:
        """A note if the user's copy was replaced or removed since the workspace was opened; else empty."""
        state = self.path and state_of(self.path)
        if state == self._state_when_opened:
            return ""
        return message("copy_replaced" if state else "copy_removed", path=self.path)

    @cached_property
    def for_browser(self) -> Path | None:
        """The file that browsers play: the user's copy, or a copy of that, which may still have to be made.

        None without a user's copy.
        """
        if self.path is None:
            return None
        from obygaze_film.workspace.proxy import needs_copy, proxy_path  # noqa: PLC0415 - slow

        return proxy_path(self.path) if needs_copy(self.path) else self.path

    @cached_property
    def media(self) -> dict[str, Path]:
        """Paths of the files of `media.MEDIA_TYPES`, made or not; empty without a user's copy."""
        if self.path is None or self.lost:
            return {}
        from obygaze_film.workspace.media import media_paths  # noqa: PLC0415 - slow

        return media_paths(self.path, self.timeline)

    @property
    def played(self) -> Path | None:
        """The file that the browser plays; None if there is none yet."""
        file = None if self.lost else self.for_browser
        return file if file and file.is_file() else None

    @property
    def is_unplayable(self) -> bool:
        """Whether there is a user's copy, but no file yet that browsers play (`played`)."""
        return self.path is not None and not self.lost and self.played is None

    @property
    def has_media(self) -> bool:
        """Whether the stills, colours and sound of the film are made (`media`)."""
        return bool(self.media) and self.media["media.json"].is_file()  # it is written last

    @cached_property
    def stream_type(self) -> str:
        """Media type of the stream that the film is encoded as while it plays; empty if there is none."""
        if self.path is None or self.lost:
            return ""
        from obygaze_film.workspace.streaming import stream_type  # noqa: PLC0415 - slow

        return stream_type(self.path)

    @cached_property
    def fps(self) -> float:
        """Frames per second of the user's copy; `DEFAULT_FPS` if that is not known."""
        from obygaze_features.video import probe  # noqa: PLC0415 - slow
        from obygaze_film.page.view_model import DEFAULT_FPS  # noqa: PLC0415 - slow

        film = probe(self.path) if self.path and not self.lost else None
        if film is None or not film.duration_s:
            return DEFAULT_FPS
        return round(film.frames / film.duration_s, 4)

    @cached_property
    def store(self) -> "Store | None":
        """The store that the film was scored from; None if it is not found near the scored film's folder."""
        from obygaze_film.film_stores import stores_near, windows_store  # noqa: PLC0415 - slow

        with suppress(ObygazeError):
            return windows_store(self.timeline, stores_near(self.decisions.folder, self.timeline))
        return None

    def probability_of(self, start_s: float, end_s: float) -> float | None:
        """Return the model's mean probability in a span, weighted by the seconds of each row in the span.

        None if too little of the span has a probability (`is_enough_judged`).
        """
        rows = self._rows
        seconds = seconds_inside(rows, start_s, end_s)  # [N rows]
        p = rows["p"].to_numpy(dtype=np.float64)
        is_used = (seconds > 0) & ~np.isnan(p)
        if not is_enough_judged(seconds[is_used], seconds):
            return None
        return float(np.average(p[is_used], weights=seconds[is_used]))

    @cached_property
    def _rows(self) -> pd.DataFrame:
        """The rows of the film by the model that decides."""
        return self.timeline.rows(self.timeline.model().key)

    def view(self, language: str = "en") -> "FilmView":
        """Return the content of the page in a language."""
        from obygaze_film.claims import Words  # noqa: PLC0415 - slow
        from obygaze_film.page.view import FilmView  # noqa: PLC0415 - slow

        if language not in self._views:
            self._views[language] = FilmView(self.timeline, f"f{self.number}", Words(language), top=20)
        return self._views[language]


class ShownJudgements(NamedTuple):
    """Judgements of a film, and a note on how many are hidden; the note is empty if none is."""

    clips: tuple[Clip, ...]
    note: str


def shown_judgements(film: OpenFilm) -> ShownJudgements:
    """Collect the judgements of a film that the person at the desk may see.

    Others' blind judgements are hidden until the person's own are finished, as the share of all would give
    them away. If the person's name is unknown, nobody knows which judgements are theirs: they see what every
    judge may see. If any blind judgement is hidden, only blind ones are shown.
    """
    decisions = film.decisions
    viewer = decisions.default_annotator  # empty if unknown
    places_seen = decisions.places_seen_by(viewer) if viewer else decisions.places_seen_by_all()
    hidden_ids = {*decisions.ids_hidden_from(viewer, places_seen)}
    if not hidden_ids:
        return ShownJudgements(decisions.judgements().clips, "")
    shown_clips = []
    for judgement_at in decisions.blind_judgements().values():
        shown_clips += [clip for clip in judgement_at.values() if clip.clip_id not in hidden_ids]
    shown = decisions.judgements(shown_clips)
    notice = message("films_hidden" if viewer else "films_unfinished", n=len(hidden_ids))
    note = message("note_of", movie=film.timeline.movie, notice=notice)
    return ShownJudgements(shown.clips, note)


class JudgementsOfFilms(NamedTuple):
    """Judgements of several films in one manifest, and by movie a note where some are hidden."""

    judged: Manifest
    notes: dict[str, str]


def shown_judgements_of(films: Iterable[OpenFilm], codebook: Codebook) -> JudgementsOfFilms:
    """Read the decisions on some films anew, and join the judgements that the person at the desk may see.

    Each film's ledger numbers its decisions by itself, so that ids of two films may be alike: in the manifest
    they begin with the film's number.
    """
    clips: list[Clip] = []
    notes: dict[str, str] = {}
    for film in films:
        film.decisions.refresh()
        shown = shown_judgements(film)
        clips += [replace(clip, clip_id=f"{film.number}-{clip.clip_id}") for clip in shown.clips]
        if shown.note:
            notes[film.timeline.movie] = shown.note
    return JudgementsOfFilms(Manifest(tuple(clips), Path(), codebook), notes)
