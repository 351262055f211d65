"""Values as real data has them, for property tests: strategies of values and keys, and plain
Python's answer to what is equal (``docs/values.md``).

``key_of`` gives for any key something a dict can find it by; ``shown`` tells apart what is equal
but not the same (1, 1.0, True, -0.0)."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import uuid
from collections.abc import Iterable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

Decimal = decimal.Decimal
BERLIN, UTC = ZoneInfo("Europe/Berlin"), datetime.timezone.utc

NANS: st.SearchStrategy[Any] = st.sampled_from(
    [
        lambda: float("nan"),
        lambda: -float("nan"),
        lambda: np.float64("nan"),
        lambda: np.float32("nan"),
        lambda: Decimal("nan"),
        lambda: Decimal("-NaN7"),
    ]
).map(lambda make: make())
# few numbers in many forms, so that equal ones meet
TWINS: st.SearchStrategy[Any] = st.sampled_from(
    [
        0,
        0.0,
        -0.0,
        False,
        Decimal(0),
        Decimal("-0.0"),
        np.int64(0),
        np.float32(-0.0),
        np.bool_(False),
        fractions.Fraction(0),
        0j,
        1,
        1.0,
        True,
        Decimal("1.00"),
        np.int8(1),
        np.float64(1),
        np.float16(1),
        np.bool_(True),
        1 + 0j,
        2,
        2.0,
        Decimal(2),
        np.uint64(2),
        2.5,
        Decimal("2.5"),
        np.float32(2.5),
        fractions.Fraction(5, 2),
        -1,
        -2,
        -1.0,
        2**53,
        2.0**53,
        2**53 + 1,
        2**63,
        -(2**63),
        2**64,
        2**200,
        0.1,
        Decimal("0.1"),
        np.float32(0.1),
        math.inf,
        -math.inf,
        Decimal("Infinity"),
    ]
)
TEXTS: st.SearchStrategy[Any] = st.sampled_from(
    [
        "",
        "a",
        "A",
        "1",
        "é",
        "e\u0301",
        "ß",
        "\U0001f600",
        "\x00",
        "\ud800",
        np.str_("a"),
        b"",
        b"a",
        np.bytes_(b"a"),
    ]
)
NOON = datetime.datetime(2024, 10, 27, 12)
INSTANTS: st.SearchStrategy[Any] = st.sampled_from(
    [
        NOON,
        NOON.replace(tzinfo=UTC),
        NOON.replace(hour=13, tzinfo=BERLIN),
        datetime.date(2024, 10, 27),
        NOON.replace(hour=0),
        np.datetime64(NOON),
        # the hour comes twice
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
        datetime.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
        datetime.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
        datetime.time(12, tzinfo=UTC),
        datetime.time(13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        datetime.time(12),
        datetime.timedelta(0),
        datetime.timedelta(seconds=1),
        np.timedelta64(1, "s"),
        np.datetime64("NaT", "us"),
    ]
)
ATOMS: st.SearchStrategy[Any] = (
    st.none()
    | NANS
    | TWINS
    | TEXTS
    | INSTANTS
    | st.integers(-3, 3)
    | st.floats()
    | st.just(uuid.UUID(int=7))
)
# which cannot be in one
SETS: st.SearchStrategy[Any] = st.sampled_from([np.integer, Decimal]).flatmap(
    lambda kind: st.frozensets(
        (TWINS | NANS).filter(lambda value: not isinstance(value, kind)), max_size=2
    )
)
KEYS: st.SearchStrategy[Any] = (
    ATOMS | st.tuples(ATOMS) | st.tuples(ATOMS, ATOMS) | st.tuples(ATOMS, st.tuples(ATOMS)) | SETS
)
COMPARABLE_KEYS = KEYS.filter(lambda key: may_meet([key, Decimal(0)]))
# what aggregates meet; Decimals and floats do not add up, so they are not mixed
NUMBERS: st.SearchStrategy[Any] = (
    st.integers(-9, 9)
    | st.integers()
    | st.booleans()
    | st.floats()
    | st.none()
    | st.sampled_from([0.0, -0.0, math.nan, np.int64(3), np.float64("nan")])
)
DECIMALS: st.SearchStrategy[Any] = (
    st.none()
    | st.integers(-9, 9)
    | st.sampled_from([Decimal("0.1"), Decimal("-2.50"), Decimal("NaN"), Decimal("1e30")])
)


def may_meet(keys: Iterable[Any]) -> bool:
    """Whether Python itself can compare them: numpy refuses to say whether one of its whole numbers
    equals a Decimal."""
    atoms = list(atoms_of(keys))
    return not (
        any(isinstance(atom, Decimal) for atom in atoms)
        and any(isinstance(atom, np.integer) for atom in atoms)
    )


def atoms_of(keys: Iterable[Any]) -> Iterator[Any]:
    for key in keys:
        if isinstance(key, (tuple, frozenset)):
            yield from atoms_of(key)
        else:
            yield key


def add_up(values: list[Any]) -> bool:
    """Whether Python itself can add them: what a numpy number is added to must fit into numpy's 64
    bits, and so must the sum."""
    return not any(isinstance(value, np.integer) for value in values) or all(
        abs(value) < 2**50 for value in values if type(value) is int
    )


def is_nan(value: Any) -> bool:
    """Of whichever type."""
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, complex, np.floating, np.complexfloating)) and bool(
        value != value
    )


def key_of(key: Any) -> Any:
    """What a dict finds the key by: equal for keys that are one key, and only for these."""
    if isinstance(key, tuple):
        return tuple(map(key_of, key))
    if isinstance(key, frozenset):
        return frozenset(map(key_of, key))
    if is_nan(key):
        return "NaN", is_nan
    if isinstance(key, np.datetime64 | np.timedelta64):
        return key.astype(f"{key.dtype.kind}8[us]").item()
    if isinstance(key, datetime.datetime) and key.tzinfo is not None:
        return key.astimezone(UTC)
    return key


def has_none(key: Any) -> bool:
    """Whether no join finds it: None, or a tuple with a None in it."""
    found = key_of(key)
    return found is None or (isinstance(found, tuple) and None in found)


def shown(value: Any) -> Any:
    """The value in a form that is equal only for what cannot be told apart, but that all NaNs are
    one."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(each) for each in value]
    if isinstance(value, frozenset):
        return "frozenset", sorted(map(str, map(shown, value)))
    if isinstance(value, dict):
        return "dict", [(shown(key), shown(each)) for key, each in value.items()]
    return "NaN" if is_nan(value) else f"{type(value).__name__} {value!r}"
