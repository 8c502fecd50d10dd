"""Access control: only small requests from this machine with the token are answered."""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 16 * 1024
"""Maximum number of bytes of a body; the page sends less than 200."""

MAX_ADDRESS = 4 * 1024
"""Maximum number of bytes of path and query."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response, including refusals."""


class Guard:
    """ASGI middleware that rejects a request, or strips the token and passes it on."""

    def __init__(self, app: App, *, token: str, host: str) -> None:
        self._app, self._token, self._host = app, token, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        rejection = self._rejection(scope)
        if rejection:
            await _reject(send, *rejection)
            return
        body = await _body(receive)
        if body is None:
            await _reject(send, 413, f"a request has at most {MAX_BODY} bytes")
            return
        _, _, path = scope["path"].removeprefix("/").partition("/")
        inner = {**scope, "path": f"/{path}", "raw_path": None, "root_path": ""}
        await self._app(inner, _replay(body, receive), _with_headers(send))

    def _rejection(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and reason for rejecting a request, from its headers."""
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_ADDRESS:
            return 414, "the address is too long"
        headers = [(name.decode("latin-1").lower(), value) for name, value in scope["headers"]]
        hosts = [value.decode("latin-1") for name, value in headers if name == "host"]
        if hosts != [self._host]:
            return 403, "this page is for this machine only"
        origins = [value.decode("latin-1") for name, value in headers if name == "origin"]
        # browsers send the origin of every request that writes
        needed = scope["method"] not in ("GET", "HEAD")
        if (origins or needed) and origins != [f"http://{self._host}"]:
            return 403, "requests from other pages are not answered"
        token, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(token.encode(), self._token.encode()):
            return 404, "open the complete address that `unflip review` printed"
        return None


async def _body(receive: Receive) -> bytes | None:
    """Return a request's body; None if it is too large or incomplete."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that starts with the body that was already read."""
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return parts.pop() if parts else await receive()

    return replayed


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sending


async def _reject(send: Send, status: int, reason: str) -> None:
    guarded = _with_headers(send)
    text = reason.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await guarded({"type": "http.response.start", "status": status, "headers": headers})
    await guarded({"type": "http.response.body", "body": text})
