"""The loop of all keyed operators over rows, generated with the update in its middle.

The loop looks up each key as it comes. Only if it is not found, the loop tries its canonical form
(``flinkpy.core.keys.canonical_key``), under which an equal key may be stored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from flinkpy.core.codegen.expression_trees import parsed
from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.keys import PLAIN_KEYS, canonical_key
from flinkpy.operators.output.output_isolation import not_idle, private
from flinkpy.operators.rows.keyed_pairs import PairForm
from flinkpy.state.heap.batch_view import ABSENT

# ``entered`` returns the value for a key's first record, and may refuse it by raising; ``results``
# then has the results so far.
_LOOP = """\
def keyed_loop(values, states, results, select, entered, update):
    get = states.get; append = results.append
    for {each} in values:
        key = {selected}
        current = get(key, absent)
        if current is absent:
            if type(key) not in plain:
                key = canonical(key)
                current = get(key, absent)
            value = entered(record) if current is absent else update(current, record)
        else:
            {update}
        states[key] = value
        append({emitted})
"""
_OVER_LENT = """\
def keyed_loop(values, states, results, odd):
    append = results.append
    for key, place, record in values:
        current = states[place]
        if current is absent:
            if not ({is_pair}):
                raise odd
            value = {first}
        else:
            value = {update}
        states[place] = value
        append({emitted})
"""
_NUMBERS = frozenset({int, float})
UPDATE_LINE, LENT_UPDATE_LINE = (
    1 + next(number for number, line in enumerate(loop.splitlines()) if "{update}" in line)
    for loop in (_LOOP, _OVER_LENT)
)

CALLED = "update(current, record)"  # the update as a call of its function

KeyedLoop = Callable[..., Any]

_NAMES = {
    "absent": ABSENT,
    "canonical": canonical_key,
    "not_idle": not_idle,
    "plain": PLAIN_KEYS,
    "private": private,
}


def keyed_loop(update: str, emitted: str, selected: str, falls_back: bool) -> KeyedLoop:
    """The loop over records. ``update`` is an expression over ``current`` and ``record``;
    ``selected`` one for the key of ``record``."""
    return _compiled(
        each="record",
        update=assigned("value", update, falls_back, 12),
        emitted=emitted,
        selected=selected,
    )


def makes_objects(update: str) -> bool:
    """Whether the update could turn values that cannot be changed in place into one that can.

    >>> (
    ...     makes_objects("(current[0], max(current[1], record[1]))"),
    ...     makes_objects("(current[0], [record[1]])"),
    ...     makes_objects(CALLED),
    ... )
    (False, True, True)
    """
    return any(
        isinstance(node, ast.List) or (isinstance(node, ast.Call) and not _gives_atoms(node.func))
        for node in ast.walk(parsed(update))
    )


def _gives_atoms(called: ast.expr) -> bool:
    """Whether it is a builtin other than ``list``."""
    return isinstance(called, ast.Name) and called.id not in ("list", "update")


def loop_over_view(form: PairForm) -> KeyedLoop:
    """The loop over the states of a batch view: it gets (key, place, record), and each state is the
    value of a pair."""
    value = f"record[{1 - form.key_at}]"
    is_pair = f"type(record) is tuple and len(record) == 2 and type({value}) in numbers"
    text = _OVER_LENT.format(first=value, is_pair=is_pair, update=form.update, emitted=form.emitted)
    return compile_function("keyed_loop", text, {"absent": ABSENT, "numbers": _NUMBERS})


def assigned(name: str, update: str, falls_back: bool, indent: int) -> str:
    """The statement that assigns the update to ``name``. With ``falls_back`` it calls ``update``,
    which handles all values, if the expression raises; the ``try`` costs nothing."""
    if not falls_back or update == CALLED:
        return f"{name} = {update}"
    margin = " " * indent
    return (
        f"try:\n{margin}    {name} = {update}\n{margin}except Exception:\n{margin}    {name} "
        "= update(current, record)"
    )


def _compiled(**parts: str) -> KeyedLoop:
    return compile_function("keyed_loop", _LOOP.format(**parts), _NAMES)


def keys_of_all(selected: str) -> KeyedLoop:
    """A function of (values, select) that returns the key of every record."""
    return compile_function(
        "keys_of_all",
        f"def keys_of_all(values, select):\n    return [{selected} for record in values]\n",
        {},
    )
