"""Serve scored films, the user's copies and their decisions, to the user's browser on this machine alone."""

import math
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Subtitle, write_vtt
from obygaze_film.claims import LANGUAGES, FilmClaim, Words, sentence
from obygaze_film.errors import FilmError
from obygaze_film.exchange.registry import FORMATS, collect
from obygaze_film.notes import message
from obygaze_film.page import modules
from obygaze_film.page.figure_pdf import can_write_pdf, figure_pdf
from obygaze_film.page.figures import film_figure
from obygaze_film.page.view_model import minutes_data
from obygaze_film.schema import UNREADABLE
from obygaze_film.workspace.decisions import KINDS as KINDS_OF_DECISION
from obygaze_film.workspace.entry import ENTRY, REDIRECTING_PAGE, Secrets
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.ledger_lines import Line
from obygaze_film.workspace.media import MEDIA_TYPES, StillSheet
from obygaze_film.workspace.open_film import Job, Note, OpenFilm, Tell, message_of
from obygaze_film.workspace.pages import (
    decision_text,
    desk_page,
    drawn_decisions,
    next_window,
    shown_decisions,
    visible_decisions,
)
from obygaze_film.workspace.proxy import make_proxy
from obygaze_film.workspace.rules import name_of
from obygaze_film.workspace.streaming import FilmStream
from obygaze_models.report import asset

MAX_BODY: Final = 1 << 16
"""Maximum size of a request to decide something, in bytes."""

MAX_DIGITS_OF_PLAN: Final = 6
"""Maximum number of digits of the number of windows that a person plans to judge: no film has a million."""

MODES: Final = ("read", "blind")
"""Modes of the desk: `blind` hides all scores."""

FIGURE_TYPES: Final = {"svg": "image/svg+xml", "pdf": "application/pdf"}
"""Format of a figure -> its media type."""

Learning = Callable[[Tell], list[Note]]
"""Learns from what was decided, tells the share that is done, and returns notes on what came of it."""

COOKIE = "obygaze"
"""Name of the cookie that a browser has after it entered."""

HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",  # the pages themselves say the rest
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_NUMBER = re.compile("[0-9]{1,6}")
"""Number of a film in an address."""


class OnlyOwner:
    """Middleware that lets in only the user's browser, at this address and from its own pages.

    A request with a wrong `Host` came by another site's name that was pointed to this machine (DNS
    rebinding). A request that writes and has a wrong `Origin`, or none, came from no page of this server.

    Parameters
    ----------
    app : ASGIApp
        Answers the requests that are let in.
    keys : Secrets
    port : int
        The port that the server listens on.
    """

    def __init__(self, app: ASGIApp, keys: Secrets, port: int) -> None:
        """Guard an application that listens on a port of this machine."""
        self.app = app
        self.keys = keys  # the secrets by which the user's browser is known
        self.own_hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with status 403; either answer gets the security headers."""
        if scope["type"] != "http":  # the workspace has no other connections, such as web sockets
            return

        async def send_guarded(message: Message) -> None:
            """Send a part of the answer; its first part gets the headers."""
            if message["type"] == "http.response.start":
                message["headers"] += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        answer = self._answer(Request(scope))  # an application, which sends the answer
        await answer(scope, receive, send_guarded)

    def _answer(self, request: Request) -> ASGIApp:
        """Choose what answers a request: a refusal, the page that gives the cookie, or the application."""
        # It came by another site's name that was pointed to this machine (DNS rebinding).
        host = request.headers.get("host", "")
        if host not in self.own_hosts:
            return PlainTextResponse("not this address", 403)
        # It writes, and a page of another site sent it (cross-site request forgery).
        is_writing = request.method not in {"GET", "HEAD"}
        is_from_own_page = request.headers.get("origin") == f"http://{host}"
        if is_writing and not is_from_own_page:
            return PlainTextResponse("not from this page", 403)

        # It is the first one, for the address that was printed for the user.
        if self._has_token(request):
            self.keys.token = ""  # it is valid once
            return self._entry_page()
        # It is a later one.
        if self._has_cookie(request):
            return self.app
        # It has neither, as in a second browser: the page says that the printed address opens once only.
        return PlainTextResponse(Words(_language(request))["desk_once"], 403)

    # Secrets are compared in constant time, so that nobody can guess them character by character.
    def _has_token(self, request: Request) -> bool:
        """Whether a request is for the address with the token (`ENTRY`), and the token was not used yet."""
        given_token = request.url.path.removeprefix(ENTRY)
        may_enter = request.method == "GET" and self.keys.token != ""
        return may_enter and secrets.compare_digest(given_token.encode(), self.keys.token.encode())

    def _has_cookie(self, request: Request) -> bool:
        """Whether a request comes with the cookie."""
        given_cookie = request.cookies.get(COOKIE, "")
        return secrets.compare_digest(given_cookie.encode(), self.keys.cookie.encode())

    def _entry_page(self) -> Response:
        """Return the page that gives the cookie to the browser and leads it to the workspace.

        An HTTP redirect would not do: browsers do not send a strict cookie along a redirect if the first
        address was opened from another site or program.
        """
        path = f"/{self.keys.path}/"
        answer = HTMLResponse(REDIRECTING_PAGE.format(path))
        answer.set_cookie(COOKIE, self.keys.cookie, path=path, httponly=True, samesite="strict")
        return answer


class DecisionRequest(msgspec.Struct):
    """What a page asks to decide.

    The names in the request that differ from these are `who` and `windows`.

    Attributes
    ----------
    kind
        `delete`, `undo`, `redo`, or the kind of a new decision, to which the fields from `start_s` on belong
        (`Decisions.keep`).
    annotator
        Who decides.
    id
        Id of the decision to delete, or which the new decision changes; empty if there is none.
    n_planned
        How many windows the person plans to judge blindly.
    """

    kind: Literal["judgement", "passage", "note", "agreed", "delete", "undo", "redo"]
    annotator: str = msgspec.field(default="", name="who")
    id: str = ""
    start_s: float = 0.0
    end_s: float = 0.0
    level: str = ""
    concepts: tuple[str, ...] = ()
    note: str = ""
    origin: str = "own"
    place: int = 0
    n_planned: int = msgspec.field(default=0, name="windows")
    parents: tuple[str, ...] = ()
    mode: str = ""


class Workspace:
    """Answers the requests for pages of the workspace; methods that are not async run in threads.

    Parameters
    ----------
    films : sequence of OpenFilm
        The films. Learning adds films scored by the new model at its end.
    comparison_page : callable
        Returns the page that compares the films, in a language.
    learning : callable or None
        Learns from what was decided; None if the workspace can't learn.
    """

    def __init__(
        self,
        films: Sequence[OpenFilm],
        comparison_page: Callable[[str], str],
        learning: Learning | None = None,
    ) -> None:
        """Answer for these films; `app` makes the application that a server runs."""
        self.films = films  # learning adds films to them
        self.comparison_page = comparison_page  # language -> the page that compares the films
        self.learning = learning  # the work; None if the workspace can't learn
        self.learning_job = Job()  # runs that work, and says how much of it is done

    def app(self, keys: Secrets, port: int) -> Starlette:
        """Make the application of a server that was started with these secrets and listens on this port.

        It answers each address by the method of this class that stands beside it here.
        """
        film = "/film/{number}"  # beginning of all addresses of a film
        compressed = [Middleware(GZipMiddleware)]  # pages and scripts; pictures are compressed already
        routes = [
            Route("/", self.first),
            Route("/films", self.comparison, middleware=compressed),
            Route("/desk/{name}.js", self.script, middleware=compressed),
            Route(f"{film}/video", self.video),
            Route(f"{film}/stream", self.stream),
            Route(f"{film}/captions.vtt", self.captions),
            Route(f"{film}/span", self.span),
            Route(f"{film}/decisions", self.decisions),
            Route(f"{film}/next", self.window_to_judge),
            Route(f"{film}/minutes", self.minutes),
            Route(f"{film}/decide", self.decide, methods=["POST"]),
            Route(f"{film}/copy", self.copy, methods=["GET", "POST"]),
            Route(f"{film}/learn", self.learn, methods=["GET", "POST"]),
            Route(f"{film}/export/{{name}}", self.export, middleware=compressed),
        ]
        # Each of these methods answers several addresses, and reads from the last part which one is meant.
        routes += [Route(f"{film}/{mode}", self.desk, name=mode, middleware=compressed) for mode in MODES]
        routes += [Route(f"{film}/figure.{kind}", self.figure, name=kind) for kind in FIGURE_TYPES]
        routes += [Route(f"{film}/{name}", self.media, name=name) for name in MEDIA_TYPES]
        # Errors for users are answered with their message, not as faults of the server.
        errors_for_users = (ObygazeError, OSError, *UNREADABLE)
        return Starlette(
            routes=[Mount(f"/{keys.path}", routes=routes)],
            middleware=[Middleware(OnlyOwner, keys=keys, port=port)],
            exception_handlers=dict.fromkeys(errors_for_users, _refused),
        )

    def film(self, request: Request) -> OpenFilm:
        """Find the film that an address names by its number; answer 404 if there is none."""
        text = str(request.path_params["number"])
        if not _NUMBER.fullmatch(text) or int(text) >= len(self.films):
            raise HTTPException(404, "no such film")
        return self.films[int(text)]

    def first(self, _: Request) -> Response:
        """Lead to the only film, or to the page of all films if there are several."""
        return RedirectResponse("film/0/read" if len(self.films) == 1 else "films", 303)

    def comparison(self, request: Request) -> Response:
        """Show the page that compares the films."""
        return HTMLResponse(self.comparison_page(_language(request)))

    def desk(self, request: Request) -> Response:
        """Show the desk of a film, in the mode that the address ends with."""
        page = desk_page(
            self.films,
            self.film(request),
            mode=_last_part(request),
            language=_language(request),
            viewer=_name_typed(request),
            learns=self.learning is not None,
        )
        return HTMLResponse(page)

    def script(self, request: Request) -> Response:
        """Send a module of the desk's script."""
        name = request.path_params["name"]
        if name not in modules.DESK:
            raise HTTPException(404, "no such script")
        return Response(asset(f"{name}.js", "obygaze_film.page"), media_type="text/javascript")

    def media(self, request: Request) -> Response:
        """Send stills, colours or sound peaks of the film; an empty answer until they are made."""
        name = _last_part(request)
        path = self.film(request).media.get(name)
        if path is None:  # there is no copy of the film to make them of
            return Response(status_code=404)
        if not path.is_file():  # they are being made
            return Response(status_code=204)
        return FileResponse(path, media_type=MEDIA_TYPES[name])

    def captions(self, request: Request) -> Response:
        """Send the film's subtitles, as captions for the player."""
        lines = self.film(request).timeline.subtitles[["start_s", "end_s", "text"]]
        cues = [Subtitle(*row) for row in lines.itertuples(index=False, name=None)]
        return Response(write_vtt(cues, title="", notes=[]), media_type="text/vtt")

    def span(self, request: Request) -> Response:
        """Describe what the model sees in a span, what is said there, and which spans are similar."""
        film = self.film(request)
        words = Words(_language(request))
        start_s, end_s = _span_in_query(request)
        return JSONResponse(span_evidence(film, self.films, start_s, end_s, words))

    def minutes(self, request: Request) -> Response:
        """Send the timeline minute by minute, for a table."""
        view = self.film(request).view(_language(request))
        return JSONResponse(minutes_data(view.minutes, view))

    def figure(self, request: Request) -> Response:
        """Draw a span as a figure for an article: SVG, or PDF if matplotlib is installed."""
        film = self.film(request)
        _, _, file_format = request.url.path.rpartition(".")
        if file_format == "pdf" and not can_write_pdf():
            raise HTTPException(404, "PDF needs matplotlib: pip install 'obygaze[figures]'")
        start_s, end_s = _span_in_query(request)
        view = film.view(_language(request))
        decisions = drawn_decisions(film, _viewer(request), view.words)
        stills = StillSheet(film.media) if film.has_media else None
        svg = film_figure(view, start_s, end_s, decisions, stills)
        content = figure_pdf(svg) if file_format == "pdf" else svg
        return Response(content, media_type=FIGURE_TYPES[file_format])

    def decisions(self, request: Request) -> Response:
        """List the decisions anew for a desk that is open: others may have decided meanwhile."""
        film = self.film(request)
        film.decisions.refresh()
        is_blind = request.query_params.get("mode") == "blind"
        words = Words(_language(request))
        visible = visible_decisions(film, _viewer(request), blind=is_blind, words=words)
        return JSONResponse(visible)

    def video(self, request: Request) -> Response:
        """Send the film, or the part of it that the browser asks for."""
        film = self.film(request)
        words = Words(_language(request))
        path = film.played
        if path is None:
            raise HTTPException(404, words.translated(film.lost) or words["desk_cannot_play"])
        return FileResponse(path)

    def stream(self, request: Request) -> Response:
        """Send the film from the time `t` in seconds on, encoded while the browser reads it."""
        film = self.film(request)
        can_be_streamed = film.stream_type != "" and not film.lost
        if film.path is None or not can_be_streamed:
            raise HTTPException(404, "this film is not encoded while it plays")
        stream = FilmStream(film.path, _time_in_query(request))
        headers = {"x-start": str(round(stream.start_s, 6))}
        return StreamingResponse(stream.chunks(), media_type="video/mp4", headers=headers)

    def window_to_judge(self, request: Request) -> Response:
        """Return the next window to judge blindly (`pages.next_window`).

        The query has `who` (the person's name), `n` (how many windows they plan to judge) and, if the share
        is to be told before they are finished, `tell`.
        """
        film = self.film(request)
        words = Words(_language(request))
        query = request.query_params
        n = query.get("n", "")
        n_planned = 0  # as if no number was given
        if n.isdecimal() and len(n) <= MAX_DIGITS_OF_PLAN:
            n_planned = int(n)
        answer = next_window(
            film,
            query.get("who", ""),
            n_planned,
            words,
            tells_share="tell" in query,
            open_films=self.films,
        )
        return JSONResponse(answer)

    async def decide(self, request: Request) -> Response:
        """Do what the desk asks with a film's decisions; answer with notices and the decisions as they are.

        The keys of the answer are those of `_carry_out` and of `visible_decisions`.
        """
        film = self.film(request)
        words = Words(_language(request))
        decision_request = msgspec.json.decode(await _body(request), type=DecisionRequest)
        answer = _carry_out(film, decision_request, words)
        answer["said"] = "; ".join([answer["said"], *_take_notices(film, words)])
        is_blind = decision_request.mode == "blind"
        visible = visible_decisions(film, name_of(decision_request.annotator), blind=is_blind, words=words)
        return JSONResponse(answer | visible)

    def copy(self, request: Request) -> Response:
        """Begin the copy of the film that the browser plays (POST), or say how much of it is made (GET)."""
        film = self.film(request)
        if request.method == "POST":
            _begin_copy(film)
        # The copy may be there from before, without a job.
        progress = _progress(film.copying, request) | {"done": film.played is not None}
        return JSONResponse(progress)

    def learn(self, request: Request) -> Response:
        """Begin to learn from what was decided (POST), or say how much of that is done (GET).

        `film` in the answer is the number of the film as it was scored last.
        """
        movie = self.film(request).timeline.movie
        if self.learning is None:
            raise HTTPException(404, "no corpus was given: film open --learn MANIFEST STORE")
        if request.method == "POST":
            self.learning_job.begin(self.learning)
        # The progress is read before the films: if learning is done, the film that it scored is among them.
        progress = _progress(self.learning_job, request)
        newest_number = max(film.number for film in self.films if film.timeline.movie == movie)
        return JSONResponse(progress | {"film": newest_number})

    def export(self, request: Request) -> Response:
        """Send the decisions that a person may see as a file.

        The address ends with a kind of decisions (`KINDS_OF_DECISION`), which are sent as a table, or with a
        format (`FORMATS`). A file of a format has all kinds, and what the models found.
        """
        film = self.film(request)
        name = request.path_params["name"]
        shown_ids = {described["id"] for described in shown_decisions(film, _viewer(request))}
        if name in KINDS_OF_DECISION:
            table = film.decisions.table(name, shown_ids)
            return Response(table, media_type="text/csv")
        if name in FORMATS:
            people = film.decisions.decided(shown_ids)
            exported = collect(film.timeline, name, people=people)
            return Response(FORMATS[name].file_of(exported))
        raise HTTPException(404, "no such export")


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that failed with the error's message, in the language of the browser."""
    return JSONResponse({"said": Words(_language(request)).translated(message_of(error))}, 400)


def _last_part(request: Request) -> str:
    """Return the last part of an address's path, such as `read` or `stills.webp`."""
    return request.url.path.rpartition("/")[2]


def _viewer(request: Request) -> str:
    """Return the name of the person at the desk, as the address states it; may be empty."""
    return name_of(request.query_params.get("who", ""))


def _name_typed(request: Request) -> str:
    """Return the name that was typed at the desk last, which its script keeps in a cookie; may be empty."""
    return name_of(unquote(request.cookies.get("who", "")))


def _span_in_query(request: Request) -> tuple[float, float]:
    """Read the start and end in seconds of the span that is asked for: `a` and `b` in the address."""
    query = request.query_params
    try:
        start_s = float(query.get("a", ""))
        end_s = float(query.get("b", ""))
    except ValueError:
        raise FilmError("expected the ends of a span in seconds: ?a=12.5&b=20") from None
    if not 0 <= start_s < end_s < math.inf:
        raise FilmError(f"{start_s:g} to {end_s:g} s is no span of a film")
    return start_s, end_s


def _time_in_query(request: Request) -> float:
    """Read the time in seconds from which on the film is asked for: `t` in the address."""
    try:
        start_s = float(request.query_params.get("t", ""))
    except ValueError:
        raise FilmError("expected a time in seconds: ?t=12.5") from None
    if not 0 <= start_s < math.inf:
        raise FilmError(f"{start_s:g} s is no time of a film")
    return start_s


async def _body(request: Request) -> bytes:
    """Read the body of a request; raise FilmError if it is longer than `MAX_BODY`."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise FilmError(message("too_long"))
    return body


def _take_notices(film: OpenFilm, words: Words) -> list[str]:
    """Take the notices out of a film's decisions, so that each is shown once; return them, translated."""
    notices = film.decisions.notices
    n_now = len(notices)
    # One by one, as another thread may add further ones meanwhile.
    return [words.translated(notices.pop(0)) for _ in range(n_now)]


def _language(request: Request) -> str:
    """Return the first language in the browser's list that pages are written in, whatever its weight there.

    It is the first of `LANGUAGES` if there is none.
    """
    header = request.headers.get("accept-language", "")  # such as "fr-CA, en;q=0.5"
    for item in header.split(","):
        language = item.strip()[:2].lower()
        if language in LANGUAGES:
            return language
    return LANGUAGES[0]


def _carry_out(film: OpenFilm, decision_request: DecisionRequest, words: Words) -> dict[str, str]:
    """Do what the desk asks with a film's decisions: keep a new one, or delete, undo or redo one.

    Returns
    -------
    dict
        ``said`` is the sentence that the desk shows; ``id`` is that of a new decision, if one was kept.
    """
    kind = decision_request.kind
    annotator = decision_request.annotator
    if kind == "delete":
        deleted = film.decisions.delete(decision_request.id, annotator)
        return {"said": words.say("desk_did_delete", what=_decision_text(film, deleted, words))}
    if kind == "undo":
        return {"said": _result_of("undo", film.decisions.undo(annotator), film, words)}
    if kind == "redo":
        return {"said": _result_of("redo", film.decisions.redo(annotator), film, words)}
    return {"id": _keep(film, decision_request), "said": words["desk_kept"]}


def _result_of(action: Literal["undo", "redo"], line: Line | None, film: OpenFilm, words: Words) -> str:
    """Write the sentence on what came of an undo or a redo: which decision is back, or gone.

    `line` is the decision that was concerned; None if there was nothing to undo or redo.
    """
    if line is None:
        return words[f"desk_no_{action}"]
    # To undo a new decision takes it away; to undo a deletion brings a decision back.
    result = "back" if line.id in film.decisions.lines else "gone"
    return words.say(f"desk_did_{action}_{result}", what=_decision_text(film, line, words))


def _keep(film: OpenFilm, decision_request: DecisionRequest) -> str:
    """Keep a new decision of the desk, and return its id."""
    return film.decisions.keep(
        decision_request.kind,
        decision_request.start_s,
        decision_request.end_s,
        decision_request.annotator,
        level=decision_request.level,
        concepts=decision_request.concepts,
        note=decision_request.note,
        origin=decision_request.origin,
        place=decision_request.place,
        n_planned=decision_request.n_planned,
        parents=decision_request.parents,
        mode=decision_request.mode,
        changed_id=decision_request.id,
    )


def _decision_text(film: OpenFilm, line: Line, words: Words) -> str:
    """Write a decision in one line, in the language of the words."""
    return decision_text(line.row, film.decisions.codebook, words.language)


def _progress(job: Job, request: Request) -> dict[str, Any]:
    """Describe the progress of a job for a page, in the language of the browser.

    Returns
    -------
    dict
        `share` : float or None
            Share of the work that is done (`Job.share`).
        `error` : str
        `said` : list of str
            Notes of the job, which it has at its end.
        `done` : bool
            Whether it ended without an error.
    """
    words = Words(_language(request))
    return {
        "share": job.share,
        "error": words.translated(job.error),
        "said": [_note_text(note, words) for note in job.notes or ()],
        "done": job.notes is not None,
    }


def _note_text(note: Note, words: Words) -> str:
    """Write a note of a job in a language."""
    return sentence(note, words) if isinstance(note, FilmClaim) else str(words.translated(note))


def _begin_copy(film: OpenFilm) -> None:
    """Begin to make the copy of a film that the browser plays, unless it is there or can't be made."""
    if film.path is None or film.for_browser is None or film.lost:
        return  # there is nothing to copy
    if film.played is not None:
        return  # the copy is there, or browsers play the film as it is
    film_s = film.timeline.record.duration_s
    film.copying.begin(partial(_copy_film, film.path, film.for_browser, film_s))


def _copy_film(path: Path, out: Path, film_s: float, tell: Tell) -> list[Note]:
    """Copy a film of `film_s` seconds, as the work of a `Job`: it has no notes.

    `tell` is called with the share that is done.
    """

    def tell_share(done_s: float) -> None:
        """Tell the share of the film that is done, from the seconds that are."""
        tell(min(1.0, done_s / film_s))

    make_proxy(path, out, tell_share)
    return []


def run(
    films: Sequence[OpenFilm],
    comparison_page: Callable[[str], str],
    learning: Learning | None,
    keys: Secrets,
    sockets: Sequence[socket.socket],
) -> None:
    """Serve the workspace on these sockets, all of one port, until the process is stopped.

    `keys` are the secrets by which a browser is let in.
    """
    port = sockets[0].getsockname()[1]
    app = Workspace(films, comparison_page, learning).app(keys, port)
    config = uvicorn.Config(
        app,
        log_level="warning",
        lifespan="off",  # nothing is done when the server starts or stops
        ws="none",
        timeout_graceful_shutdown=1,  # seconds; a video that plays may be cut off
    )
    uvicorn.Server(config).run(sockets=list(sockets))
