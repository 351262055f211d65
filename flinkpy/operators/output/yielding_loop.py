"""The loop that calls a process function for each record and collects its results, generated for
the kind of records.

It has lines for timestamps, keys, expiring state and copies only if they are needed. A key selector
that is an expression is inlined (``flinkpy.core.codegen.inlining``), because a call usually costs
more than the expression. So is the test whether a result could be changed in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import GeneratorType
from typing import Any, NamedTuple

from flinkpy.core.codegen.generated import compile_function, forget_source
from flinkpy.core.codegen.idle_results import IDLE
from flinkpy.core.keys import PLAIN_KEYS, canonical_key
from flinkpy.core.mutability import ATOMS
from flinkpy.operators.output.output_isolation import all_private, none_idle, not_idle, private

MOMENT_S = 0.02  # results wait at most this long for further ones
FEW = 3  # up to this many results of one call are checked one by one, more of them all at once
LONGEST_STRIDE = 16  # at most this many results come between two readings of the clock
_NAMES = {
    "ATOMS": ATOMS,
    "private": private,
    "all_private": all_private,
    "PLAIN_KEYS": PLAIN_KEYS,
    "canonical_key": canonical_key,
    "GENERATOR": GeneratorType,
    "IDLE": IDLE,
    "none_idle": none_idle,
    "not_idle": not_idle,
    "MOMENT_S": MOMENT_S,
    "FEW": FEW,
    "LONGEST_STRIDE": LONGEST_STRIDE,
}
_FAST = "ATOMS=ATOMS, PLAIN_KEYS=PLAIN_KEYS, GENERATOR=GENERATOR"  # locals of the loop


class LoopKind(NamedTuple):
    """What a loop has to do. ``key``: the expression for a record's key. ``hashes``: the loop
    checks that the key can be hashed."""

    stamped: bool
    copies: bool
    endless: bool
    key: str | None = None
    hashes: bool = False
    expires: bool = False


class ResultLoop:
    """The loop as a generator function, and the numbers of its lines that select a key."""

    def __init__(self, kind: LoopKind) -> None:
        lines = list(_lines(kind))
        self.function: Callable[..., Any] = compile_function(
            "result_loop", "\n".join(lines) + "\n", _NAMES
        )
        self.key_lines = frozenset(
            number for number, line in enumerate(lines, 1) if line.lstrip().startswith("key = ")
        )
        # loops are cached and shared, so their source would stay in linecache
        forget_source(self.function)


@lru_cache(256)
def result_loop(kind: LoopKind) -> ResultLoop:
    """The loop of that kind, compiled once."""
    return ResultLoop(kind)


def private_lines(value: str, indent: int) -> list[str]:
    """Statements that set ``value`` to ``private(value)``; for numbers, text and tuples of these
    without a call.

    >>> len(private_lines("x", 0))
    12
    """
    changed = f"{value} = private({value})"
    return _indented(
        indent,
        f"""\
if type({value}) is tuple:
    if len({value}) == 2:
        one, other = {value}
        if type(one) not in ATOMS or type(other) not in ATOMS:
            {changed}
    else:
        for part in {value}:
            if type(part) not in ATOMS:
                {changed}
                break
elif type({value}) not in ATOMS:
    {changed}""",
    )


def _indented(indent: int, text: str) -> list[str]:
    return ["    " * indent + line for line in text.splitlines()]


def _lines(kind: LoopKind) -> list[str]:
    lines = [
        (
            "def result_loop(records, stamps, process, at, make, output, now, limit, select, "
            f"current, clock, {_FAST}):"
        )
    ]
    lines += _indented(
        1,
        f"""\
results, until, left, stride = make({kind.stamped}), now() + MOMENT_S, 1, 1
out, kept, record = results.values, results.stamps, None""",
    )
    if kind.stamped:
        lines += _indented(1, "for record, at._timestamp in zip(records, stamps):")
    else:
        lines += _indented(1, "at._timestamp = None\nfor record in records:")
    lines += _indented(2, _key(kind))
    lines += _indented(
        2,
        "given = process(record, at)\nif given is None:\n    continue\nkind = type(given)\n"
        "if kind is not GENERATOR and (kind is list or kind is tuple):",
    )
    lines += _of_list(kind)
    lines += _one_by_one(kind)
    if kind.stamped:
        lines += _stamping(2)
    if kind.endless:
        lines += _indented(2, "if len(out) >= limit:") + _emitting(kind, 3)
    return [*lines, "    return results"]


def _key(kind: LoopKind) -> str:
    if kind.key is None:
        return ""
    hashing = "\nhash(key)" if kind.hashes else ""
    clock = "\ncurrent.now_ns = clock()" if kind.expires else ""
    return (
        f"key = {kind.key}{hashing}\ncurrent.key = key if type(key) in PLAIN_KEYS else "
        f"canonical_key(key){clock}"
    )


def _of_list(kind: LoopKind) -> list[str]:
    """Lines that take a list or tuple of results as a whole."""
    if not kind.copies:
        return _indented(3, "out += none_idle(given)")
    lines = _indented(
        3, "if len(given) > FEW:\n    out += all_private(given)\nelse:\n    for value in given:"
    )
    return [*lines, *private_lines("value", 5), *_indented(5, "out.append(value)")]


def _one_by_one(kind: LoopKind) -> list[str]:
    lines = _indented(2, "else:\n    for value in given:")
    if kind.copies:
        lines += private_lines("value", 4)
    else:
        lines += _indented(4, "if type(value) in IDLE:\n    not_idle(value)")
    lines += _indented(
        4,
        (
            "out.append(value)\nleft -= 1\nif left <= 0:\n    if len(out) >= limit or now() >= "
            "until:"
        ),
    )
    if kind.stamped:
        lines += _stamping(6)
    lines += _emitting(kind, 6)
    lines += _indented(6, "stride = 1")
    return lines + _indented(
        5, "else:\n    stride = min(2 * stride, LONGEST_STRIDE)\nleft = stride"
    )


def _stamping(indent: int) -> list[str]:
    """Lines that give the record's timestamp to the results that have none yet."""
    return _indented(
        indent,
        """\
missing = len(out) - len(kept)
if missing == 1:
    kept.append(at._timestamp)
elif missing:
    kept += [at._timestamp] * missing""",
    )


def _emitting(kind: LoopKind, indent: int) -> list[str]:
    clock = "\ncurrent.now_ns = clock()" if kind.expires else ""
    return _indented(
        indent,
        f"""\
results.emit(output)
yield{clock}
results, until = make({kind.stamped}), now() + MOMENT_S
out, kept = results.values, results.stamps""",
    )
