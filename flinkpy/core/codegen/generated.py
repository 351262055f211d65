"""Generated functions: compiled from source that tracebacks can show, and found again in a traceback."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, NamedTuple

GENERATED = "flinkpy.generated"  # the module name of generated code, so that its frames count as the engine's
_NUMBERS = itertools.count(1)


def compile_function(name: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function ``name`` of the source, with ``names`` as its globals; tracebacks show the source until it is forgotten."""
    file = f"<{GENERATED} {name} {next(_NUMBERS)}>"
    namespace: dict[str, Any] = {**names, "__name__": GENERATED}
    exec(compile(source, file, "exec"), namespace)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    function: Callable[..., Any] = namespace[name]
    return function


def forget_source(function: Callable[..., Any]) -> None:
    """Takes the source out of linecache again."""
    linecache.cache.pop(_code_of(function).co_filename, None)


class Failure(NamedTuple):
    """Where in a generated function an exception arose."""

    line: int
    variables: dict[str, Any]


def failure_in(function: Callable[..., Any], start: TracebackType | None) -> Failure | None:
    """The line and the locals of the generated function, at the moment the exception left it."""
    code, here = _code_of(function), start
    while here is not None:
        if here.tb_frame.f_code is code:
            return Failure(here.tb_lineno, here.tb_frame.f_locals)
        here = here.tb_next
    return None


def _code_of(function: Callable[..., Any]) -> CodeType:
    code: CodeType = function.__code__
    return code
