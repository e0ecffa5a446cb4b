"""The guard of all pages: who may ask, and the security headers of every response.

It refuses pages of other sites under a name that points here (DNS rebinding), all methods that
change something, and visitors from elsewhere without the token. A page loads nothing from elsewhere
and runs no scripts but ours.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
_LOOPBACK_NAME = "localhost"
_TOKEN = "token"  # noqa: S105 — its name in an address
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 — told apart, not bound


def is_loopback(host: str) -> bool:
    """Return whether a host can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == _LOOPBACK_NAME


@dataclass(frozen=True)
class AccessRule:
    """The host on which the dashboard listens, and its token."""

    host: str = "127.0.0.1"
    token: str = ""

    def knows(self, header: str) -> bool:
        """Return whether a request's Host is a name of this dashboard."""
        name = header.rpartition(":")[0] if _has_port(header) else header
        if is_loopback(name):
            return True
        # Another site's page has no cookie of ours, so a name that points here does not help it.
        return self.host in _ANY or name.strip("[]").lower() == self.host.strip("[]").lower()

    @property
    def proof(self) -> str:
        """The value that a browser keeps instead of the token."""
        return hmac.new(self.token.encode(), b"accelbench dashboard", hashlib.sha256).hexdigest()

    def opens(self, token: str, kept: str) -> bool:
        """Return whether a token or a kept proof is right."""
        return hmac.compare_digest(token.encode(), self.token.encode()) or hmac.compare_digest(
            kept.encode(), self.proof.encode()
        )


class Guard:
    """The application that checks each request before the pages."""

    def __init__(self, app: ASGIApp, door: AccessRule) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if not self._door.knows(headers.get("host", "")):
            await _say(send, 421, "This dashboard has another name.")
            return
        if scope["method"] not in ("GET", "HEAD"):
            await _say(send, 405, "This dashboard only shows.", {"allow": "GET, HEAD"})
            return
        if self._door.token and await self._stopped(scope, headers, send):
            return
        await self._app(scope, receive, _dressed(send))

    async def _stopped(self, scope: Scope, headers: Mapping[str, str], send: Send) -> bool:
        """Respond if the token is missing or becomes a cookie; return whether it did."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in pairs if name == _TOKEN]
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        name = f"accelbench_{scope.get('server', ('', 0))[1]}"
        if self._door.opens(bearer if scheme.lower() == "bearer" else "", _cookie(headers, name)):
            if not tokens:
                return False
        elif not tokens or not self._door.opens(tokens[-1], ""):
            await _say(
                send,
                401,
                "This dashboard wants the token that it was started with: open the address that"
                " it printed.",
                {"www-authenticate": "Bearer"},
            )
            return True
        await self._let_in(scope, [pair for pair in pairs if pair[0] != _TOKEN], name, send)
        return True

    async def _let_in(
        self, scope: Scope, pairs: list[tuple[str, str]], name: str, send: Send
    ) -> None:
        """Redirect to the same address without the token, which no history or log then has."""
        query = f"?{urlencode(pairs)}" if pairs else ""
        # Only one slash: two would name another host.
        path = "/" + quote(scope["path"].lstrip("/\\"))
        cookie = f"{name}={self._door.proof}; HttpOnly; SameSite=Strict; Path=/"
        await _say(send, 303, "", {"location": f"{path}{query}", "set-cookie": cookie})


def _has_port(header: str) -> bool:
    return ":" in header.rpartition("]")[2] and header.rpartition(":")[2].isdecimal()


def _cookie(headers: Mapping[str, str], name: str) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie is not None else ""


def _dressed(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *((n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in names),
            ]
        await send(message)

    return sent


async def _say(
    send: Send, status: int, sentence: str, more: Mapping[str, str] | None = None
) -> None:
    body = f"{sentence}\n".encode()
    headers = {
        **_HEADERS,
        "content-type": "text/plain; charset=utf-8",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **(more or {}),
    }
    listed = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
