"""From a key to its key group and channel: the same in every process, every run and every Python
version.

``hash()`` of a string differs between processes, so it is never used for one. Equal keys (``1 ==
1.0 == True``) hash equally, because a dict treats them as one key. The columnar functions give the
same hashes as the row functions."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import fractions
import uuid
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from operator import is_
from typing import TYPE_CHECKING, Any

from flinkpy.core.codegen.idle_results import IDLE, idle_result
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DEFAULT_MAX_PARALLELISM_BOUND = 128
MAX_PARALLELISM_LIMIT = 1 << 15

_MASK = (1 << 64) - 1
_NAN = 0x7FF8000000000000
_MANY_KEYS = 1 << 10  # from here on arrays pay, and importing numpy does


NAN = float("nan")  # stands for every NaN in a key
# Types whose values have only one form as a key:
PLAIN_KEYS = frozenset(
    {int, str, bytes, bool, type(None), datetime.date, datetime.timedelta, uuid.UUID}
)


def canonical_key(key: object) -> Any:
    """The canonical form of a key, under which a dict finds it again. Nearly always this is the key
    itself.

    State tables store keys in this form. A key in another form is not found in a dict, so a caller
    need only ask for the canonical form after a look-up has failed. Every NaN becomes the one
    ``NAN``, also inside tuples, frozensets, rows and dataclasses; numpy's dates become Python's; a
    zoned datetime whose UTC offset depends on ``fold`` becomes UTC, because Python does not compare
    such datetimes by their instant.
    >>> canonical_key(("a", float("nan"))) == canonical_key(("a", float("nan")))
    True
    """
    kind = type(key)
    if kind in PLAIN_KEYS:
        return key
    if kind is float:
        return key if key == key else NAN
    if isinstance(key, tuple):
        if kind is tuple and PLAIN_KEYS.issuperset(map(type, key)):
            return key
        items = [canonical_key(item) for item in key]
        if all(map(is_, items, key)):
            return key
        return key._make(items) if hasattr(key, "_make") else tuple(items)
    return _canonical_other(key)


def canonical_keys(keys: list[Any]) -> list[Any]:
    """The canonical forms of all keys; the same list if all are of plain types.

    >>> canonical_keys([1, "a"]), canonical_keys([2.5, float("nan")])
    ([1, 'a'], [2.5, nan])
    """
    return keys if PLAIN_KEYS.issuperset(map(type, keys)) else [canonical_key(key) for key in keys]


def _canonical_other(key: object) -> Any:
    if isinstance(key, decimal.Decimal):
        hash(key)  # raises for a signaling NaN
        return NAN if key.is_nan() else key
    if isinstance(key, (float, complex)):
        return NAN if key != key else key
    if isinstance(key, datetime.datetime):
        if key != key:  # pandas' NaT
            return None
        return _instant(key) if key.utcoffset() is not None else key
    if type(key) in IDLE:
        raise idle_result(key, "what makes the key")
    if isinstance(key, frozenset):
        items = frozenset(map(canonical_key, key))
        return key if items == key else items
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        return _canonical_numpy(key)
    values = getattr(key, "_values", None)
    if values is not None and type(key).__name__ == "Row":
        items_of_row = [canonical_key(value) for value in values]
        return _with(key, {"_values": items_of_row}, items_of_row, values)
    if is_dataclass(key) and not isinstance(key, type):
        held = {field.name: getattr(key, field.name) for field in fields(key)}
        found = {name: canonical_key(value) for name, value in held.items()}
        return _with(key, found, found.values(), held.values())
    return key


def _with(key: object, changed: dict[str, Any], found: Iterable[Any], held: Iterable[Any]) -> Any:
    if all(map(is_, found, held)):
        return key
    copied = copy.copy(key)
    for name, value in changed.items():
        object.__setattr__(copied, name, value)
    return copied


def _instant(key: datetime.datetime) -> datetime.datetime:
    """The same instant in UTC if the offset depends on ``fold``. Python says such a datetime equals
    none in another zone, and that both readings of the clock are equal within one zone."""
    if key.utcoffset() == key.replace(fold=1 - key.fold).utcoffset():
        return key
    return key.astimezone(datetime.timezone.utc)


def _canonical_numpy(key: Any) -> Any:
    if key != key:  # NaN is a number, NaT is no date
        return None if key.dtype.kind in "mM" else NAN
    if key.dtype.kind in "mM":
        found = key.astype(f"{key.dtype.kind}8[us]")
        return (
            found.item()
            if found == key and isinstance(found.item(), (datetime.datetime, datetime.timedelta))
            else key
        )
    # Of numpy's floats only a long double hashes unlike its Python equal
    return float(key) if key.dtype.char == "g" else key


def mix64(value: int) -> int:
    """Spreads a 64-bit integer over all its bits (the splitmix64 finaliser, public domain)."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def stable_hash(key: Any) -> int:
    """A 64-bit hash of the key's value.

    Numbers use Python's numeric hash, which is the same everywhere and equal for equal numbers.
    Text and bytes use a checksum of their content; tuples, rows, dataclasses, enums and dates use
    their parts. Raises ProgramError for any other type.

    >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    True
    """
    kind = type(key)
    if kind is str:
        return _hash_bytes(key.encode("utf-8", "surrogatepass"), 0x73)
    if kind is int:
        return mix64(hash(key))
    if kind is tuple or isinstance(key, tuple):
        value = 0x9E3779B97F4A7C15
        for item in key:
            value = mix64(value ^ stable_hash(item))
        return value
    return _hash_other(key)


def _hash_bytes(data: bytes, salt: int) -> int:
    return mix64((zlib.crc32(data) << 32 | zlib.adler32(data)) ^ salt << 56 ^ len(data))


def _hash_other(key: object) -> int:
    key = canonical_key(key)
    if key is None:
        return 0x6E6F6E65
    if key is NAN:
        return mix64(_NAN)
    if isinstance(key, (bool, int, float, decimal.Decimal, fractions.Fraction, complex)):
        return mix64(hash(key))
    if isinstance(key, str):
        return _hash_bytes(str.__str__(key).encode("utf-8", "surrogatepass"), 0x73)
    if isinstance(key, bytes):
        return _hash_bytes(key, 0x62)
    # After the tests for values: a member that is also a number or a text equals that value
    if isinstance(key, enum.Enum):
        return _hash_bytes(f"{type(key).__qualname__}.{key.name}".encode(), 0x65)
    if isinstance(key, (datetime.datetime, datetime.time)) and key.utcoffset() is not None:
        return (
            stable_hash(since_midnight(key))
            if isinstance(key, datetime.time)
            else _hash_bytes(key.astimezone(datetime.timezone.utc).isoformat().encode(), 0x64)
        )
    if isinstance(key, (datetime.datetime, datetime.date, datetime.time)):
        return _hash_bytes(key.isoformat().encode(), 0x64)
    if isinstance(key, datetime.timedelta):
        return mix64(key // datetime.timedelta(microseconds=1) ^ 0x74)
    if isinstance(key, uuid.UUID):
        return _hash_bytes(key.bytes, 0x75)
    if isinstance(key, frozenset):
        return mix64(sum(stable_hash(item) for item in key) ^ 0x66)
    items = getattr(key, "_values", None)  # a flinkpy Row
    if items is not None and type(key).__name__ == "Row":
        return stable_hash(tuple(items))
    if is_dataclass(key) and not isinstance(key, type) and type(key).__hash__ is not None:
        return stable_hash(
            tuple(getattr(key, field.name) for field in fields(key) if field.compare)
        )
    if hasattr(key, "item") and type(key).__module__ == "numpy":
        return stable_hash(key.item())
    raise ProgramError(
        f"a key of type {type(key).__name__} cannot be hashed the same way in every "
        f"process: {key!r:.80}; "
        "let the key selector return a number, text, bytes, date, enum, frozen dataclass, "
        "or a tuple of these"
    )


def since_midnight(key: datetime.time) -> datetime.timedelta:
    """The time since midnight UTC of a time of day with a zone, which is what Python compares. It
    may be negative or more than a day."""
    return (
        datetime.datetime.combine(datetime.date.min, key.replace(tzinfo=None))
        - datetime.datetime.min
        - (key.utcoffset() or datetime.timedelta())
    )


def key_group(key: object, max_parallelism: int) -> int:
    """The key group of a key: the unit in which state moves when a job is rescaled."""
    return stable_hash(key) % max_parallelism


def key_groups(keys: Collection[Any], max_parallelism: int) -> list[int]:
    """``key_group`` of each key; of many integers, or of many texts, at a fraction of the cost.

    >>> keys = ["a", "b", "c"]
    >>> key_groups(keys, 128) == [key_group(key, 128) for key in keys]
    True
    """
    hashes = _hashes_at_once(keys) if len(keys) >= _MANY_KEYS else None
    if hashes is None:
        return [stable_hash(key) % max_parallelism for key in keys]
    groups: list[int] = (hashes % hashes.dtype.type(max_parallelism)).tolist()
    return groups


def channel_of_key_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """The index of the subtask, of ``parallelism``, that owns the group. Flink gives each subtask a
    contiguous range."""
    return group * parallelism // max_parallelism


def key_group_range(subtask_index: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups that one subtask owns.

    >>> [len(key_group_range(i, 128, 3)) for i in range(3)]
    [43, 43, 42]
    """
    start = -(-subtask_index * max_parallelism // parallelism)
    end = -(-(subtask_index + 1) * max_parallelism // parallelism)
    return range(start, end)


def default_max_parallelism(parallelism: int) -> int:
    """Flink's default: 1.5 times the parallelism, rounded up to a power of two, between 128 and
    32768."""
    wanted = parallelism + parallelism // 2
    return max(
        DEFAULT_MAX_PARALLELISM_BOUND,
        min(MAX_PARALLELISM_LIMIT, 1 << max(0, wanted - 1).bit_length()),
    )


def _hashes_at_once(keys: Collection[Any]) -> npt.NDArray[np.uint64] | None:
    """``stable_hash`` of keys that are all texts, or all integers of 64 bits; None of others."""
    kinds = set(map(type, keys))
    if kinds == {str}:
        return _text_hashes(keys)
    if kinds == {int}:
        import numpy as np

        try:
            return int64_hashes(np.fromiter(keys, np.int64, len(keys)))
        except OverflowError:
            pass
    return None


def _text_hashes(keys: Collection[str]) -> npt.NDArray[np.uint64]:
    import numpy as np

    encoded = [key.encode("utf-8", "surrogatepass") for key in keys]
    first, second, lengths = (
        np.fromiter(map(of_each, encoded), np.uint64, len(encoded))
        for of_each in (zlib.crc32, zlib.adler32, len)
    )
    return _mix64_array((first << np.uint64(32) | second) ^ np.uint64(0x73 << 56) ^ lengths)


def int64_hashes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """``stable_hash`` for a whole column of integers."""
    import numpy as np

    modulus = np.uint64((1 << 61) - 1)
    magnitude = (
        np.where(values < 0, -(values.astype(np.uint64, copy=False).view(np.int64)), values).view(
            np.uint64
        )
        % modulus
    )
    signed = np.where(values < 0, -magnitude.view(np.int64), magnitude.view(np.int64))
    signed = np.where(signed == -1, -2, signed)
    return _mix64_array(signed.view(np.uint64))


def _mix64_array(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    import numpy as np

    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: npt.NDArray[np.uint64] = value ^ (value >> np.uint64(31))
        return mixed


def tuple_hashes(items: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    """``stable_hash`` for a column of tuples, given the hashes of each item column."""
    import numpy as np

    value = np.full(len(items[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for hashes in items:
        value = _mix64_array(value ^ hashes)
    return value
