"""A declared type that gained fields takes over what was saved; any other change is refused with
both types."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.common.types import Row, RowKind
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ProgramError
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.operator_backend import OperatorStateBackend
from tests.state.helpers import Mean, backend, seconds
from tests.state_bytes import keyed_bytes

pytestmark = pytest.mark.usefixtures("each_backend")

OLD = Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()])
NEW = Types.ROW_NAMED(
    ["id", "name", "born", "city"], [Types.LONG(), Types.STRING(), Types.INT(), Types.STRING()]
)
ADA, NEW_ADA = Row(name="Ada", born=1815), Row(id=None, name="Ada", born=1815, city=None)


def restored(old: StateDescriptor, fill: Any, new: StateDescriptor) -> Any:
    """The state that the new descriptor gives where the old one was filled at key ``k``."""
    clock, held = ManualClock(1), backend(ManualClock(1))
    state = held.state(old)
    held.current.key = "k"
    fill(state)
    again = backend(clock)
    again.restore(keyed_bytes(held))
    again.current.key = "k"
    found = again.state(new)
    onward = backend(clock)  # what it saves is of the new type
    onward.restore(keyed_bytes(again))
    onward.current.key = "k"
    assert repr(onward.state(new)) == repr(found)
    return found


@pytest.mark.parametrize("expiring", [False, True])
def test_states_of_all_kinds_restore_with_none_in_new_fields(expiring: bool) -> None:
    def declared(descriptor: StateDescriptor) -> StateDescriptor:
        if expiring:
            descriptor.enable_time_to_live(seconds(1000).build())
        return descriptor

    def values(of: TypeInformation) -> list[StateDescriptor]:
        return [
            declared(each)
            for each in (
                ValueStateDescriptor("v", of),
                ListStateDescriptor("l", of),
                MapStateDescriptor("m", Types.STRING(), of),
                ReducingStateDescriptor("r", lambda a, b: b, of),
                AggregatingStateDescriptor("a", Mean(), Types.LIST(of)),
            )
        ]

    old, new = values(OLD), values(NEW)
    assert restored(old[0], lambda state: state.update(ADA), new[0]).value() == NEW_ADA
    assert list(restored(old[1], lambda state: state.update([ADA, ADA]), new[1]).get()) == [
        NEW_ADA,
        NEW_ADA,
    ]
    assert dict(restored(old[2], lambda state: state.put("a", ADA), new[2]).items()) == {
        "a": NEW_ADA
    }
    assert restored(old[3], lambda state: state.add(ADA), new[3]).get() == NEW_ADA


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (ADA, NEW_ADA),
        (Row("Ada", 1815), Row(None, "Ada", 1815, None)),
        (("Ada", 1815), (None, "Ada", 1815, None)),
        (["Ada", 1815], [None, "Ada", 1815, None]),
        ({"name": "Ada", "born": 1815}, {"id": None, "name": "Ada", "born": 1815, "city": None}),
    ],
    ids=repr,
)
def test_whatever_the_row_was_kept_as(value: Any, wanted: Any) -> None:
    found = restored(
        ValueStateDescriptor("v", OLD),
        lambda state: state.update(value),
        ValueStateDescriptor("v", NEW),
    ).value()
    assert found == wanted
    assert isinstance(found, Row) == isinstance(value, Row)


def test_a_rows_kind_stays() -> None:
    row = Row(name="Ada", born=1815)
    row.set_row_kind(RowKind.DELETE)
    found = restored(
        ValueStateDescriptor("v", OLD),
        lambda state: state.update(row),
        ValueStateDescriptor("v", NEW),
    ).value()
    assert found.get_row_kind() is RowKind.DELETE


def test_rows_inside_of_values_gain_fields_too() -> None:
    def nested(of: TypeInformation) -> TypeInformation:
        return Types.TUPLE(
            [
                Types.LONG(),
                Types.LIST(of),
                Types.MAP(Types.STRING(), of),
                Types.ROW_NAMED(["inner"], [of]),
            ]
        )

    value = (7, [ADA, None], {"a": ADA}, Row(inner=ADA))
    with pytest.raises(ProgramError, match="was saved as"):  # the outer row lost a field
        restored(
            ValueStateDescriptor("v", Types.ROW_NAMED(["inner"], [OLD])),
            lambda state: state.update(Row(inner=ADA)),
            ValueStateDescriptor("v", Types.ROW_NAMED(["other"], [NEW])),
        )
    found = restored(
        ValueStateDescriptor("v", nested(OLD)),
        lambda state: state.update(value),
        ValueStateDescriptor("v", nested(NEW)),
    ).value()
    assert found == (7, [NEW_ADA, None], {"a": NEW_ADA}, Row(inner=NEW_ADA))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OLD, Types.ROW_NAMED(["name"], [Types.STRING()])),
        (OLD, Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.LONG()])),
        (
            OLD,
            Types.ROW_NAMED(
                ["name", "year", "city"], [Types.STRING(), Types.INT(), Types.STRING()]
            ),
        ),
        (Types.INT(), Types.LONG()),
        (Types.ROW([Types.INT()]), Types.TUPLE([Types.INT()])),
        (Types.TUPLE([Types.INT()]), Types.TUPLE([Types.INT(), Types.INT()])),
        (Types.LIST(Types.INT()), Types.LIST(Types.STRING())),
        (Types.MAP(Types.INT(), OLD), Types.MAP(Types.LONG(), NEW)),
        (Types.INT(), None),
    ],
    ids=repr,
)
def test_any_other_change_is_refused_with_both_types(
    before: TypeInformation, after: TypeInformation | None
) -> None:
    with pytest.raises(ProgramError) as refused:
        restored(
            ValueStateDescriptor("v", before),
            lambda state: state.update(ADA),
            ValueStateDescriptor("v", after),
        )
    both = (
        f"state 'v' was saved as a value state of {before!r}, and the program declares a "
        f"value state of {after!r}: only fields"
    )
    assert str(refused.value).startswith(both)


def test_a_value_that_was_not_of_its_declared_type_is_named() -> None:
    with pytest.raises(
        ProgramError, match="state 'v' holds 5, which is not of the type that was declared"
    ):
        restored(
            ValueStateDescriptor("v", OLD),
            lambda state: state.update(5),
            ValueStateDescriptor("v", NEW),
        )


def test_one_program_cannot_declare_two_types_of_one_state() -> None:
    held = backend()
    held.state(ValueStateDescriptor("v", OLD))
    with pytest.raises(
        ProgramError, match=r"'v' is a value state of .* and cannot be a value state of"
    ):
        held.state(ValueStateDescriptor("v", NEW))


def test_operator_state_gains_fields_too() -> None:
    held = OperatorStateBackend()
    held.get_list_state(ListStateDescriptor("l", OLD)).add(ADA)
    held.get_broadcast_state(MapStateDescriptor("b", Types.STRING(), OLD)).put("a", ADA)
    saved = held.snapshot(1, 1)
    again = OperatorStateBackend()
    again.restore(saved)
    assert list(again.get_list_state(ListStateDescriptor("l", NEW)).get()) == [NEW_ADA]
    assert dict(
        again.get_broadcast_state(MapStateDescriptor("b", Types.STRING(), NEW)).items()
    ) == {"a": NEW_ADA}
    other = OperatorStateBackend()
    other.restore(saved)
    with pytest.raises(
        ProgramError,
        match=(
            r"'l' was saved as a list state of .*OW_NAMED.* and the program declares a list state "
            r"of .*LONG"
        ),
    ):
        other.get_list_state(ListStateDescriptor("l", Types.LONG()))
    with pytest.raises(ProgramError, match="'b' was saved as a broadcast state"):
        other.get_broadcast_state(MapStateDescriptor("b", Types.LONG(), NEW))
