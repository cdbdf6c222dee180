"""Serve scored films, the user's copies and their decisions, to the user's browser on this machine alone."""

import json
import secrets
import socket
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Thread
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from obygaze_features.errors import ObygazeError
from obygaze_features.locks import alone_in
from obygaze_film.errors import FilmError
from obygaze_film.workspace.pages import OpenFilm, blind_page, next_window, read_page, shown_decisions
from obygaze_film.workspace.proxy import make_proxy

MOST_BODY: Final = 1 << 16
"""Bytes of a decision."""

ENTRY = "/enter/"
"""Before the token in the address; a query would be blotted out where addresses are printed."""

HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",  # the pages themselves say the rest
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class OnlyOwner:
    """Let in who has this start's token, at this address and from its own pages.

    The token comes in the address that is printed, then as a cookie. A wrong `Host` is another site's name
    that was pointed here (DNS rebinding); a wrong `Origin` on what writes is another site's page.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token, self.cookie = app, token, f"obygaze-{port}"
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
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("not this address", 403)
        if request.method not in {"GET", "HEAD"} and request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("not from this page", 403)
        given = request.url.path.removeprefix(ENTRY)
        if secrets.compare_digest(given.encode(), self.token.encode()):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return answer
        if not secrets.compare_digest(request.cookies.get(self.cookie, "").encode(), self.token.encode()):
            return PlainTextResponse("open the address that 'obygaze film open' printed", 403)
        return self.app


class Workspace:
    """Answers of the workspace; those that are not async run in threads.

    Parameters
    ----------
    films : sequence of OpenFilm
    compared : callable
        Returns the page that compares them.
    """

    def __init__(self, films: Sequence[OpenFilm], compared: Callable[[], str]) -> None:
        self.films, self.compared = films, compared

    def app(self, token: str, port: int) -> Starlette:
        """Make the application for a start: its token, and the port that it listens on."""
        film = "/film/{number:int}"
        refused = dict.fromkeys((ObygazeError, OSError, ValueError, KeyError, TypeError), _refused)
        return Starlette(
            routes=[
                Route("/", self.first),
                Route("/films", self.every),
                Route(f"{film}/read", self.read),
                Route(f"{film}/blind", self.blind),
                Route(f"{film}/video", self.video),
                Route(f"{film}/next", self.following),
                Route(f"{film}/decide", self.decide, methods=["POST"]),
                Route(f"{film}/copy", self.copy, methods=["GET", "POST"]),
            ],
            middleware=[Middleware(OnlyOwner, token=token, port=port)],
            exception_handlers=refused,
        )

    def film(self, request: Request) -> OpenFilm:
        """Find the film of an address."""
        number: int = request.path_params["number"]
        if number >= len(self.films):
            raise HTTPException(404, "no such film")
        return self.films[number]

    def first(self, _: Request) -> Response:
        """Show the only film, or all."""
        return RedirectResponse("/film/0/read" if len(self.films) == 1 else "/films", 303)

    def every(self, _: Request) -> Response:
        """Compare the films."""
        return HTMLResponse(self.compared())

    def read(self, request: Request) -> Response:
        """Show a film."""
        return HTMLResponse(read_page(self.film(request)))

    def blind(self, request: Request) -> Response:
        """Show where windows are judged."""
        return HTMLResponse(blind_page(self.film(request)))

    def video(self, request: Request) -> Response:
        """Send the film, or the part of it that the browser asks for."""
        path = self.film(request).played
        if path is None:
            raise HTTPException(404, "no film that a browser plays")
        return FileResponse(path)

    def following(self, request: Request) -> Response:
        """Give the next window to judge."""
        n, who = request.query_params.get("n", ""), request.query_params.get("who", "")
        wanted = int(n) if n.isdecimal() and len(n) < 7 else 0
        return JSONResponse(next_window(self.film(request), who, wanted))

    async def decide(self, request: Request) -> Response:
        """Write a decision, and say what is there now."""
        film, body = self.film(request), b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BODY:
                raise FilmError("this is longer than any decision")
        asked = json.loads(body)
        return JSONResponse({"said": _decided(film, asked), "you": shown_decisions(film)})

    def copy(self, request: Request) -> Response:
        """Begin the copy that the browser plays, or say how far it is."""
        film = self.film(request)
        if request.method == "POST":
            _begin_copy(film)
        return JSONResponse({"share": film.copied, "error": film.copy_error, "done": film.played is not None})


async def _refused(_: Request, error: Exception) -> Response:
    return JSONResponse({"said": str(error)}, 400)


def _decided(film: OpenFilm, asked: Mapping[str, Any]) -> str:
    """Write a decision."""
    decisions, kind = film.decisions, asked["kind"]
    if kind == "undo":
        return "taken back" if decisions.undo() else "nothing to take back"
    start, end, who = float(asked["start_s"]), float(asked["end_s"]), str(asked["who"])
    if kind == "note":
        decisions.note(start, end, str(asked["note"]), annotator=who)
        return "kept"
    level, concepts = str(asked["level"]), [str(name) for name in asked.get("concepts", [])]
    if kind == "passage":
        origin = str(asked.get("origin") or "own")
        decisions.keep_passage(start, end, level, annotator=who, concepts=concepts, origin=origin)
    elif kind == "judge":
        place = asked.get("place")
        place = None if place is None else int(place)
        decisions.judge(start, end, level, annotator=who, concepts=concepts, place=place)
    else:
        raise FilmError(f"{kind!r} is no decision")
    return "kept"


def _begin_copy(film: OpenFilm) -> None:
    """Make the copy that the browser plays, in a thread of its own."""
    if film.path is None or film.played is not None or film.copied is not None:
        return
    film.copied, film.copy_error = 0.0, ""
    path, out = film.path, film.copy_path

    def progress(seconds: float) -> None:
        film.copied = min(1.0, seconds / film.timeline.record.duration_s)

    def make() -> None:
        try:
            make_proxy(path, out, progress)
        except (ObygazeError, OSError) as error:
            film.copied, film.copy_error = None, str(error)

    Thread(target=make, daemon=True).start()


def serve(
    films: Sequence[OpenFilm],
    compared: Callable[[], str],
    *,
    port: int,
    browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve until stopped; `tell` gets the address to open.

    Raises
    ------
    StoreError
        Another workspace has one of the folders.
    OSError
        The port is taken.
    """
    with ExitStack() as stack:
        for film in films:
            stack.enter_context(alone_in(film.decisions.folder, "showing this film (film open)"))
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", port)))]
        port = sockets[0].getsockname()[1]
        with suppress(OSError):  # a machine without IPv6
            sockets.append(stack.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6)))
        token = secrets.token_urlsafe(24)
        address = f"http://127.0.0.1:{port}{ENTRY}{token}"
        tell(address)
        if browser:
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        app = Workspace(films, compared).app(token, port)
        config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=sockets)
