"""Hold a film that is open at the desk: its decisions, the user's copy of it, and the work that goes on."""

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from obygaze_features import video
from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Clip
from obygaze_film.film_time import is_enough, seconds_inside
from obygaze_film.notes import Said, said
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import Decisions, state_of

if TYPE_CHECKING:
    from obygaze_features.store import Store
    from obygaze_film.claims import FilmClaim
    from obygaze_film.page.view import FilmView

Tell = Callable[[float], None]
"""Gets the share of a work that is done."""

Note: TypeAlias = "FilmClaim | str"
"""What is to be said of a work: a claim, a note (`Said`), or a text."""


CLOSED = "disk_closed"
DISK: Final = {errno.ENOSPC: "disk_full", errno.EACCES: CLOSED, errno.EPERM: CLOSED, errno.EROFS: CLOSED}
"""Error of a disk that stops people in their work -> its note."""


def message_of(error: Exception) -> Said:
    """Return an error's message as a note, which can be written in the reader's language.

    A message that was not written as a note is quoted in English.
    """
    if error.args and isinstance(error.args[0], Said):
        return error.args[0]
    if isinstance(error, OSError) and error.strerror:
        return said(DISK.get(error.errno or 0, "disk_other"), path=error.filename, error=error.strerror)
    return said("refused", error=str(error))


class Job:
    """Work in a thread of its own, whose page asks how far it is.

    Attributes
    ----------
    share : float or None
        Of what is done; None where nobody began it, or it failed.
    error : str
    notes : list of Note or None
        What is to be said at its end.
    """

    def __init__(self) -> None:
        self.share: float | None = None
        self.error = ""
        self.notes: list[Note] | None = None

    def begin(self, work: Callable[[Tell], list[Note]]) -> None:
        """Do the work in a thread, unless it is going on; work that is done or failed is done again."""
        is_going_on = self.share is not None and self.notes is None
        if is_going_on:
            return
        self.share, self.error, self.notes = 0.0, "", None

        def run() -> None:
            try:
                self.notes = work(partial(setattr, self, "share"))
            except (ObygazeError, OSError) as error:
                self.share, self.error = None, message_of(error)
            finally:
                if self.notes is None and not self.error:  # a fault of ours, or no memory
                    self.share, self.error = None, said("work_failed")

        Thread(target=run, daemon=True).start()


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
    """

    # What its pages, its pictures and its sound need is imported where it is used: the desk's address is
    # printed without it.

    number: int
    timeline: Timeline
    decisions: Decisions
    path: Path | None = None

    def __post_init__(self) -> None:
        self.copying = Job()
        self._state = self.path and state_of(self.path)
        self.described: dict[tuple[str, str], dict[str, Any]] = {}  # by decision and language
        self._views: dict[str, FilmView] = {}

    @property
    def lost(self) -> str:
        """What became of the user's copy since the workspace was opened; empty if nothing."""
        now = self.path and state_of(self.path)
        if now == self._state:
            return ""
        return said("copy_replaced" if now else "copy_removed", path=self.path)

    @cached_property
    def for_browser(self) -> Path | None:
        """The user's copy where browsers play it, else where a copy of it that they play is, or would be."""
        if self.path is None:
            return None
        from obygaze_film.workspace.proxy import made_anew, proxy_path  # noqa: PLC0415 - slow

        is_played_as_it_is = made_anew(self.path) == "nothing"
        return self.path if is_played_as_it_is else proxy_path(self.path)

    @cached_property
    def media(self) -> dict[str, Path]:
        """Where stills, colours and peaks are, or will be; empty without a copy."""
        if self.path is None or self.lost:
            return {}
        from obygaze_film.workspace.media import media_paths  # noqa: PLC0415 - slow

        return media_paths(self.path, self.timeline)

    @property
    def played(self) -> Path | None:
        """The file that the browser plays; None without any."""
        file = None if self.lost else self.for_browser
        return file if file and file.is_file() else None

    @cached_property
    def streamed(self) -> str:
        """What kind of stream the film is encoded as while it plays; empty where it is played as it is."""
        if self.path is None or self.lost:
            return ""
        from obygaze_film.workspace.streaming import streamed_type  # noqa: PLC0415 - slow

        return streamed_type(self.path)

    @cached_property
    def fps(self) -> float:
        """Frames a second of the user's copy."""
        from obygaze_film.page.view_model import RATE  # noqa: PLC0415 - slow

        film = video.probe(self.path) if self.path and not self.lost else None
        return round(film.frames / film.duration_s, 4) if film and film.duration_s else RATE

    @cached_property
    def store(self) -> "Store | None":
        """The store that the film was scored from; None where it is not near the scored film."""
        from obygaze_film.film_stores import stores_near, windows_store  # noqa: PLC0415 - slow

        with suppress(ObygazeError):
            return windows_store(self.timeline, stores_near(self.decisions.folder, self.timeline))
        return None

    def probability_of(self, start_s: float, end_s: float) -> float | None:
        """Return the mean probability of a span, by duration; None where it has none."""
        rows = self._rows
        seconds, p = seconds_inside(rows, start_s, end_s), rows["p"].to_numpy(dtype=np.float64)
        inside = (seconds > 0) & ~np.isnan(p)
        if not is_enough(seconds[inside], seconds):
            return None
        return float(np.average(p[inside], weights=seconds[inside]))

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
    """Judgements of a film, and a note on how many are hidden; empty if none is."""

    clips: tuple[Clip, ...]
    note: str


def shown_judgements(film: OpenFilm) -> ShownJudgements:
    """Collect the judgements of a film that whoever decides at the desk may see.

    Others' blind judgements are hidden until their own are finished: a share of all would tell them. Of
    whoever has no name yet nobody knows which are their own: all are hidden while any judge is unfinished.
    """
    decisions = film.decisions
    who = decisions.who
    if not (decisions.hides(who) if who else decisions.has_unfinished):
        return ShownJudgements(decisions.judgements().clips, "")
    others = decisions.blind(any_definition=True)
    others.pop(who, None)
    own = decisions.judgements(decisions.blind().get(who, {}).values())
    n_hidden = sum(len(judged) for judged in others.values())
    notice = said("films_hidden" if who else "films_unfinished", n=n_hidden)
    note = said("note_of", movie=film.timeline.movie, notice=notice)
    return ShownJudgements(own.clips, note)
