"""Who may use the studio, and what its pages may do.

By default the studio listens on this machine only. A page of another site must not read or change anything
through the user's browser either:

- The Host header must name this machine, or a site could point its own name at it (DNS rebinding).
- The API answers only requests of the studio's own page, by Origin and Sec-Fetch-Site, and programs that are
  no browsers. What changes something must be JSON, or the bytes of a video: types a foreign form cannot send.
- At any other address than loopback, the API needs a token, which is part of the printed address.
"""

import ipaddress
import secrets
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READING = frozenset({"GET", "HEAD"})
MAX_BODY_BYTES = 32 * 2**20  # of a request other than an upload
UPLOAD = ("POST", "/api/videos")

CONTENT = (
    "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'"
)
# a notebook on this machine shows the page beside a cell; its port is not known
LOOPBACK_FRAMES = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # routes may choose another
}


@dataclass(frozen=True)
class Access:
    """The address the studio listens at, and the token the API needs there."""

    host: str = "127.0.0.1"
    token: str = ""  # "": none is needed

    @classmethod
    def for_host(cls, host: str) -> "Access":
        """Choose a token unless only this machine can reach `host`."""
        return cls(host, "" if is_loopback(host) else secrets.token_urlsafe(24))

    def knows_host(self, header: str) -> bool:
        """Tell whether a Host header names this machine, not a site that points its name here."""
        name = host_name(header)
        if name is None:
            return False
        if is_loopback(name):
            return True
        machine = socket.gethostname().lower()
        own_names = {self.host.lower(), machine, f"{machine}.local"}
        return not is_loopback(self.host) and (is_address(name) or name in own_names)

    def accepts(self, given: str) -> bool:
        """Tell whether a token is the right one."""
        return not self.token or secrets.compare_digest(given.encode(), self.token.encode())

    @property
    def content_policy(self) -> str:
        """What pages may load, and who may show them in a frame."""
        frames = f" {LOOPBACK_FRAMES}" if is_loopback(self.host) else ""
        return f"{CONTENT}; frame-ancestors 'self'{frames}"


def host_name(header: str) -> str | None:
    """Return the name or address in a Host header in lower case, without port; None if it is malformed."""
    try:
        parts = urlsplit(f"//{header}")
        parts.port  # noqa: B018  raises ValueError for a malformed port
    except ValueError:
        return None
    is_plain = parts.netloc == header and "@" not in header and not (parts.path or parts.query)
    return parts.hostname if is_plain else None


def is_address(name: str) -> bool:
    """Tell whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        return False


def is_loopback(name: str) -> bool:
    """Tell whether a name or address means this machine and nothing else."""
    return name == "localhost" or (is_address(name) and ipaddress.ip_address(name).is_loopback)


class Guard:
    """Lets only permitted requests through to the application, and adds headers to all answers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access
        self.headers = {**HEADERS, "Content-Security-Policy": access.content_policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.add_headers(message)
            await send(message)

        refusal = self.refuse(scope)
        answer = self.app if refusal is None else refusal
        await answer(scope, receive, send_with_headers)

    def add_headers(self, message: MutableMapping[str, object]) -> None:
        """Add our headers to those of an answer, which may have chosen its own."""
        headers = MutableHeaders(raw=message.setdefault("headers", []))  # type: ignore[arg-type]
        for name, value in self.headers.items():
            headers.setdefault(name, value)

    def refuse(self, scope: Scope) -> JSONResponse | None:
        """Return the answer to a request that is not permitted; None if it is."""
        headers = Headers(scope=scope)
        if not self.access.knows_host(headers.get("host", "")):
            return _refusal(403, f"{headers.get('host', '')!r} is not an address of this studio")
        if scope["path"].startswith("/api"):
            if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                return _refusal(403, "only the page of this studio may ask this")
            if not self.access.accepts(_given_token(scope, headers)):
                return _refusal(401, "wrong or missing token: open the address that the terminal printed")
        return None if scope["method"] in READING else self._refuse_change(scope, headers)

    def _refuse_change(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        """Return the answer to a request that must not change anything; None if it may."""
        origin = headers.get("origin")
        if origin is not None and not is_same_origin(origin, headers.get("host", "")):
            return _refusal(403, f"a page of {origin} must not change anything here")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_upload = (scope["method"], scope["path"]) == UPLOAD
        if is_upload and not (kind == "application/octet-stream" or kind.startswith("video/")):
            return _refusal(415, f"cannot add a video of type {kind!r}: expected application/octet-stream")
        if not is_upload and kind != "application/json":
            return _refusal(415, f"cannot read {kind!r}: expected application/json")
        if "transfer-encoding" in headers and "content-length" not in headers:
            return _refusal(411, "expected a Content-Length")
        length = headers.get("content-length", "0")
        if not is_upload and not (length.isascii() and length.isdigit() and int(length) <= MAX_BODY_BYTES):
            return _refusal(413, f"{length} bytes are too many: expected at most {MAX_BODY_BYTES}")
        return None


def is_same_origin(origin: str, host: str) -> bool:
    """Tell whether an Origin header means the server that a Host header names."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() != ""


def _given_token(scope: Scope, headers: Headers) -> str:
    """Return the token of a request: from its header, or from its address if it only reads."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    if scope["method"] in READING:
        query = str(scope["query_string"], "latin-1")
        return parse_qs(query).get("token", [""])[0]
    return ""


def _refusal(status: int, line: str) -> JSONResponse:
    return JSONResponse({"error": line}, status_code=status)
