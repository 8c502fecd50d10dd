"""The review page as a web application: routes, validation of requests, JSON."""

import json
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unflip._app.review._guard import App, Guard
from unflip._app.review._images import ImageError
from unflip._app.review._queue import QUEUES, STATUSES, QueueFilter
from unflip._app.review._session import ReviewSession, decision_dict
from unflip._app.review._store import VERDICTS, StaleDecisionError
from unflip._utils.typing import Record

MAX_SEARCH = 200
"""Maximum number of characters of a search."""

PAGE_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Static files by path; no request opens any other file."""


class BadRequestError(Exception):
    """An invalid request, which the page never sends."""


def make_app(session: ReviewSession, *, token: str, host: str) -> App:
    """Return the ASGI application of a review."""
    reads: dict[str, Callable[[ReviewSession, Any], Any]] = {
        "about": lambda session, _: session.about(),
        "queue": _queue,
        "row": _row,
        "tally": lambda session, _: session.tally(),
        "image": _image,
    }
    writes: dict[str, Callable[[ReviewSession, Any], Any]] = {
        "decide": _decide,
        "undo": _undo,
        "export": lambda session, _: session.export(),
    }
    routes = [Route(path, _file(*file)) for path, file in PAGE_FILES.items()]
    routes += [
        Route(f"/api/{name}", _answering(session, read, _query)) for name, read in reads.items()
    ]
    routes += [
        Route(f"/api/{name}", _answering(session, write, _body), methods=["POST"])
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


def _answering(
    session: ReviewSession,
    answer: Callable[[ReviewSession, Any], Any],
    given: Callable[[Request], Awaitable[Any]],
) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler of a request, which answers its query or its body."""

    async def handle(request: Request) -> Response:
        try:
            result = await run_in_threadpool(answer, session, await given(request))
        except BadRequestError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except ImageError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except StaleDecisionError as stale:
            current = {"row": stale.current.row, **decision_dict(stale.current)}
            return JSONResponse({"error": str(stale), "current": current}, status_code=409)
        except OSError as error:
            message = f"{error.filename or 'writing failed'}: {error.strerror}"
            if error.strerror is None:  # raised by unflip, not by the system
                message = str(error)
            return JSONResponse({"error": message}, status_code=503)
        return result if isinstance(result, Response) else JSONResponse(result)

    return handle


async def _query(request: Request) -> Mapping[str, str]:
    return request.query_params


async def _body(request: Request) -> Record:
    if request.headers.get("content-type") != "application/json":
        raise BadRequestError("the body must be application/json")
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise BadRequestError("the body is not JSON") from error
    if not isinstance(content, dict):
        raise BadRequestError("the body must be an object")
    return content


def _image(session: ReviewSession, query: Mapping[str, str]) -> Response:
    row = _number(query.get("row", ""), "row", 0, session.n_rows - 1)
    column = _number(query.get("column", ""), "column", 0, 2**31)
    content, kind = session.image(row, column)
    return Response(content, headers={"content-type": kind})


def _queue(session: ReviewSession, query: Mapping[str, str]) -> Record:
    words = query.get("words", "")
    if len(words) > MAX_SEARCH:
        raise BadRequestError(f"words has more than {MAX_SEARCH} characters")
    given = _number(query.get("given", "-1"), "given", -1, session.n_classes - 1)
    queue_filter = QueueFilter(
        queue=_choice(query.get("queue"), "queue", QUEUES),
        status=_choice(query.get("status", "open"), "status", STATUSES),
        given=None if given < 0 else given,
        least=_number(query.get("least", "0"), "least", 0, 100) / 100,
        words=words,
    )
    return session.queue(
        queue_filter, _number(query.get("after", "-1"), "after", -1, session.n_rows - 1)
    )


def _row(session: ReviewSession, query: Mapping[str, str]) -> Record:
    return session.row(
        _number(query.get("row", ""), "row", 0, session.n_rows - 1),
        _choice(query.get("queue"), "queue", QUEUES),
    )


def _decide(session: ReviewSession, body: Record) -> Record:
    row, version = _row_and_version(session, body)
    verdict = _choice(body.get("verdict"), "verdict", VERDICTS)
    label = None
    if verdict == "change":
        label = _whole(body.get("label"), "label", 0, session.n_classes - 1)
        if label == session.given(row):
            raise BadRequestError("the row has this label already: use keep")
    queue = _choice(body.get("queue"), "queue", QUEUES)
    decision = session.decide(row, version, verdict, label, queue)
    return {"row": row, **decision_dict(decision), "tally": session.tally()}


def _undo(session: ReviewSession, body: Record) -> Record:
    row, version = _row_and_version(session, body)
    try:
        decision = session.undo(row, version)
    except ValueError as error:
        raise BadRequestError(str(error)) from error
    return {"row": row, **decision_dict(decision), "tally": session.tally()}


def _row_and_version(session: ReviewSession, body: Record) -> tuple[int, int]:
    """Return the row and the version that the page has of it."""
    return (
        _whole(body.get("row"), "row", 0, session.n_rows - 1),
        _whole(body.get("version"), "version", 0, 2**53),
    )


def _choice(value: object, name: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise BadRequestError(f"{name} must be one of {', '.join(choices)}")
    return value


def _whole(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:  # bool is a subclass of int
        raise BadRequestError(f"{name} must be a whole number between {least} and {most}")
    return value


def _number(text: str, name: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    return _whole(value, name, least, most)
