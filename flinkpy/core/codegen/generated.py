"""Functions compiled from generated source, which tracebacks can show, and which can be found again
in a traceback."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, TracebackType
from typing import Any, NamedTuple

# the module name of generated code, so that its frames count as the engine's
GENERATED = "flinkpy.generated"
_NUMBERS = itertools.count(1)


def compile_function(name: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Compiles ``source`` and returns its function ``name``, with ``names`` as globals. Tracebacks
    show the source until :func:`forget_source`."""
    file = f"<{GENERATED} {name} {next(_NUMBERS)}>"
    namespace: dict[str, Any] = {**names, "__name__": GENERATED}
    exec(_in_file(_compiled(source), file), namespace)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    function: Callable[..., Any] = namespace[name]
    return function


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    """Subtasks of one vertex, and a task that is restarted, have the same source."""
    return compile(source, f"<{GENERATED}>", "exec")


def _in_file(code: CodeType, file: str) -> CodeType:
    within = tuple(
        [_in_file(each, file) if isinstance(each, CodeType) else each for each in code.co_consts]
    )
    return code.replace(co_filename=file, co_consts=within)


def forget_source(function: Callable[..., Any]) -> None:
    """Removes the function's source from linecache."""
    linecache.cache.pop(_code_of(function).co_filename, None)


class Failure(NamedTuple):
    """Where in a generated function an exception was raised."""

    line: int
    variables: dict[str, Any]


def failure_in(function: Callable[..., Any], start: TracebackType | None) -> Failure | None:
    """The line and the local variables of the generated function when the exception left it; None
    if it is not in the traceback."""
    code, here = _code_of(function), start
    while here is not None:
        if here.tb_frame.f_code is code:
            return Failure(here.tb_lineno, here.tb_frame.f_locals)
        here = here.tb_next
    return None


def _code_of(function: Callable[..., Any]) -> CodeType:
    code: CodeType = function.__code__
    return code
