"""Entries written over others which stay as they are: the dict that states read and write while
what was frozen is still needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from flinkpy.core.errors import ProgramError

Entries: TypeAlias = "dict[Any, Any]"
Copy: TypeAlias = "Callable[[Any], Any]"

_MISSING: Any = object()
_own, _own_pop, _own_popitem, _own_items = dict.get, dict.pop, dict.popitem, dict.items


class Overlay(dict[Any, Any]):
    """As a mapping, all entries. Of its own it has what was written to it; ``gone`` are keys that
    were removed from what is below it: the base, or another overlay over the base. ``copy`` gives a
    copy of a value that could be changed in place, and is None for values that are only replaced.

    >>> base = {"a": 1, "b": 2}
    >>> overlay = Overlay(base, None, None)
    >>> overlay["a"] = 3
    >>> del overlay["b"]
    >>> dict(overlay.items()), base
    ({'a': 3}, {'a': 1, 'b': 2})
    """

    __slots__ = ("_below", "_copy", "base", "gone", "lower", "number")

    def __init__(self, base: Entries, lower: Overlay | None, copy: Copy | None) -> None:
        super().__init__()
        # rises with each one that is put over another
        self.number: int = 1 if lower is None else lower.number + 1
        self._copy, self.gone = copy, set[Any]()
        self.put_over(base, lower)

    def put_over(self, base: Entries, lower: Overlay | None) -> None:
        """What it looks into."""
        self.base, self.lower = base, lower
        self._below = base.get if lower is None else lower.peek

    # -- one key -----------------------------------------------------------------------------------

    def peek(self, key: object, default: object = None) -> Any:
        """The value, only to be looked at."""
        found = _own(self, key, _MISSING)
        if found is not _MISSING:
            return found
        return default if key in self.gone else self._below(key, default)

    def get(self, key: object, default: object = None) -> Any:
        """The value. If it can be changed in place, it is the overlay's own from now on."""
        found = _own(self, key, _MISSING)
        if found is not _MISSING:
            return found
        if key in self.gone:
            return default
        found = self._below(key, _MISSING)
        if found is _MISSING:
            return default
        if self._copy is not None:
            copied = self._copy(found)
            if copied is not found:
                self[key] = found = copied
        return found

    def pop(self, key: object, *default: Any) -> Any:
        found = self.peek(key, _MISSING)
        if found is _MISSING:
            if not default:
                raise KeyError(key)
            return default[0]
        _own_pop(self, key, None)
        if self._below(key, _MISSING) is not _MISSING:
            self.gone.add(key)
        return found

    def __getitem__(self, key: object) -> Any:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __delitem__(self, key: object) -> None:
        self.pop(key)

    def __contains__(self, key: object) -> bool:
        return self.peek(key, _MISSING) is not _MISSING

    def setdefault(self, key: object, default: object = None) -> Any:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            self[key] = found = default
        return found

    # -- all keys ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """In the order in which a dict would have them."""
        # read once: another thread may walk through it while it is put over the base
        gone = self.gone
        lower = self.lower
        below = self.base if lower is None else lower
        yield from (key for key in below if key not in gone) if gone else below
        yield from (
            key
            for key in dict.__iter__(self)
            if key in gone or self._below(key, _MISSING) is _MISSING
        )

    def __len__(self) -> int:
        below = len(self.base) if self.lower is None else len(self.lower)
        return (
            below
            - len(self.gone)
            + sum(
                1
                for key in dict.__iter__(self)
                if key in self.gone or self._below(key, _MISSING) is _MISSING
            )
        )

    def __bool__(self) -> bool:
        return next(iter(self), _MISSING) is not _MISSING

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        return [self.peek(key) for key in self]

    def items(self) -> Any:
        return [(key, self.peek(key)) for key in self]

    def copy(self) -> Entries:
        return dict(self.items())

    def clear(self) -> None:
        super().clear()
        self.gone.clear()
        self.put_over({}, None)

    @property
    def bound(self) -> int:
        """Not less than the number of all entries."""
        return self.touched + (len(self.base) if self.lower is None else self.lower.bound)

    @property
    def is_untouched(self) -> bool:
        """Whether it adds nothing to what is below it."""
        return not self.gone and not self.touched

    @property
    def touched(self) -> int:
        """How many entries it holds itself."""
        return dict.__len__(self)

    def own(self, key: object) -> Any:
        """The value of a key that it holds itself."""
        return _own(self, key)

    def own_items(self) -> Iterator[tuple[Any, Any]]:
        """The entries it holds itself."""
        return iter(_own_items(self))

    def drop_some(self, count: int) -> bool:
        """Drops so many of the entries it holds itself; False if there are none left."""
        for _ in range(min(count, self.touched)):
            _own_popitem(self)
        return self.touched > 0

    def __repr__(self) -> str:
        return (
            f"<Overlay: {self.touched} written, {len(self.gone)} removed, over "
            f"{len(self.base)} entries>"
        )


class View(Mapping[Any, Any]):
    """The entries as they were at a freeze: an overlay that nobody writes to any more, or the base
    without one."""

    def __init__(self, base: Entries, lower: Overlay | None) -> None:
        self._entries, self.lower = base if lower is None else lower, lower
        self._look_up = base.get if lower is None else lower.peek
        self.number = 0 if lower is None else lower.number  # of the last overlay that it includes
        self.error: ProgramError | None = None  # why it can no longer be trusted

    def parts(self, size: int) -> Iterator[tuple[list[Any], list[Any]]]:
        """Keys and their values, so many at a time."""
        if self.lower is None:
            yield from parts_of_entries(self._entries, size)
            return
        keys, look_up = iter(self), self._look_up
        while part := list(islice(keys, size)):
            yield part, [look_up(key) for key in part]

    def check(self) -> None:
        """Raises ProgramError if an entry may have changed."""
        if self.error is not None:
            raise self.error

    def __getitem__(self, key: object) -> Any:
        found = self._look_up(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def looking_at(entries: Entries) -> Callable[..., Any]:
    """A function like ``entries.get``, whose values are only looked at."""
    return entries.peek if type(entries) is Overlay else entries.get


def at_most(entries: Entries) -> int:
    """Not less than the number of entries; counting those of an overlay takes long."""
    return entries.bound if type(entries) is Overlay else len(entries)


def parts_of_entries(
    entries: Mapping[Any, Any], size: int
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Keys and their values, so many at a time."""
    if isinstance(entries, View):
        yield from entries.parts(size)
        return
    keys, values = iter(entries), iter(entries.values())
    while part := list(islice(keys, size)):
        yield part, list(islice(values, size))
