"""The page in the browser: files that hold no secret. What they show they ask the other routes for,
with the token."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FILES = Path(__file__).resolve().parents[1] / "page"
HEADERS = {
    # Scripts, styles and data come from here only, and no other page frames this one
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # asked again each time, and answered with 304: a new version shows at once
    "cache-control": "no-cache",
}


class PageFiles(StaticFiles):
    """The files of the page, with its headers."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response


_FILES = PageFiles(directory=FILES)


async def get_page(request: Request) -> Response:
    return await _FILES.get_response("index.html", request.scope)


def is_page(path: str) -> bool:
    """Whether a path leads to the page's files, for which nobody needs a token."""
    return path == "/" or path.startswith("/page/")


ROUTES = [Route("/", get_page), Mount("/page", _FILES)]
