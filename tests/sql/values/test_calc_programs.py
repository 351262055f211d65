"""The program of a Calc over record batches: what is computed, for which rows, and how often."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.columns.sql.calc_program import ProgramBuilder
from flinkpy.columns.sql.sql_kernels import sql_kernel_table
from flinkpy.columns.sql.sql_kernels.sql_kernel_table import SQL_KERNELS
from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    BigIntType,
    BooleanType,
    IntType,
    VarCharType,
)
from flinkpy.core.errors import BadRecordError, ProgramError

INT, BIGINT, BOOL, STRING = IntType(), BigIntType(), BooleanType(), VarCharType(length=UNBOUNDED)


class Expressions:
    """Writes programs over columns a and b of INT and t of STRING."""

    def __init__(self) -> None:
        self.builder = ProgramBuilder()
        self.a, self.b = self.builder.input(0, INT), self.builder.input(1, INT)
        self.t = self.builder.input(2, STRING)

    def number(self, value: int | None) -> int:
        return self.builder.constant(value, INT)

    def call(self, function: str, *operands: int, type: Any = BOOL) -> int:
        fails = function in ("/", "%")
        return self.builder.call(
            function, operands, type, can_fail=fails, text=f"{function} of {operands}"
        )

    def run(self, outputs: list[int], condition: int | None, batch: pa.RecordBatch) -> Any:
        names = [f"c{at}" for at in range(len(outputs))]
        return CompiledCalc(self.builder.program(outputs, condition), names).run(batch)


def batch_of(a: list[Any], b: list[Any], t: Any = None) -> pa.RecordBatch:
    texts = pa.nulls(len(a), pa.string()) if t is None else t
    columns = [pa.array(a, pa.int32()), pa.array(b, pa.int32()), texts]
    return pa.record_batch(columns, names=["a", "b", "t"])


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every call of a kernel: the function and the number of rows."""
    calls: list[tuple[str, int]] = []

    def counted(name: str, kernel_of: Any) -> Any:
        def choose(site: Any) -> Any:
            kernel = kernel_of(site)

            def kernel_of_rows(rows: int, *operands: Any) -> Any:
                calls.append((name, rows))
                return kernel(rows, *operands)

            return kernel_of_rows

        return choose

    table = {name: counted(name, kernel_of) for name, kernel_of in SQL_KERNELS.items()}
    monkeypatch.setattr(sql_kernel_table, "SQL_KERNELS", table)
    return calls


def test_columns_are_computed_for_the_rows_that_pass() -> None:
    e = Expressions()
    total = e.call("+", e.a, e.b, type=INT)
    result = e.run([total, e.a], e.call(">", e.a, e.number(1)), batch_of([1, 2, None, 4], [5] * 4))
    assert result.batch.to_pydict() == {"c0": [7, 9], "c1": [2, 4]}
    assert result.passed.to_pylist() == [False, True, False, True]


def test_without_a_condition_and_where_all_rows_pass_nothing_is_cut() -> None:
    e = Expressions()
    batch = batch_of([1, 2], [3, 4])
    assert e.run([e.a], None, batch).passed is None
    result = e.run([e.a], e.call(">", e.a, e.number(0)), batch)
    assert result.passed is None
    assert result.batch.column(0).buffers()[1].address == batch.column(0).buffers()[1].address


def test_an_expression_that_stands_twice_is_computed_once(called: list[tuple[str, int]]) -> None:
    e = Expressions()
    sums = [e.call("+", e.a, e.b, type=INT) for _ in range(2)]
    assert sums[0] == sums[1]
    outputs = [e.call("*", sums[0], e.a, type=INT), e.call("*", sums[1], e.b, type=INT)]
    e.run(outputs, e.call(">", sums[0], e.number(0)), batch_of([1, 2], [3, 4]))
    assert sorted(called) == [("*", 2), ("*", 2), ("+", 2), (">", 2)]


def test_a_batch_of_which_nothing_passes_costs_one_mask(called: list[tuple[str, int]]) -> None:
    e = Expressions()
    never, other = e.call(">", e.a, e.number(9)), e.call(">", e.b, e.number(9))
    outputs = [e.call("+", e.a, e.b, type=INT), e.call("/", e.a, e.b, type=INT)]
    result = e.run(outputs, e.call("AND", never, other), batch_of([1, 2], [3, 0]))
    assert called == [(">", 2)]
    assert result.batch.num_rows == 0
    assert result.batch.schema.types == [pa.int32(), pa.int32()]


def test_constants_are_computed_once_for_all_batches(called: list[tuple[str, int]]) -> None:
    e = Expressions()
    three = e.call("+", e.number(1), e.number(2), type=INT)
    calc = CompiledCalc(e.builder.program([e.call("+", e.a, three, type=INT), three]), ["x", "y"])
    for _ in range(3):
        assert calc(batch_of([1], [1])).to_pydict() == {"x": [4], "y": [3]}
    assert called == [("+", 1)] * 4


def test_a_condition_that_can_fail_is_computed_for_rows_that_passed_the_others() -> None:
    e = Expressions()
    quotient = e.call("/", e.number(10), e.a, type=INT)
    fails, safe = e.call(">", quotient, e.number(1)), e.call("<>", e.a, e.number(0))
    for condition in (e.call("AND", safe, fails), e.call("AND", fails, safe)):
        result = e.run([quotient], condition, batch_of([0, 2, 10, None], [1] * 4))
        assert result.batch.to_pydict() == {"c0": [5]}
        assert result.passed.to_pylist() == [False, True, False, False]


def test_branches_that_can_fail_are_computed_for_their_own_rows() -> None:
    e = Expressions()
    quotient = e.call("/", e.number(10), e.a, type=INT)
    is_zero = e.call("=", e.a, e.number(0))
    null = e.builder.call("NULLIF", [e.b, e.number(7)], INT)
    outputs = [
        e.call("CASE", is_zero, e.number(-1), quotient, type=INT),
        e.call("IF", e.call("NOT", is_zero), quotient, e.b, type=INT),
        e.call("COALESCE", null, quotient, type=INT),
        e.call("OR", is_zero, e.call(">", quotient, e.number(3))),
        e.call("AND", e.call("NOT", is_zero), e.call(">", quotient, e.number(3))),
    ]
    batch = batch_of([0, 2, 10, None, 0], [7, 7, 3, 7, 4])
    with pytest.raises(BadRecordError):
        e.run(outputs, None, batch)  # the COALESCE of the first row needs the quotient
    assert e.run(outputs, None, batch[1:]).batch.to_pydict() == {
        "c0": [5, 1, None, -1],
        "c1": [5, 1, 7, 4],
        "c2": [5, 3, None, 4],
        "c3": [True, False, None, True],
        "c4": [True, False, None, False],
    }


def test_a_failing_row_is_shown_with_the_expression() -> None:
    e = Expressions()
    quotient = e.builder.call("/", [e.a, e.b], INT, can_fail=True, text="a / b")
    condition = e.call(">", e.a, e.number(1))
    batch = batch_of([1, 2, 3, 4, 5], [0, 1, 1, 0, 1])
    with pytest.raises(
        BadRecordError, match=re.escape("a / b: division by zero, in the row (a=4,")
    ):
        e.run([quotient], condition, batch)


def test_a_function_of_a_dictionary_is_computed_once_per_distinct_value(
    called: list[tuple[str, int]],
) -> None:
    e = Expressions()
    texts = pa.array(["ax", "b", None, "ax"] * 10).dictionary_encode()
    like = e.call("LIKE", e.t, e.builder.constant("a%", STRING))
    is_null = e.call("IS NULL", e.t)
    batch = batch_of([1] * 40, [1] * 40, texts)
    found = e.run([like, is_null, e.t], None, batch).batch
    assert found.column(0).to_pylist() == [True, False, None, True] * 10
    assert found.column(1).to_pylist() == [False, False, True, False] * 10
    assert found.column(2).type == texts.type
    assert called == [("LIKE", 3), ("IS NULL", 3)]


def test_what_is_not_deterministic_is_computed_each_time() -> None:
    e = Expressions()
    draws = [e.builder.call("UUID", [], STRING, is_deterministic=False) for _ in range(2)]
    [one, other] = e.run(draws, None, batch_of([1, 2], [1, 2])).batch.columns
    assert len({*one.to_pylist(), *other.to_pylist()}) == 4


def test_expressions_nest_as_deeply_as_they_like() -> None:
    e = Expressions()
    deep = risky = condition = choice = e.a
    condition = e.call(">", e.a, e.number(0))
    for at in range(1100):
        deep = e.call("+", deep, e.b, type=INT)
        risky = e.call("/", risky, e.b, type=INT)
        condition = e.call("AND", condition, e.call("<>", e.a, e.number(-at - 1)))
        choice = e.call("IF", e.call("=", e.b, e.number(at + 2)), e.a, choice, type=INT)
    nested = e.a
    for _ in range(1100):
        nested = e.call("COALESCE", e.call("/", nested, e.b, type=INT), e.b, type=INT)
    program = e.builder.program([deep, risky, choice, nested], condition)
    found = CompiledCalc(program, ["w", "x", "y", "z"])(batch_of([5, 0], [1, 1]))
    assert found.to_pydict() == {"w": [1105], "x": [5], "y": [5], "z": [5]}


def test_a_program_without_columns_keeps_the_number_of_rows() -> None:
    e = Expressions()
    assert e.run([], None, batch_of([1, 2, 3], [1, 1, 1])).batch.num_rows == 3


def test_a_function_without_a_kernel_is_refused() -> None:
    e = Expressions()
    with pytest.raises(ProgramError, match="SOUNDEX has no kernel"):
        e.run([e.call("SOUNDEX", e.t)], None, batch_of([], []))
