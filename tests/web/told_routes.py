"""Writes into docs/rest.md which of Flink's routes are not there: ``python -m
tests.web.told_routes``."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.routing import Route

from flinkpy.web.routes import V1
from tests.web.flink_routes import CHANGE, OUT_OF_SCOPE, READ

PAGE = Path(__file__).parents[2] / "docs/rest.md"
BEGIN, END = "<!-- begin: Flink's routes that are not there -->", "<!-- end -->"


def told() -> str:
    """The paragraphs between the two marks, marks included."""
    here = {
        (method, re.sub(r"\{(\w+)[^}]*\}", r":\1", route.path))
        for route in V1
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    described = [*(("GET", path) for path in READ), *CHANGE]
    missing = ", ".join(
        f"`{method} {path}`" for method, path in described if (method, path) not in here
    )
    beyond = ", ".join(f"`{each}`" for each in OUT_OF_SCOPE)
    return (
        f"{BEGIN}\nOf {len(described)} routes of Flink's these are not there: "
        f"{missing or 'none'}. "
        "Routes with one of these parts are for programs of the JVM, or beyond what "
        f"flinkpy does: {beyond}.\n{END}"
    )


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(
        re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: told(), text, flags=re.DOTALL)
    )
