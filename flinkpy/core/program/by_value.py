"""A pickler for a stream of records whose classes exist only in the program: it sends each class
once, then only its name.

Cloudpickle writes such a class into every pickle, which takes longer than pickling a batch of its
instances. A ``StreamPickler`` sends the class with the first batch that has an instance of it; the
reader, which reads the stream from its beginning, remembers it. Pickles that never leave the
process (``only_here``) carry no classes at all; or they leave it together with the classes that
were put aside (``definitions``)."""

from __future__ import annotations

import io
import pickle
import sys
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from flinkpy.core.program.program_pickler import dumps_any

KEPT = 4096  # the most recent classes, kept alive here even if nothing else refers to them yet

_known: WeakValueDictionary[str, type] = WeakValueDictionary()
_kept: deque[type] = deque(maxlen=KEPT)


class StreamPickler:
    """Pickles for one stream, which one reader unpickles in order. ``buffer_callback`` is that of
    ``pickle.dumps``.

    With ``definitions``, each class is put there once, under the name that stands for it in the
    pickles."""

    def __init__(
        self, *, only_here: bool = False, definitions: dict[str, bytes] | None = None
    ) -> None:
        self._only_here, self._definitions = only_here or definitions is not None, definitions
        self._names: dict[type, str | None] = {}  # None: pickled by its importable name
        self._sent: set[type] = set()

    def dumps(
        self, value: object, buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None
    ) -> bytes:
        """Raises whatever pickle raises for a value it cannot pickle."""
        file = io.BytesIO()
        pickler = _Pickler(file, 5, buffer_callback=buffer_callback)
        pickler.names = self._names
        pickler.sent = self._sent
        pickler.only_here = self._only_here
        pickler.sends = []
        pickler.definitions = self._definitions
        pickler.dump(value)
        self._sent.update(pickler.sends)
        return file.getvalue()


class _Pickler(pickle.Pickler):
    names: dict[type, str | None]
    sent: set[type]
    sends: list[type]
    only_here: bool
    definitions: dict[str, bytes] | None

    def reducer_override(self, obj: object) -> Any:
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
            if self.definitions is not None and name not in self.definitions:
                self.definitions[name] = dumps_any(obj)
        elif obj not in self.sent:
            self.sends.append(obj)
            return _defined, (name, dumps_any(obj))
        return _named, (name,)


def define(definitions: Mapping[str, bytes]) -> list[type]:
    """The classes of pickles that were made with these definitions. Whoever unpickles keeps them as
    long as the pickles."""
    return [_defined(name, data) for name, data in definitions.items()]


def _is_importable(kind: type) -> bool:
    if kind.__module__ == "__main__":  # every process has its own __main__
        return False
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind or (kind.__module__ == "builtins" and kind is type(None))


def _defined(name: str, data: bytes) -> type:
    kind = _known.get(name)
    if kind is None:
        # cloudpickle returns the class this process already has, if it has it
        kind = _known[name] = pickle.loads(data)
        _kept.append(kind)
    return kind


def _named(name: str) -> type:
    kind = _known.get(name)
    if kind is None:
        raise pickle.UnpicklingError("an instance came of a class that did not come before it")
    return kind
