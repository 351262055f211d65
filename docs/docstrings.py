"""Docstrings for the site: examples with prompts become fenced blocks, and a paragraph that ends in
``::`` introduces code.

Docstrings are written to be read in the source, where ``>>>`` needs no fence; Markdown would take
it for a quotation."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|meth|func|mod|attr):`~?(?:[\w.]*\.)?(\w+)`")
DIRECTIVE = re.compile(r" *# doctest: [+A-Z_, ]+$", re.MULTILINE)


def readable(docstring: str) -> str:
    """Markdown of a docstring: names instead of roles, examples between fences and without their
    directives.

    >>> print(readable("As :meth:`~flinkpy.x.Y.take` does."))
    As `take` does.
    """
    return fenced(DIRECTIVE.sub("", ROLE.sub(r"`\1`", textwrap.dedent(docstring))))


def fenced(text: str) -> str:
    """The text with each run of prompts and their output, up to the next empty line, between
    fences."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>> "):
            lines += ["" for _ in lines[-1:] if lines[-1].strip()] + ["```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        if inside:
            line = line.strip() if line.lstrip().startswith((">>> ", "... ")) else line
        elif line.rstrip().endswith("::"):
            line = line.rstrip()[:-1]
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


# of the extra flinkpy[docs], whose types are not looked at
class ReadableDocstrings(griffe.Extension):  # type: ignore[misc]
    """Rewrites each docstring as the package is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
