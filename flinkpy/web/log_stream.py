"""A log as the body of an answer: read from its process a piece at a time, so that no log is too
large, and as much as the request wants."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from flinkpy.actors.inspector.inspector_gateway import LONGEST_PIECE, LogFile
from flinkpy.web.failed_requests import failed
from flinkpy.web.inspector_calls import InspectorCalls
from flinkpy.web.requests import inspectors_of

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def log_response(request: Request, address: str, file: LogFile) -> Response:
    """The log as long as it is now, or the part in the header ``Range``: ``bytes=-65536`` is its
    end."""
    wanted = request.headers.get("range")
    start, end = 0, file.size
    if wanted is not None:
        part = part_of(wanted, file.size)
        if part is None:
            refused = failed(
                416,
                (
                    f"the log has {file.size} bytes; Range is bytes=FROM-TO, bytes=FROM- or "
                    f"bytes=-LAST, this is {wanted!r:.80}"
                ),
            )
            refused.headers["content-range"] = f"bytes */{file.size}"
            return refused
        start, end = part
    response = StreamingResponse(
        _pieces(inspectors_of(request), address, file.name, start, end),
        media_type="text/plain; charset=utf-8",
    )
    response.headers["x-content-type-options"] = "nosniff"
    response.headers["accept-ranges"] = "bytes"
    if wanted is not None:
        response.status_code = 206
        response.headers["content-range"] = f"bytes {start}-{end - 1}/{file.size}"
    return response


def part_of(wanted: str, size: int) -> tuple[int, int] | None:
    """The bytes that a range means, the end not included; None if there are none.

    >>> (
    ...     part_of("bytes=0-9", 100),
    ...     part_of("bytes=90-", 100),
    ...     part_of("bytes=-30", 100),
    ...     part_of("bytes=100-", 100),
    ... )
    ((0, 10), (90, 100), (70, 100), None)
    """
    found = _RANGE.fullmatch(wanted)
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    start = max(0, size - int(last)) if first == "" else int(first)
    end = size if first == "" or last == "" else min(size, int(last) + 1)
    return (start, end) if start < end else None


async def _pieces(
    calls: InspectorCalls, address: str, name: str, start: int, end: int
) -> AsyncIterator[bytes]:
    while start < end:
        piece = await calls.read_log(address, name, start, min(LONGEST_PIECE, end - start))
        if not piece:  # the log was cut meanwhile
            return
        yield piece
        start += len(piece)
