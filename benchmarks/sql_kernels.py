"""Expressions of SQL over batches: arithmetic and filters of DECIMAL and BIGINT.

They are compared with bare pyarrow and numpy, and DECIMAL with DOUBLE, in rows per second of
processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common.logical_types.data_types import DataTypes

if TYPE_CHECKING:
    from flinkpy.columns.sql.calc_compiler import CompiledCalc
    from flinkpy.common.logical_types.logical_type import LogicalType

ROWS = 8192
COLUMNS = ("price", "discount", "tax", "quantity")  # of TPC-H's lineitem
DECIMAL = DataTypes.DECIMAL(15, 2)


class Expressions:
    """Writes programs over the columns, all of one type, as binding would."""

    def __init__(self, kind: LogicalType) -> None:
        from flinkpy.columns.sql.calc_program import ProgramBuilder

        self.builder = ProgramBuilder()
        self.types: list[LogicalType] = []
        self.columns = {
            name: self._typed(self.builder.input(at, kind), kind) for at, name in enumerate(COLUMNS)
        }

    def _typed(self, number: int, kind: LogicalType) -> int:
        if number == len(self.types):
            self.types.append(kind)
        return number

    def constant(self, value: object, kind: LogicalType) -> int:
        return self._typed(self.builder.constant(value, kind), kind)

    def call(self, name: str, *operands: int) -> int:
        from flinkpy.sql.functions.built_in_functions import built_in_functions
        from flinkpy.sql.functions.function_port import Argument

        function = built_in_functions().find(name)
        assert function is not None
        signature = function.bind([Argument(self.types[each]) for each in operands], {})
        cast = []
        for each, wanted in zip(operands, signature.arguments):
            if self.types[each].with_nullable(True) != wanted.with_nullable(True):
                each = self._typed(self.builder.call("CAST", [each], wanted), wanted)
            cast.append(each)
        result = signature.result
        return self._typed(
            self.builder.call(name, cast, result, can_fail=function.can_fail), result
        )

    def compiled(self, outputs: list[int], condition: int | None = None) -> CompiledCalc:
        from flinkpy.columns.sql.calc_compiler import CompiledCalc

        names = [f"c{at}" for at in range(len(outputs))]
        return CompiledCalc(self.builder.program(outputs, condition), names)


def numbers() -> list[Any]:
    """Cents of the four columns, as lineitem has them."""
    import numpy as np

    rng = np.random.default_rng(1)
    bounds = ((90_000, 10_494_950), (0, 11), (0, 9), (100, 5001))
    return [rng.integers(low, high, ROWS) for low, high in bounds]


def batch_of(kind: LogicalType) -> Any:
    import pyarrow as pa

    from flinkpy.columns.sql.arrow_of_logical import arrow_of

    columns = [pa.array(each) for each in numbers()]
    if kind != DataTypes.BIGINT():
        columns = [pa.array([Decimal(n).scaleb(-2) for n in each.to_pylist()]) for each in columns]
        columns = [each.cast(arrow_of(kind)) for each in columns]
    return pa.record_batch(columns, names=list(COLUMNS))


def prices(kind: LogicalType) -> CompiledCalc:
    """The expressions of q1: the price with its discount, and that with the tax."""
    e = Expressions(kind)
    one, column = e.constant(1, DataTypes.INT().not_null()), e.columns
    reduced = e.call("*", column["price"], e.call("-", one, column["discount"]))
    return e.compiled([reduced, e.call("*", reduced, e.call("+", one, column["tax"]))])


def revenue(kind: LogicalType, low: object, high: object, bounds: LogicalType) -> CompiledCalc:
    """The filters of q6 and its product."""
    e = Expressions(kind)
    column = e.columns
    condition = e.call(
        "AND",
        e.call(">=", column["discount"], e.constant(low, bounds)),
        e.call("<=", column["discount"], e.constant(high, bounds)),
        e.call("<", column["quantity"], e.constant(24, DataTypes.INT().not_null())),
    )
    return e.compiled([e.call("*", column["price"], column["discount"])], condition)


def sums() -> CompiledCalc:
    """``+ - *`` of BIGINT."""
    e = Expressions(DataTypes.BIGINT())
    pair = e.columns["price"], e.columns["discount"]
    return e.compiled([e.call(sign, *pair) for sign in ("+", "-", "*")])


def rate(compute: Callable[[], object]) -> Callable[[], float]:
    """Rows per second of processor time."""
    times = 20 if quick() else 300

    def run() -> float:
        started = time.process_time()
        for _ in range(times):
            compute()
        return ROWS * times / (time.process_time() - started)

    return run


def main() -> list[Comparison]:
    import pyarrow.compute as pc

    decimals, doubles = batch_of(DECIMAL), batch_of(DataTypes.DOUBLE())
    integers = batch_of(DataTypes.BIGINT())
    price, discount, tax, _ = numbers()
    left, right = integers.column(0), integers.column(1)
    of_decimals, of_doubles = prices(DECIMAL), prices(DataTypes.DOUBLE())
    cents = DataTypes.DECIMAL(3, 2).not_null()
    q6 = revenue(DECIMAL, Decimal("0.05"), Decimal("0.07"), cents)
    q6_doubles = revenue(DataTypes.DOUBLE(), 0.05, 0.07, DataTypes.DOUBLE().not_null())
    whole = sums()
    return [
        compare(
            "SQL + - * of BIGINT",
            rate(lambda: whole(integers)),
            rate(lambda: [operate(left, right) for operate in (pc.add, pc.subtract, pc.multiply)]),
            note="against pyarrow",
        ),
        compare(
            "SQL prices of q1, DECIMAL",
            rate(lambda: of_decimals(decimals)),
            rate(lambda: (price * (100 - discount)) * (100 + tax)),
            note="against numpy on int64",
        ),
        compare(
            "SQL prices of q1, DECIMAL : DOUBLE",
            rate(lambda: of_decimals(decimals)),
            rate(lambda: of_doubles(doubles)),
        ),
        compare(
            "SQL filters of q6, DECIMAL : DOUBLE",
            rate(lambda: q6(decimals)),
            rate(lambda: q6_doubles(doubles)),
        ),
    ]
