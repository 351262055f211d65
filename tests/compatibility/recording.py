"""Which functions ran, in any thread, while programs were run under :func:`recorded`."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tests.compatibility.names import Name


class Calls:
    """The code that ran; of methods also whose it was, because a program's class answers for the
    interface it implements."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.methods: dict[str, set[type]] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            self.codes.add(code)
            if code.co_argcount and code.co_varnames[0] == "self":
                self.methods.setdefault(code.co_name, set()).add(type(frame.f_locals.get("self")))

    def ran(self, name: Name) -> bool:
        """Whether the function, or an implementation of the abstract one, was called."""
        raw = name.raw
        function = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw)
        function = inspect.unwrap(function) if callable(function) else function
        if getattr(function, "__code__", None) in self.codes:
            return True
        owner = name.owner
        # in C: seen by what was called on its objects
        if name.attribute == "__init__" and getattr(function, "__code__", None) is None:
            return inspect.isclass(owner) and any(
                issubclass(kind, owner) for kinds in self.methods.values() for kind in kinds
            )
        return inspect.isclass(owner) and any(
            _is_a(kind, owner) for kind in self.methods.get(name.attribute, ())
        )


def _is_a(kind: type, owner: type) -> bool:
    if getattr(owner, "_is_protocol", False):
        wanted = [each for each in vars(owner) if not each.startswith("_")]
        return all(hasattr(kind, each) for each in wanted)
    return issubclass(kind, owner)


@contextmanager
def recorded() -> Iterator[Calls]:
    calls = Calls()
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
