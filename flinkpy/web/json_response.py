"""Answers in JSON."""

from __future__ import annotations

import json

from starlette import responses

from flinkpy.core.secrets.hidden_secrets import shown_json


class JSONResponse(responses.JSONResponse):
    """No text of an answer has a secret, whatever route tells it, and so none of an archive, which
    is made of answers.

    Text may hold what UTF-8 has no bytes for, as names of files do: that is told as ``?``. The name
    of one job must not hide all of them."""

    def render(self, content: object) -> bytes:
        return json.dumps(
            shown_json(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode("utf-8", "replace")
