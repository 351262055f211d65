"""Pickling records whose classes exist only in the program, many times over: a class goes along once, then only its name does.

Cloudpickle writes such a class out with every pickle, which takes longer than a batch of its instances. A stream sends it with the first batch that
has one; who reads the stream, from its beginning, knows it from then on. What never leaves the process (``only_here``) need not carry it at all.
"""

from __future__ import annotations

import io
import pickle
import sys
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

KEPT = 4096  # classes that came lately and are kept though nobody else may know them yet

_known: WeakValueDictionary[str, type] = WeakValueDictionary()
_kept: deque[type] = deque(maxlen=KEPT)


class StreamPickler:
    """For one stream of pickles, read in its order by one reader. ``buffer_callback`` as in ``pickle.dumps``."""

    def __init__(self, *, only_here: bool = False) -> None:
        self._only_here = only_here
        self._names: dict[type, str | None] = {}  # None: to be found by its name
        self._sent: set[type] = set()

    def dumps(self, value: Any, buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
        """Raises what pickle raises for what it cannot do, which may be other things than classes."""
        file = io.BytesIO()
        pickler = _Pickler(file, 5, buffer_callback=buffer_callback)
        pickler.names, pickler.sent, pickler.only_here, pickler.sends = self._names, self._sent, self._only_here, []
        pickler.dump(value)
        self._sent.update(pickler.sends)
        return file.getvalue()


class _Pickler(pickle.Pickler):
    names: dict[type, str | None]
    sent: set[type]
    sends: list[type]
    only_here: bool

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, type):
            return NotImplemented
        try:
            name = self.names[obj]
        except KeyError:
            name = self.names[obj] = None if _is_importable(obj) else uuid.uuid4().hex
        if name is None:
            return NotImplemented
        if self.only_here:
            _known[name] = obj  # ``names`` keeps it
        elif obj not in self.sent:
            import cloudpickle

            self.sends.append(obj)
            return _defined, (name, cloudpickle.dumps(obj, protocol=5))
        return _named, (name,)


def _is_importable(kind: type) -> bool:
    if kind.__module__ == "__main__":  # which is another one in every process
        return False
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind or (kind.__module__ == "builtins" and kind is type(None))


def _defined(name: str, data: bytes) -> type:
    kind = _known.get(name)
    if kind is None:
        kind = _known[name] = pickle.loads(data)  # the one this process has of it already, if it does: cloudpickle sees to that
        _kept.append(kind)
    return kind


def _named(name: str) -> type:
    kind = _known.get(name)
    if kind is None:
        raise pickle.UnpicklingError("an instance came of a class that did not come before it")
    return kind
