"""Hold a film that is open at the desk: its decisions, the user's copy of it, and the work that goes on."""

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pandas as pd

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Clip, Codebook, Manifest
from obygaze_film.film_time import mean_probability
from obygaze_film.notes import Message, message
from obygaze_film.segments import LISTED
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
    """Return an error's message as a `Message`, which can be written in the reader's language."""
    # Our own errors about films have such a message.
    if error.args and isinstance(error.args[0], Message):
        return error.args[0]
    # Errors of the disk have a number.
    if isinstance(error, OSError) and error.strerror:
        key = "disk_other"
        if error.errno is not None:
            key = NOTE_OF_DISK_ERROR.get(error.errno, "disk_other")
        return message(key, path=error.filename, error=error.strerror)
    # The text of any other error is quoted in English.
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
        """Make a job whose work has not begun."""
        self.share: float | None = None  # that is done, from 0 to 1; None before the work and if it failed
        self.error = ""  # why it failed
        self.notes: list[Note] | None = None  # what the work says at its end; None until then

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
        """Do the work in this thread, then set `notes` or `error`: the page asks until there is either."""
        try:
            self.notes = work(self._set_share)
        except (ObygazeError, OSError) as error:
            self._fail(message_of(error))
        except BaseException:
            # A fault of obygaze, or no memory. Whatever it is, the page must not wait for ever.
            self._fail(message("work_failed"))
            raise

    def _set_share(self, share: float) -> None:
        """Set the share of the work that is done, from 0 to 1; the work calls this from its thread."""
        self.share = share

    def _fail(self, error: str) -> None:
        """Set the state of work that failed: it has no share, and an error that says why."""
        self.share = None
        self.error = error


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
        """Remember the state of the user's copy, by which `lost` notices later that it was replaced."""
        self.copying = Job()  # makes a copy that browsers play, if they don't play the film itself
        self._state_when_opened = None if self.path is None else state_of(self.path)
        # What was computed once and is kept
        self.described: dict[tuple[str, str], dict[str, Any]] = {}  # decisions, by id and language
        self._views: dict[str, FilmView] = {}  # what a page shows, by language

    @property
    def lost(self) -> str:
        """A note that the user's copy of the film was replaced or removed since the workspace was opened.

        Empty if it is as it was, or if there was none. A copy that is lost is neither played nor read.
        """
        state = None if self.path is None else state_of(self.path)
        if state == self._state_when_opened:
            return ""
        return message("copy_removed" if state is None else "copy_replaced", path=self.path)

    @cached_property
    def note_on_other_length(self) -> str:
        """A note that the user's copy is not as long as the film that was scored: scenes lie elsewhere in it.

        Empty if the copy is as long, or if there is no copy to compare: the user has none, or it is `lost`
        (its file is not there any more).
        """
        if self.path is None or self.lost:
            return ""
        from obygaze_film.film_videos import why_other_film  # noqa: PLC0415 - slow

        return why_other_film(self.path, self.timeline, [] if self.store is None else [self.store])

    @cached_property
    def for_browser(self) -> Path | None:
        """The file that browsers can play; it may still have to be made (`proxy.make_proxy`).

        It is the user's own copy of the film if browsers play that, else the path of a converted copy. None
        if the user has no copy of the film.
        """
        if self.path is None:
            return None
        from obygaze_film.workspace.proxy import needs_copy, proxy_path  # noqa: PLC0415 - slow

        return proxy_path(self.path) if needs_copy(self.path) else self.path

    @cached_property
    def media(self) -> dict[str, Path]:
        """Paths of the pictures and the sound curve that the desk shows of the film, by file name.

        The files (`media.MEDIA_TYPES`) may still have to be made. Empty without a user's copy, or if that was
        replaced or removed (`lost`).
        """
        if self.path is None or self.lost:
            return {}
        from obygaze_film.workspace.media import media_paths  # noqa: PLC0415 - slow

        return media_paths(self.path, self.timeline)

    @property
    def played(self) -> Path | None:
        """The file that the browser plays; None if there is none.

        It is the user's copy of the film, or what was made of it for browsers. There is none if nothing was
        made yet of a copy that browsers do not play, or if the copy was replaced or removed (`lost`).
        """
        if self.lost or self.for_browser is None:
            return None
        is_made = self.for_browser.is_file()
        return self.for_browser if is_made else None

    @property
    def is_unplayable(self) -> bool:
        """Whether the user's copy is there and not `lost`, but there is no file yet that browsers play."""
        return self.path is not None and not self.lost and self.played is None

    @property
    def has_media(self) -> bool:
        """Whether all files of `media` were made: the stills, the colours and the sound's peaks."""
        return bool(self.media) and self.media["media.json"].is_file()  # it is written last

    @cached_property
    def stream_type(self) -> str:
        """Media type of the stream by which the film is sent while it is encoded, such as `video/mp4; ...`.

        Empty if the film is not sent so. That is so if it can't be encoded, if browsers play it as it is, if
        its file is not known, or if the file was replaced or removed (`lost`).
        """
        if self.path is None or self.lost:
            return ""
        from obygaze_film.workspace.streaming import stream_type  # noqa: PLC0415 - slow

        return stream_type(self.path)

    @cached_property
    def fps(self) -> float:
        """Frames per second of the user's copy; a usual rate (`DEFAULT_FPS`) if that is not known."""
        from obygaze_features.video import probe  # noqa: PLC0415 - slow
        from obygaze_film.page.view_model import DEFAULT_FPS  # noqa: PLC0415 - slow

        if self.path is None or self.lost:
            return DEFAULT_FPS
        film = probe(self.path)
        if not film.duration_s:
            return DEFAULT_FPS
        return round(film.frames / film.duration_s, 4)

    @cached_property
    def store(self) -> "Store | None":
        """The store of features that the film was scored from; None if it is not near the film's folder."""
        from obygaze_film.film_stores import stores_near, windows_store  # noqa: PLC0415 - slow

        with suppress(ObygazeError):
            return windows_store(self.timeline, stores_near(self.decisions.folder, self.timeline))
        return None

    def probability_of(self, start_s: float, end_s: float) -> float | None:
        """Return the model's mean probability in a span; None if it has none (`mean_probability`)."""
        return mean_probability(self._rows, start_s, end_s)

    @cached_property
    def _rows(self) -> pd.DataFrame:
        """The rows of the film by its main model, whose scores the desk shows (`Timeline.model`)."""
        return self.timeline.rows(self.timeline.model().key)

    def view(self, language: str = "en") -> "FilmView":
        """Return what a page shows of the film, in a language; it is made only once."""
        from obygaze_film.claims import Words  # noqa: PLC0415 - slow
        from obygaze_film.page.view import FilmView  # noqa: PLC0415 - slow

        if language not in self._views:
            prefix_of_ids = f"f{self.number}"  # ids of several films on one page have to differ
            self._views[language] = FilmView(self.timeline, prefix_of_ids, Words(language), top=LISTED)
        return self._views[language]


class ShownJudgements(NamedTuple):
    """Judgements of a film, and a note on how many are hidden; the note is empty if none is."""

    clips: tuple[Clip, ...]
    note: str


def shown_judgements(film: OpenFilm) -> ShownJudgements:
    """Collect the judgements of a film that the person at the desk may see.

    Others' blind judgements are hidden until the person's own are finished: a share by all judgements would
    tell what the others judged. If any are hidden, all judgements with the score shown are left out too, and
    a note says how many are hidden.
    """
    decisions = film.decisions
    viewer = decisions.default_annotator  # the person who decided last; empty if that is not known

    # Judgements are hidden window by window. A window is named by its place in the random draw.
    if viewer:
        places_shown = decisions.places_shown_to(viewer)
        key_of_notice = "films_hidden"
    else:  # the name is unknown: only what every judge may see is shown
        places_shown = decisions.places_shown_to_all()
        key_of_notice = "films_unfinished"
    hidden_ids = set(decisions.ids_hidden_from(viewer, places_shown))
    if not hidden_ids:
        return ShownJudgements(decisions.judgements().clips, note="")

    # Some are hidden: only blind judgements that are not among them are shown.
    shown_clips = []
    for clip_at_place in decisions.blind_judgements().values():
        shown_clips += [clip for clip in clip_at_place.values() if clip.clip_id not in hidden_ids]
    shown = decisions.judgements(shown_clips)
    notice = message(key_of_notice, n=len(hidden_ids))
    note = message("note_of", movie=film.timeline.movie, notice=notice)
    return ShownJudgements(shown.clips, note)


class JudgementsOfFilms(NamedTuple):
    """Judgements of several films in one manifest, and by movie a note where some are hidden."""

    judged: Manifest
    notes: dict[str, str]


def shown_judgements_of(films: Iterable[OpenFilm], codebook: Codebook) -> JudgementsOfFilms:
    """Read the decisions on some films anew, and join the judgements that the person at the desk may see.

    Ids of decisions on two films may be equal: in the manifest they begin with the film's number.
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
