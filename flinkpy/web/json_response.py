"""Answers in JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette import responses


class JSONResponse(responses.JSONResponse):
    """Text may hold what UTF-8 has no bytes for, as names of files do: that is told as ``?``. The name of one job must not hide all of them."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
