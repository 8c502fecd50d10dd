"""The review page as a web application: addresses, checks of what comes in, JSON."""

import json
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unflip._app.review._desk import Desk, said
from unflip._app.review._guard import App, Guard
from unflip._app.review._queue import QUEUES, STATUSES, Wanted
from unflip._app.review._store import VERDICTS, StaleDecisionError

LONGEST_SEARCH = 200
"""Characters of a search."""

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""What is sent as it is; no other file is ever opened for a request."""


class BadRequestError(Exception):
    """A request that the page would not send."""


def make_app(desk: Desk, *, token: str, host: str) -> App:
    """Return the ASGI application of a review.

    Parameters
    ----------
    desk : Desk
        The review.
    token : str
        The first part of every address that is answered.
    host : str
        The Host header that is answered.
    """
    routes = [Route(path, _file(*file)) for path, file in FILES.items()]
    reads: dict[str, Callable[[Desk, Mapping[str, str]], Any]] = {
        "about": lambda desk, _: desk.about(),
        "queue": _queue,
        "row": _row,
        "tally": lambda desk, _: desk.tally(),
    }
    writes: dict[str, Callable[[Desk, Any], Any]] = {
        "decide": _decide,
        "undo": _undo,
        "export": lambda desk, _: desk.export(),
    }
    routes += [Route(f"/api/{name}", _reading(desk, read)) for name, read in reads.items()]
    routes += [
        Route(f"/api/{name}", _writing(desk, write), methods=["POST"])
        for name, write in writes.items()
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return Guard(app, token=token, host=host)


def _file(name: str, kind: str) -> Callable[[Request], Any]:
    content = resources.files("unflip._app.review").joinpath(name).read_bytes()

    async def send(_: Request) -> Response:
        return Response(content, headers={"content-type": kind})

    return send


def _reading(desk: Desk, read: Callable[[Desk, Mapping[str, str]], Any]) -> Callable[..., Any]:
    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await run_in_threadpool(read, desk, request.query_params))
        except BadRequestError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except OSError as error:
            return _unavailable(error)

    return answer


def _writing(desk: Desk, write: Callable[[Desk, Any], Any]) -> Callable[..., Any]:
    async def answer(request: Request) -> Response:
        try:
            if request.headers.get("content-type") != "application/json":
                raise BadRequestError("the body must be application/json")
            body = _json(await request.body())
            return JSONResponse(await run_in_threadpool(write, desk, body))
        except BadRequestError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except StaleDecisionError as stale:
            return JSONResponse(
                {"error": str(stale), "current": {"row": stale.current.row, **said(stale.current)}},
                status_code=409,
            )
        except OSError as error:
            return _unavailable(error)

    return answer


def _unavailable(error: OSError) -> JSONResponse:
    """Say that decisions or files cannot be read or written now."""
    words = f"{error.filename or 'writing failed'}: {error.strerror}"
    if error.strerror is None:  # made here, and not by the system
        words = str(error)
    return JSONResponse({"error": words}, status_code=503)


def _json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError("the body is not JSON") from error
    if not isinstance(content, dict):
        raise BadRequestError("the body must be an object")
    return content


def _queue(desk: Desk, query: Mapping[str, str]) -> dict[str, Any]:
    words = query.get("words", "")
    if len(words) > LONGEST_SEARCH:
        raise BadRequestError(f"words has more than {LONGEST_SEARCH} characters")
    given = _number(query.get("given", "-1"), "given", -1, desk.n_classes - 1)
    least = _number(query.get("least", "0"), "least", 0, 100) / 100
    wanted = Wanted(
        queue=_choice(query.get("queue"), "queue", QUEUES),
        status=_choice(query.get("status", "open"), "status", STATUSES),
        given=None if given < 0 else given,
        least=least,
        words=words,
    )
    return desk.queue(wanted, _number(query.get("after", "-1"), "after", -1, desk.n_rows - 1))


def _row(desk: Desk, query: Mapping[str, str]) -> dict[str, Any]:
    return desk.row(
        _number(query.get("row", ""), "row", 0, desk.n_rows - 1),
        _choice(query.get("queue"), "queue", QUEUES),
    )


def _decide(desk: Desk, body: dict[str, Any]) -> dict[str, Any]:
    row, version = _written(desk, body)
    verdict = _choice(body.get("verdict"), "verdict", VERDICTS)
    label = None
    if verdict == "change":
        label = _whole(body.get("label"), "label", 0, desk.n_classes - 1)
        if label == desk.given(row):
            raise BadRequestError("label is the one that the row has: that is keep")
    queue = _choice(body.get("queue"), "queue", QUEUES)
    decision = desk.decide(row, version, verdict, label, queue)
    return {"row": row, **said(decision), "tally": desk.tally()}


def _undo(desk: Desk, body: dict[str, Any]) -> dict[str, Any]:
    row, version = _written(desk, body)
    try:
        decision = desk.undo(row, version)
    except ValueError as error:
        raise BadRequestError(str(error)) from error
    return {"row": row, **said(decision), "tally": desk.tally()}


def _written(desk: Desk, body: dict[str, Any]) -> tuple[int, int]:
    """Return the row that is written to, and the version of it that the page has."""
    return (
        _whole(body.get("row"), "row", 0, desk.n_rows - 1),
        _whole(body.get("version"), "version", 0, 2**53),
    )


def _choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise BadRequestError(f"{name} must be one of {', '.join(choices)}")
    return value


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:  # True is an int too
        raise BadRequestError(f"{name} must be a whole number between {least} and {most}")
    return value


def _number(text: str, name: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    return _whole(value, name, least, most)
