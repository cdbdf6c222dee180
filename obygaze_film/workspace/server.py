"""Serve scored films, the user's copies and their decisions, to the user's browser on this machine alone."""

import math
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

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
from obygaze_film.notes import said
from obygaze_film.page import modules
from obygaze_film.page.figure_pdf import can_write_pdf, figure_pdf
from obygaze_film.page.figures import film_figure
from obygaze_film.page.view_model import minutes_data
from obygaze_film.schema import UNREADABLE
from obygaze_film.workspace.address import ENTRY, LEADING, Secrets
from obygaze_film.workspace.decisions import KINDS as KINDS_OF_DECISION
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.ledger import Line
from obygaze_film.workspace.media import KINDS, StillSheet
from obygaze_film.workspace.open_film import Job, Note, OpenFilm, Tell, message_of
from obygaze_film.workspace.pages import desk_page, next_window, said_of, shown_decisions, what_stands
from obygaze_film.workspace.proxy import make_proxy
from obygaze_film.workspace.streaming import FilmStream
from obygaze_models.report import asset

MOST_BODY: Final = 1 << 16
"""Bytes of a decision."""

MODES: Final = ("read", "blind")

FIGURES: Final = {"svg": "image/svg+xml", "pdf": "application/pdf"}
"""Format of a figure -> its media type."""

Learning = Callable[[Tell], list[Note]]

COOKIE = "obygaze"

HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",  # the pages themselves say the rest
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_NUMBER = re.compile("[0-9]{1,6}")
"""Of a film in an address."""


class OnlyOwner:
    """Let in who has this start's secrets, at this address and from its own pages.

    A wrong `Host` is another site's name that was pointed here (DNS rebinding); a wrong or absent `Origin` on
    what writes is not a page of ours.
    """

    def __init__(self, app: ASGIApp, keys: Secrets, port: int) -> None:
        self.app, self.keys = app, keys
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with 403."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        await self._answer(Request(scope))(scope, receive, send_guarded)

    def _answer(self, request: Request) -> ASGIApp:
        host, keys = request.headers.get("host", ""), self.keys
        if host not in self.hosts:
            return PlainTextResponse("not this address", 403)
        if request.method not in {"GET", "HEAD"} and request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("not from this page", 403)
        given = request.url.path.removeprefix(ENTRY)
        if (
            request.method == "GET"
            and keys.token
            and secrets.compare_digest(given.encode(), keys.token.encode())
        ):
            keys.token = ""
            # A page, since a cookie that is strict stays at home where another place began a redirect.
            answer = HTMLResponse(LEADING.format(f"/{keys.path}/"))
            answer.set_cookie(COOKIE, keys.cookie, path=f"/{keys.path}/", httponly=True, samesite="strict")
            return answer
        if not secrets.compare_digest(request.cookies.get(COOKIE, "").encode(), keys.cookie.encode()):
            return PlainTextResponse(Words(_language(request))["desk_once"], 403)
        return self.app


class Asked(msgspec.Struct):
    """What a page asks to decide."""

    kind: Literal["judgement", "passage", "note", "agreed", "delete", "undo", "redo"]
    who: str = ""
    id: str = ""
    start_s: float = 0.0
    end_s: float = 0.0
    level: str = ""
    concepts: tuple[str, ...] = ()
    note: str = ""
    origin: str = "own"
    place: int = 0
    windows: int = 0
    parents: tuple[str, ...] = ()
    mode: str = "read"


class Workspace:
    """Answers of the workspace; those that are not async run in threads.

    Parameters
    ----------
    films : sequence of OpenFilm
        Those that were learnt from are added at its end.
    compared : callable
        Returns the page that compares them, in a language.
    learning : callable or None
        Learns from what was decided, and returns what came of it.
    """

    def __init__(
        self, films: Sequence[OpenFilm], compared: Callable[[str], str], learning: Learning | None = None
    ) -> None:
        self.films, self.compared, self.learning, self.learnt = films, compared, learning, Job()

    def app(self, keys: Secrets, port: int) -> Starlette:
        """Make the application for a start: its secrets, and the port that it listens on."""
        film, small = "/film/{number}", [Middleware(GZipMiddleware)]
        routes = [
            Route("/", self.first),
            Route("/films", self.every, middleware=small),
            Route("/desk/{name}.js", self.script, middleware=small),
            *(Route(f"{film}/{mode}", self.desk, name=mode, middleware=small) for mode in MODES),
            Route(f"{film}/video", self.video),
            Route(f"{film}/stream", self.stream),
            Route(f"{film}/captions.vtt", self.captions),
            *(Route(f"{film}/figure.{kind}", self.figure, name=kind) for kind in FIGURES),
            *(Route(f"{film}/{name}", self.media, name=name) for name in KINDS),
            Route(f"{film}/span", self.span),
            Route(f"{film}/decisions", self.decisions),
            Route(f"{film}/next", self.following),
            Route(f"{film}/minutes", self.minutes),
            Route(f"{film}/decide", self.decide, methods=["POST"]),
            *(
                Route(f"{film}/{job.__name__}", job, methods=["GET", "POST"])
                for job in (self.copy, self.learn)
            ),
            Route(f"{film}/export/{{name}}", self.export, middleware=small),
        ]
        return Starlette(
            routes=[Mount(f"/{keys.path}", routes=routes)],
            middleware=[Middleware(OnlyOwner, keys=keys, port=port)],
            exception_handlers=dict.fromkeys((ObygazeError, OSError, *UNREADABLE), _refused),
        )

    def film(self, request: Request) -> OpenFilm:
        """Find the film of an address."""
        text = str(request.path_params["number"])
        number = int(text) if _NUMBER.fullmatch(text) else len(self.films)
        if number >= len(self.films):
            raise HTTPException(404, "no such film")
        return self.films[number]

    def first(self, _: Request) -> Response:
        """Show the only film, or all."""
        return RedirectResponse("film/0/read" if len(self.films) == 1 else "films", 303)

    def every(self, request: Request) -> Response:
        """Compare the films."""
        return HTMLResponse(self.compared(_language(request)))

    def desk(self, request: Request) -> Response:
        """Show a film, or where windows of it are judged blindly."""
        mode = request.url.path.rpartition("/")[2]
        learns, language = self.learning is not None, _language(request)
        return HTMLResponse(desk_page(self.films, self.film(request), mode, language, learns=learns))

    def script(self, request: Request) -> Response:
        """Send a module of the desk's script."""
        if (name := request.path_params["name"]) not in modules.DESK:
            raise HTTPException(404, "no such script")
        return Response(asset(f"{name}.js", "obygaze_film.page"), media_type="text/javascript")

    def media(self, request: Request) -> Response:
        """Send stills, colours or peaks of the film; until they are made there is nothing."""
        film, name = self.film(request), request.url.path.rpartition("/")[2]
        path = film.media.get(name)
        if path is None or not path.is_file():
            return Response(status_code=404 if path is None else 204)  # 204: it is being made
        return FileResponse(path, media_type=KINDS[name])

    def captions(self, request: Request) -> Response:
        """Send what is said, as captions of the player."""
        lines = self.film(request).timeline.subtitles[["start_s", "end_s", "text"]]
        cues = [Subtitle(*row) for row in lines.itertuples(index=False, name=None)]
        return Response(write_vtt(cues, "", []), media_type="text/vtt")

    def span(self, request: Request) -> Response:
        """Say what is seen and said in a span, and what is like it."""
        film, words = self.film(request), Words(_language(request))
        return JSONResponse(span_evidence(film, self.films, *_ends(request), words))

    def minutes(self, request: Request) -> Response:
        """Send the timeline minute by minute, for a table."""
        view = self.film(request).view(_language(request))
        return JSONResponse(minutes_data(view.minutes, view))

    def figure(self, request: Request) -> Response:
        """Draw a span as a figure for an article: SVG, or PDF where matplotlib is there."""
        film, kind = self.film(request), request.url.path.rpartition(".")[2]
        if kind == "pdf" and not can_write_pdf():
            raise HTTPException(404, "PDF needs matplotlib: pip install 'obygaze[figures]'")
        view = film.view(_language(request))
        who = " ".join(request.query_params.get("who", "").split())
        decisions = shown_decisions(film, who, words=view.words)
        stills = StillSheet(film.media) if film.media and film.media["media.json"].is_file() else None
        figure = film_figure(view, *_ends(request), decisions, stills)
        return Response(figure_pdf(figure) if kind == "pdf" else figure, media_type=FIGURES[kind])

    def decisions(self, request: Request) -> Response:
        """List what is decided, for a window that was looked away from."""
        film, asked = self.film(request), request.query_params
        film.decisions.refresh()
        who = " ".join(asked.get("who", "").split())
        words = Words(_language(request))
        return JSONResponse(what_stands(film, who, blind=asked.get("mode") == "blind", words=words))

    def video(self, request: Request) -> Response:
        """Send the film, or the part of it that the browser asks for."""
        film, words = self.film(request), Words(_language(request))
        if (path := film.played) is None:
            raise HTTPException(404, words.again(film.lost) or words["desk_cannot_play"])
        return FileResponse(path)

    def stream(self, request: Request) -> Response:
        """Send the film from a time on, encoded as the browser takes it."""
        film = self.film(request)
        if film.path is None or not film.streamed or film.lost:
            raise HTTPException(404, "this film is not encoded while it plays")
        try:
            start_s = float(request.query_params.get("t", ""))
        except ValueError:
            raise FilmError("expected a time in seconds: ?t=12.5") from None
        if not 0 <= start_s < math.inf:
            raise FilmError(f"{start_s:g} s is no time of a film")
        stream = FilmStream(film.path, start_s)
        headers = {"x-start": str(round(stream.start_s, 6))}
        return StreamingResponse(stream.chunks(), media_type="video/mp4", headers=headers)

    def following(self, request: Request) -> Response:
        """Give the next window to judge."""
        asked = request.query_params
        n, who = asked.get("n", ""), asked.get("who", "")
        wanted = int(n) if n.isdecimal() and len(n) < 7 else 0
        film, words = self.film(request), Words(_language(request))
        return JSONResponse(next_window(film, who, wanted, words, tell="tell" in asked))

    async def decide(self, request: Request) -> Response:
        """Write a decision, and say what is there now."""
        film, body = self.film(request), b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BODY:
                raise FilmError(said("too_long"))
        asked = msgspec.json.decode(body, type=Asked)
        words = Words(_language(request))
        answer = _decided(film, asked, words)
        notices = film.decisions.notices  # to which another thread may add meanwhile
        told = [words.again(notices.pop(0)) for _ in range(len(notices))]
        answer["said"] = "; ".join([answer["said"], *told])
        who = " ".join(asked.who.split())
        return JSONResponse(answer | what_stands(film, who, blind=asked.mode == "blind", words=words))

    def copy(self, request: Request) -> Response:
        """Begin the copy that the browser plays, or say how far it is."""
        film = self.film(request)
        if request.method == "POST":
            _begin_copy(film)
        return JSONResponse(_state(film.copying, request) | {"done": film.played is not None})

    def learn(self, request: Request) -> Response:
        """Begin to learn from what was decided, or say how far that is, and at its end what came of it."""
        movie = self.film(request).timeline.movie
        if self.learning is None:
            raise HTTPException(404, "no corpus was given: film open --learn MANIFEST STORE")
        if request.method == "POST":
            self.learnt.begin(self.learning)
        state = _state(self.learnt, request)  # before the films: what it calls done lies among them
        number = max(film.number for film in self.films if film.timeline.movie == movie)
        return JSONResponse(state | {"film": number})

    def export(self, request: Request) -> Response:
        """Send decisions as a table, or the film with them for another tool: what a person may see."""
        film, name = self.film(request), request.path_params["name"]
        shown = shown_decisions(film, " ".join(request.query_params.get("who", "").split()))
        if name in KINDS_OF_DECISION:
            return Response(film.decisions.table(name, {one["id"] for one in shown}), media_type="text/csv")
        if name not in FORMATS:
            raise HTTPException(404, "no such export")
        people = film.decisions.decided({one["id"] for one in shown})
        return Response(FORMATS[name].file_of(collect(film.timeline, name, people=people)))


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"said": Words(_language(request)).again(message_of(error))}, 400)


def _ends(request: Request) -> tuple[float, float]:
    """Read the ends of the span that is asked for."""
    try:
        start_s, end_s = (float(request.query_params.get(name, "")) for name in "ab")
    except ValueError:
        raise FilmError("expected the ends of a span in seconds: ?a=12.5&b=20") from None
    if not 0 <= start_s < end_s < math.inf:
        raise FilmError(f"{start_s:g} to {end_s:g} s is no span of a film")
    return start_s, end_s


def _language(request: Request) -> str:
    """Return the first language of the browser that pages are written in."""
    wanted = [each.strip()[:2].lower() for each in request.headers.get("accept-language", "").split(",")]
    return next((language for language in wanted if language in LANGUAGES), LANGUAGES[0])


def _decided(film: OpenFilm, asked: Asked, words: Words) -> dict[str, str]:
    """Do what the desk asks with a film's decisions: keep a new one, or delete, undo or redo one.

    Returns
    -------
    dict
        ``said`` is the sentence that the desk shows; ``id`` is that of a new decision, if one was kept.
    """
    decisions = film.decisions
    if asked.kind in KINDS_OF_DECISION:
        new_id = decisions.keep(**msgspec.structs.asdict(asked))
        return {"id": new_id, "said": words["desk_kept"]}
    line: Line | None
    if asked.kind == "delete":
        line = decisions.delete(asked.id, asked.who)
    elif asked.kind == "undo":
        line = decisions.undo(asked.who)
    else:
        line = decisions.redo(asked.who)
    if line is None:
        return {"said": words[f"desk_no_{asked.kind}"]}
    what = said_of(line.row, decisions.codebook, words.language)
    return {"said": words.say(f"desk_did_{asked.kind}", what=what)}


def _state(job: Job, request: Request) -> dict[str, Any]:
    """Describe how far a work is, in the language of the browser."""
    words = Words(_language(request))
    return {
        "share": job.share,
        "error": words.again(job.error),
        "said": [_told(note, words) for note in job.notes or ()],
        "done": job.notes is not None,
    }


def _told(note: Note, words: Words) -> str:
    """Write what is to be said at the end of a work."""
    return sentence(note, words) if isinstance(note, FilmClaim) else str(words.again(note))


def _begin_copy(film: OpenFilm) -> None:
    """Make the copy that the browser plays, where it needs one."""
    path, out, whole_s = film.path, film.for_browser, film.timeline.record.duration_s
    if path is None or out is None or film.lost or film.played is not None:
        return

    def copy(tell: Tell) -> list[Note]:
        make_proxy(path, out, lambda seconds: tell(min(1.0, seconds / whole_s)))
        return []

    film.copying.begin(copy)


def run(
    films: Sequence[OpenFilm],
    compared: Callable[[str], str],
    learning: Learning | None,
    keys: Secrets,
    sockets: Sequence[socket.socket],
) -> None:
    """Answer who comes to these sockets, with the secrets of this start, until stopped."""
    port = sockets[0].getsockname()[1]
    app = Workspace(films, compared, learning).app(keys, port)
    config = uvicorn.Config(app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=list(sockets))
