"""Calls an ASGI application with exactly the request that a test names, straightened by nobody."""

import asyncio
import json as json_module
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes, urlencode

HOST = "127.0.0.1:8000"
ORIGIN = f"http://{HOST}"
TOKEN = "the-token"  # noqa: S105


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json_module.loads(self.content)


class Caller:
    """Requests to one application, one after the other, on one event loop."""

    def __init__(self, app: Any) -> None:
        self._app, self._runner = app, asyncio.Runner()

    def close(self) -> None:
        self._runner.close()

    def request(
        self,
        method: str,
        address: str,
        *,
        headers: dict[str, str] | None = None,
        body: bytes | Iterable[bytes] = b"",
    ) -> Answer:
        path, _, query = address.partition("?")
        sent = {"host": HOST} | (headers or {})
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
        }
        return self._runner.run(self._call(scope, [body] if isinstance(body, bytes) else body))

    async def _call(self, scope: dict[str, Any], pieces: Iterable[bytes]) -> Answer:
        waiting, answered = iter(pieces), []

        async def receive() -> dict[str, Any]:
            piece = next(waiting, None)
            if piece is None:
                return {"type": "http.request", "body": b"", "more_body": False}
            return {"type": "http.request", "body": piece, "more_body": True}

        async def send(message: dict[str, Any]) -> None:
            answered.append(message)

        await self._app(scope, receive, send)
        start, *rest = answered
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(part["body"] for part in rest))

    def get(self, path: str, query: dict[str, str] | None = None, **headers: str) -> Answer:
        """Ask for a path below the token."""
        address = f"/{TOKEN}/{path}" + (f"?{urlencode(query)}" if query else "")
        return self.request("GET", address, headers=headers)

    def post(self, path: str, json: Any = None, body: Any = None, **headers: str) -> Answer:
        """Send JSON, or a body as it is, to a path below the token."""
        sent = {"origin": ORIGIN, "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = json_module.dumps(json).encode() if body is None else body
        return self.request("POST", f"/{TOKEN}/{path}", headers=sent, body=body)
