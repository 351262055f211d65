"""Lets requests through that have the token, come from this host's own pages, and have bodies of a
bearable size."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flinkpy.web.failed_requests import failed

LARGEST_BODY = 1 << 20
TOO_LONG = f"a body has at most {LARGEST_BODY} bytes"
_LENGTH = re.compile(r"[0-9]{1,18}")
LONGEST_PATH = 4000  # characters; no number in a path is too long to be read
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """An ASGI application in front of another one. ``hosts`` are the host names that a request may
    name, any name if there are none. This stops DNS rebinding: a page of another site, whose host
    name was made to resolve to this machine, sends requests under that name. Without a ``token``
    everybody may ask; ``is_open`` says for which paths no token is needed."""

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        hosts: Collection[str] = (),
        is_open: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(hosts)
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            refused = self._refusal(Headers(scope=scope), scope["path"])
            if refused is not None:
                status, message = refused
                response = failed(status, message)
                if status == 401:
                    response.headers["www-authenticate"] = "Bearer"
                await response(scope, receive, send)
                return
            receive = _Limited(receive)
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers, path: str) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._hosts and _name(host) not in self._hosts:
            return 403, f"this endpoint is not asked as {host!r:.80}"
        origin = headers.get("origin")
        if origin is not None and _place(origin) != host:
            return 403, f"pages of {origin!r:.80} may not ask here"
        if len(path) > LONGEST_PATH:
            return 414, f"a path has at most {LONGEST_PATH} characters"
        length = headers.get("content-length", "0")
        if _LENGTH.fullmatch(length) is None or int(length) > LARGEST_BODY:
            return 413, TOO_LONG
        if self._token is None or self._is_open(path):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            given.encode(), self._token.encode()
        ):
            return 401, (
                "the token is missing or wrong: send the header 'Authorization: Bearer …' "
                "with the token that the start printed"
            )
        return None


def refuse_other_sites(request: Request) -> None:
    """For a GET that changes something: a picture or a link on a page of another site sends it
    without an ``Origin``, so a browser must say that it comes from a page of this endpoint. Raises
    a 403 if it does not."""
    headers = request.headers
    site, referrer = headers.get("sec-fetch-site"), headers.get("referer")
    if site is not None:
        is_own = site == "same-origin"
    elif referrer is not None:
        is_own = _place(referrer) == headers.get("host", "")
    else:  # no browser, or one that hides where it comes from
        is_own = not headers.get("user-agent", "").startswith("Mozilla/")
    if not is_own:
        raise HTTPException(
            403,
            (
                "pages of other sites may not do this: only a page of this endpoint may, and "
                "PATCH may"
            ),
        )


class _Limited:
    """Passes on a body. Raises a 413 where one that does not say its length is too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._left = receive, LARGEST_BODY

    async def __call__(self) -> Message:
        message: Message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(413, TOO_LONG)
        return message


def _place(origin: str) -> str | None:
    """Host and port of an origin; None of what is none, which no page of this endpoint sends."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def _name(host: str) -> str:
    """The host without its port; an IPv6 address without brackets.

    >>> _name("localhost:8081"), _name("[::1]:8081")
    ('localhost', '::1')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
