"""Entries of a state that is frozen without a copy of all of them.

A dict that is frozen stays as it is, as the *base*. What is written from then on goes into an
overlay over it, and at the next freeze into a further overlay over that one. When nobody needs the
frozen entries any more, the overlays are moved into the base, the oldest first, some entries after
each batch; then the base alone is the state again, and access costs what it always costs. So a
freeze takes the same time whatever the size, and whatever is still to be moved. What it costs
afterwards grows with the entries that are touched.

::

    no checkpoint    base                       is read and written
    frozen           base                       is not changed      <- a view
                     overlay                    is read and written
    frozen again     base, overlay              are not changed     <- a view
                     overlay                    is read and written

In the last case the values in the lower overlay go into the base while the view is still needed, if
the base has their keys. The view looks into that overlay first, so it sees no difference. Keys that
are new or gone wait until there is no view: another thread may be walking through the base. A view
counts for as long as anybody has it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from flinkpy.state.layers.overlay import Copy, Entries, Overlay, View
from flinkpy.state.state_isolation import not_saved

_FOR_EACH = 2  # entries that are moved for each one that a batch has touched
# entries; for more that were touched at once, as by timers, no more are moved, which would be a
# pause
_LARGE_BATCH = 1 << 15


class Layers:
    """The entries of the state ``name``. ``entries`` is the dict to read and write; ``rebind`` is
    called with another one at a freeze, and after a batch. ``copy`` gives a copy of a value that
    could be changed in place, and is None for values that are only replaced. Up to ``threshold``
    entries a freeze copies all of them.

    >>> layers = Layers("letters", {1: "a", 2: "b"}, lambda entries: None, None, threshold=0)
    >>> frozen = layers.freeze()
    >>> layers.entries[1] = "c"
    >>> dict(frozen), dict(layers.entries.items())
    ({1: 'a', 2: 'b'}, {1: 'c', 2: 'b'})
    >>> del frozen
    >>> layers.after_batch()
    >>> layers.entries, layers.is_settled
    ({1: 'c', 2: 'b'}, True)
    """

    at_once: ClassVar[int] = 256  # entries in a step of moving
    most: ClassVar[int] = 8  # overlays: each makes it slower to look up a key that none of them has

    def __init__(
        self,
        name: str,
        base: Entries,
        rebind: Callable[[Entries], None],
        copy: Copy | None,
        threshold: int,
    ) -> None:
        self._name = name
        self._base = base
        self._rebind = rebind
        self._copy = copy
        self._threshold = threshold
        self._overlays: list[Overlay] = []  # over the base; only the last one is written to
        # each step moves some entries of the first overlay into the base
        self._moves: Iterator[None] | None = None
        self._views: list[weakref.ref[View]] = []
        # moved, and to be emptied when these views are gone
        self._spent: list[tuple[Overlay, list[weakref.ref[View]]]] = []
        self._seen = 0  # entries in the last overlay after the last batch
        # how many of them a batch adds; of a batch that meets only keys of the one before, half as
        # many as that one
        self._touched = 0

    @property
    def entries(self) -> Entries:
        return self._overlays[-1] if self._overlays else self._base

    @property
    def is_settled(self) -> bool:
        """Whether ``after_batch`` has nothing to do."""
        return not self._overlays and not self._spent

    def freeze(self) -> Mapping[Any, Any]:
        """The entries as they are now: a View, or a copy if they are few, or if views that are
        needed for long have kept too many overlays from being moved. Raises ProgramError for a
        value that cannot be copied."""
        self._see_whether_cleared()
        if len(self._overlays) >= self.most or (
            not self._overlays and len(self._base) <= self._threshold
        ):
            return self._copied()
        if not self._overlays or not self._overlays[-1].is_untouched:
            self._cover()
        view = View(self._base, self._overlays[-1].lower)
        self._views.append(weakref.ref(view))
        return view

    def after_batch(self) -> None:
        """Moves some entries into the base, if no view needs it as it was. For each entry that
        batches touch some are moved, so this comes to an end, also if each batch touches the same
        ones."""
        self._drop_some_of_the_spent()
        self._see_whether_cleared()
        if not self._overlays:
            return
        top = self._overlays[-1]
        self._touched = min(max(top.touched - self._seen, self._touched // 2), _LARGE_BATCH)
        self._seen = top.touched
        if len(self._overlays) > 1:
            for _ in range(1 + _FOR_EACH * self._touched // self.at_once):
                self._move_some()
        elif not self._has_views():
            if top.touched + len(top.gone) > self.at_once + _FOR_EACH * self._touched:
                self._cover()
            else:
                self._put_back(top)

    # -- layers ------------------------------------------------------------------------------------

    def _cover(self) -> None:
        """Puts a new overlay over all, which are not written to any more."""
        top = Overlay(
            self._base,
            self._overlays[-1] if self._overlays else None,
            None if self._copy is None else self._copy_or_spoil,
        )
        self._overlays.append(top)
        self._seen = 0
        self._rebind(top)

    def _see_whether_cleared(self) -> None:
        """If so, nobody has what was below but views of it."""
        if self._overlays and self._overlays[-1].base is not self._base:
            del self._overlays[:-1]
            self._base = self._overlays[-1].base
            self._moves = None
            self._views = []

    def _has_views(self) -> bool:
        self._views = [view for view in self._views if view() is not None]
        return bool(self._views)

    def _all_views_include(self, overlay: Overlay) -> bool:
        return all(
            view.number >= overlay.number for each in self._views if (view := each()) is not None
        )

    # -- moving ------------------------------------------------------------------------------------

    def _move_some(self) -> None:
        if self._moves is None and len(self._overlays) > 1:
            self._moves = self._move(self._overlays[0])
        if self._moves is not None and next(self._moves, self) is self:
            self._moves = None

    def _move(self, old: Overlay) -> Iterator[None]:
        """Moves the first overlay into the base. At each ``yield`` both together hold what they
        held before, in the same order."""
        base, gone, others = self._base, old.gone, list[Any]()
        while not self._all_views_include(old):
            yield
        for part in self._parts(old.own_items()):
            values = dict(part)
            if gone or not values.keys() <= base.keys():
                others += [key for key in values if key in gone or key not in base]
                values = {key: value for key, value in part if key not in gone and key in base}
            base.update(values)
            yield
        while gone:
            yield from self._no_views()
            for _ in range(min(self.at_once, len(gone))):
                base.pop(gone.pop(), None)
            yield
        for some in self._parts(others):
            yield from self._no_views()
            for key in some:
                base[key] = old.own(key)
            yield
        del self._overlays[0]
        self._overlays[0].put_over(base, None)
        self._spent.append((old, list(self._views)))

    def _no_views(self) -> Iterator[None]:
        while self._has_views():
            yield

    def _put_back(self, top: Overlay) -> None:
        _write_over(self._base, top)
        self._overlays = []
        self._rebind(self._base)

    def _drop_some_of_the_spent(self) -> None:
        """To free many entries at once takes long."""
        if self._spent:
            overlay, views = self._spent[0]
            if all(view() is None for view in views) and not overlay.drop_some(8 * self.at_once):
                del self._spent[0]

    def _parts(self, keys: Iterable[Any]) -> Iterator[list[Any]]:
        left = iter(keys)
        while part := list(islice(left, self.at_once)):
            yield part

    # -- copies ------------------------------------------------------------------------------------

    def _copied(self) -> Entries:
        entries, copy = self._base.copy(), self._copy
        for overlay in self._overlays:
            _write_over(entries, overlay)
        try:
            return entries if copy is None else {key: copy(value) for key, value in entries.items()}
        except Exception as error:
            raise not_saved(self._name, error) from error

    def _copy_or_spoil(self, value: object) -> Any:
        """A copy; the value itself if it cannot be copied, which only a view may not outlive: the
        program goes on with it."""
        assert self._copy is not None
        try:
            return self._copy(value)
        except Exception as error:
            for each in self._views:
                if (view := each()) is not None:
                    view.error = not_saved(self._name, error)
            return value


def _write_over(entries: Entries, overlay: Overlay) -> None:
    for key in overlay.gone:
        entries.pop(key, None)
    entries.update(overlay.own_items())
