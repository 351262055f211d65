"""For each kind of state: how its stored form becomes the form in snapshots and back, and how
expired parts are removed from it.

A value has expired if it was last touched at or before a deadline: the present less the time to
live."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import private_copy
from flinkpy.state.descriptors import StateKind
from flinkpy.state.layers.overlay import looking_at
from flinkpy.state.state_isolation import PrivateCopy, adopt, reveal
from flinkpy.state.ttl.stamps import NS_PER_MS, Stamped

NEVER = 1 << 80  # later than any time there is


class Swept(NamedTuple):
    """The result of a sweep."""

    removed: int
    earliest_ns: int  # the earliest touch of what is left; NEVER if nothing is left


class Form(NamedTuple):
    """``dump`` returns the form in a snapshot, ``load`` the stored form again.

    ``alive(stored, deadline)`` returns the stored form without expired parts, or None if nothing is
    left; it does not change ``stored``. ``sweep(entries, keys, deadline)`` removes what has expired
    at these keys. ``private`` gives a copy of a stored form that may be changed in place, and the
    stored form itself if it may not; it is None where stored forms are only replaced."""

    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    alive: Callable[[Any, int], Any]
    sweep: Callable[[dict[Any, Any], Iterable[Any], int], Swept]
    private: Callable[[Any], Any] | None


def form_of(kind: StateKind, expires: bool) -> Form:
    """The form of a kind of state."""
    if kind in (StateKind.ENGINE, StateKind.REGION, StateKind.TIMED):
        return Form(same, same, _always, _sweep_single, private_copy)
    dump, load = (_dump_stamped, _load_stamped) if expires else (reveal, adopt)
    if kind is StateKind.LIST:
        return Form(
            lambda stored: [dump(each) for each in stored],
            lambda saved: [load(each) for each in saved],
            _alive_list,
            _sweep_many(_alive_list),
            list.copy,
        )
    if kind is StateKind.MAP:
        return Form(
            lambda stored: {key: dump(each) for key, each in stored.items()},
            # pickled, a NaN is another one
            lambda saved: {canonical_key(key): load(each) for key, each in saved.items()},
            _alive_map,
            _sweep_many(_alive_map),
            dict.copy,
        )
    if kind is StateKind.VALUE:
        return Form(dump, load, _alive_single, _sweep_single, None)
    return Form(dump, load, _alive_single, _sweep_single, _private_stamped if expires else _private)


def _private(stored: object) -> Any:
    return PrivateCopy(private_copy(stored.value)) if type(stored) is PrivateCopy else stored


def _private_stamped(stamped: Stamped) -> Stamped:
    found = _private(stamped[0])
    return stamped if found is stamped[0] else (found, stamped[1])


def same(value: object) -> Any:
    """The form of what is stored as it is."""
    return value


def _dump_stamped(stamped: Stamped) -> tuple[Any, int]:
    return reveal(stamped[0]), stamped[1] // NS_PER_MS


def _load_stamped(saved: tuple[Any, int]) -> Stamped:
    return adopt(saved[0]), saved[1] * NS_PER_MS


def _always(stored: object, deadline: int) -> Any:
    return stored


def _alive_single(stored: Stamped, deadline: int) -> Stamped | None:
    return stored if stored[1] > deadline else None


def _alive_list(stored: list[Stamped], deadline: int) -> list[Stamped] | None:
    return [each for each in stored if each[1] > deadline] or None


def _alive_map(stored: dict[Any, Stamped], deadline: int) -> dict[Any, Stamped] | None:
    return {key: each for key, each in stored.items() if each[1] > deadline} or None


def _sweep_single(entries: dict[Any, Stamped], keys: Iterable[Any], deadline: int) -> Swept:
    get, gone, earliest = looking_at(entries), [], NEVER
    for key in keys:
        stored = get(key)
        if stored is not None:
            touched = stored[1]
            if touched <= deadline:
                gone.append(key)
            elif touched < earliest:
                earliest = touched
    for key in gone:
        del entries[key]
    return Swept(len(gone), earliest)


def _sweep_many(
    alive: Callable[[Any, int], Any],
) -> Callable[[dict[Any, Any], Iterable[Any], int], Swept]:
    def sweep(entries: dict[Any, Any], keys: Iterable[Any], deadline: int) -> Swept:
        get, removed, earliest = looking_at(entries), 0, NEVER
        for key in keys:
            stored = get(key)
            if stored is None:
                continue
            left = alive(stored, deadline)
            if left is None:
                del entries[key]
                removed += 1
                continue
            if len(left) < len(stored):
                entries[key] = left
            earliest = min(
                earliest,
                min([each[1] for each in (left.values() if isinstance(left, dict) else left)]),
            )
        return Swept(removed, earliest)

    return sweep
