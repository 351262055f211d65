"""The one loop of keyed operators over rows, generated with the update in its middle, over a dict of states or over lent ones.

States are lent where they are no dict (``flinkpy.state.lending``). Then the keys of the batch are selected before the loop, which reads and writes a
list: the state of a record is at the place that came with its key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.generated import compile_function
from flinkpy.core.mutability import private_copy
from flinkpy.state.lending import ABSENT

# ``entered`` keeps the first record of a key, and may refuse it by raising; what was done before is in ``results``.
_LOOP = """\
def keyed_loop(values, states, results, select, entered, update):
    {names}append = results.append
    for {each} in values:
        key = {selected}
        current = {found}
        if current is absent:
            value = {first}
        else:
            value = {update}
        states[{place}] = value
        append({emitted})
"""
_OVER_DICT = {"names": "get = states.get; ", "each": "record", "found": "get(key, absent)", "place": "key", "first": "entered(record)"}
_OVER_LENT = {"names": "", "each": "key, place, record", "found": "states[place]", "place": "place", "selected": "key"}
UPDATE_LINE = 1 + next(number for number, line in enumerate(_LOOP.splitlines()) if "{update}" in line)

_NUMBERS = frozenset({int, float})

KeyedLoop = Callable[..., Any]


def loop_over_dict(update: str, emitted: str, selected: str) -> KeyedLoop:
    """Its values are records; ``update`` is an expression over ``current`` and ``record``, ``selected`` the key of ``record``."""
    return _compiled({**_OVER_DICT, "update": update, "emitted": emitted, "selected": selected})


def loop_over_lent(update: str, emitted: str, value_at: int) -> KeyedLoop:
    """Its values are (key, place, record), the states one field of pairs. A pair with a number there needs no further look."""
    first = f"record[{value_at}] if type(record) is tuple and len(record) == 2 and type(record[{value_at}]) in numbers else entered(record)"
    return _compiled({**_OVER_LENT, "update": update, "emitted": emitted, "first": first})


def _compiled(parts: dict[str, str]) -> KeyedLoop:
    return compile_function("keyed_loop", _LOOP.format(**parts), {"private_copy": private_copy, "absent": ABSENT, "numbers": _NUMBERS})


def keys_of_all(selected: str) -> KeyedLoop:
    """The function of (values, select) that gives the key of every record."""
    return compile_function("keys_of_all", f"def keys_of_all(values, select):\n    return [{selected} for record in values]\n", {})
