"""Paths into JSON: ``$.a[0]``, ``$['a b']``, ``$.items[*].name``, ``$..name``, ``$[1:3]``, with
``lax`` or ``strict`` before them. Without either a path is strict, as in Flink."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

_MODE = re.compile(r"\s*(strict|lax)\s+(.+)", re.IGNORECASE | re.DOTALL)
_STEP = re.compile(
    r"""(?P<deep>\.\.)?\.?(?:
        (?P<all>\*|\[\s*\*\s*\])
      | \[\s*(?P<names>(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
            (?:\s*,\s*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))*)\s*\]
      | \[\s*(?P<slice>-?\d*\s*:\s*-?\d*)\s*\]
      | \[\s*(?P<indexes>-?\d+(?:\s*,\s*-?\d+)*)\s*\]
      | (?P<name>(?<=\.)[^.\[\]()*?\s]+)
    )""",
    re.VERBOSE | re.ASCII,
)
_NAME = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")

# Gives the parts of a value that a step leads to
Step: TypeAlias = Callable[[Any], Iterator[Any]]


class NothingThereError(ValueError):
    """A path that leads nowhere."""


@dataclass(frozen=True)
class SqlJsonPath:
    """``is_definite``: it leads to one place. Other paths give an array of all that they find."""

    text: str
    is_lax: bool
    is_definite: bool
    steps: tuple[Step, ...]

    def value_in(self, document: Any) -> Any:
        """What is there. A lax path that leads nowhere gives None, a strict one raises
        NothingThereError."""
        found = [document]
        for step in self.steps:
            found = [part for each in found for part in step(each)]
        if not self.is_definite:
            return found
        if found:
            return found[0]
        if self.is_lax:
            return None
        raise NothingThereError(f"the path {self.text} leads nowhere")


@functools.lru_cache(maxsize=256)
def sql_json_path(text: str) -> SqlJsonPath:
    """Reads a path. Raises ValueError if it is none."""
    found = _MODE.fullmatch(text)
    is_lax = found is not None and found[1].lower() == "lax"
    rest = (found[2] if found else text).strip()
    if not rest.startswith("$"):
        raise ValueError(f"the path {text!r} does not begin with $")
    steps: list[Step] = []
    is_definite, at = True, 1
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ValueError(
                f"the path {text!r} cannot be read from {rest[at:]!r} on; there are .name, "
                "['name'], [0], [0,1], [0:2], [*], .* and ..name, but no filters or functions"
            )
        if match["deep"]:
            steps.append(_everything_in)
        steps.append(_step_of(match))
        is_definite = is_definite and not match["deep"] and _is_single(match)
        at = match.end()
    return SqlJsonPath(text, is_lax, is_definite, tuple(steps))


def _is_single(match: re.Match[str]) -> bool:
    if match["name"]:
        return True
    if match["names"]:
        return len(_NAME.findall(match["names"])) == 1
    return match["indexes"] is not None and "," not in match["indexes"]


def _step_of(match: re.Match[str]) -> Step:
    if match["all"]:
        return _children
    if match["name"]:
        return _named([match["name"]])
    if match["names"]:
        pairs = _NAME.findall(match["names"])
        return _named([re.sub(r"\\(.)", r"\1", one or other) for one, other in pairs])
    if match["slice"]:
        first, last = (int(each) if each.strip() else None for each in match["slice"].split(":"))
        return lambda value: iter(value[first:last] if isinstance(value, list) else ())
    return _at([int(each) for each in match["indexes"].split(",")])


def _named(names: list[str]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from (value[name] for name in names if name in value)

    return step


def _at(indexes: list[int]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (value[at] for at in indexes if -len(value) <= at < len(value))

    return step


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _everything_in(value: Any) -> Iterator[Any]:
    """The value, and all within it."""
    pending = [value]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(reversed(list(_children(each))))
