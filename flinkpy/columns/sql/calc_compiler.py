"""Compiles the program of a Calc, once per operator, into a function over record batches.

A node that cannot fail is computed for all rows of a frame. One that can fail is computed only for
the rows that need it: those that passed all conditions before it, and within CASE, COALESCE, AND
and OR those that come to it. These rows are a frame of their own, which takes what was computed
already from the frame around it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrays_of_values import scalar_of_value
from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.calc_program import CalcProgram, CallNode, ConstantNode, InputNode
from flinkpy.columns.sql.call_site import Kernel
from flinkpy.columns.sql.row_errors import VALUE_ERRORS, batch_error, row_error
from flinkpy.columns.sql.sql_kernels.numbers.decimal_halves import DecimalColumn, array_of_column
from flinkpy.columns.sql.sql_kernels.numbers.decimal_kernels import ColumnKernel
from flinkpy.columns.sql.user_code import FailingValue, UserCode
from flinkpy.common.logical_types.logical_type import DecimalType
from flinkpy.core.errors import ProgramError

# Computing a node: it asks for other nodes, each in a frame, and gives its array
_Asked: TypeAlias = "tuple[int, _Frame]"
_Computing: TypeAlias = "Generator[_Asked, Any, Any]"


@dataclass(frozen=True)
class CalcResult:
    """``passed`` says of each row of the input whether it is there; None: all are."""

    batch: pa.RecordBatch
    passed: pa.BooleanArray | None


class CompiledCalc:
    """A program with its kernels. ``names`` are those of the columns that it makes. If it calls
    functions of the program, ``context`` is what the operator gives to them as they are opened,
    and ``close`` closes them."""

    def __init__(self, program: CalcProgram, names: Sequence[str], context: object = None) -> None:
        self._program = program
        self._names = list(names)
        self._kinds = [arrow_of(node.type) for node in program.nodes]
        self._is_unsafe = [False] * len(program.nodes)
        self._opened = _Codes(program, context)
        self._constants: dict[int, Any] = {}
        self._steps: dict[int, _Step] = {}
        for number, node in enumerate(program.nodes):
            if isinstance(node, ConstantNode):
                self._constants[number] = scalar_of_value(node.value, node.type)
            elif isinstance(node, CallNode):
                self._add_step(number, node)
        self._plans: dict[int, list[int]] = {}

    def close(self) -> None:
        """Closes the functions of the program."""
        self._opened.close()

    def _add_step(self, number: int, node: CallNode) -> None:
        from flinkpy.columns.sql.sql_kernels.sql_kernel_table import SQL_KERNELS

        kernel_of = SQL_KERNELS.get(node.function) if node.code is None else node.code.kernel
        if kernel_of is None:
            raise ProgramError(f"{node.function} has no kernel yet: it cannot be computed")
        step = _Step(node, kernel_of(node.site), self._kinds[number])
        is_constant = all(each in self._constants for each in node.operands)
        if is_constant and node.is_deterministic and node.code is None:
            try:
                operands = [self._constants[each] for each in node.operands]
                self._constants[number] = _column(step.run(1, operands), 1)[0]
                return
            except VALUE_ERRORS:
                pass  # fails for the rows that need it, if there are any
        self._is_unsafe[number] = node.can_fail or any(
            map(self._is_unsafe.__getitem__, node.operands)
        )
        self._steps[number] = step

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the rows that pass."""
        return self.run(batch).batch

    def run(self, batch: pa.RecordBatch) -> CalcResult:
        """The columns of the rows that pass, and which these are."""
        frame, passed = self._passing(_Frame(batch.num_rows, batch))
        columns = []
        for number in self._program.outputs:
            found = self._value(number, frame) if frame.rows else pa.array([], self._kinds[number])
            columns.append(_column(found, frame.rows))
        return CalcResult(_batch_of(columns, self._names, frame.rows), passed)

    def _passing(self, frame: _Frame) -> tuple[_Frame, Any]:
        """The rows for which all conditions are true. Those that cannot fail are computed for all
        rows until no row is left."""
        mask, conditions = None, list(self._program.conditions)
        while conditions and not self._is_unsafe[conditions[0]] and frame.rows:
            truths = _column(self._value(conditions.pop(0), frame), frame.rows)
            mask = truths if mask is None else pc.and_(mask, truths)
            if not mask.true_count:
                return frame.restricted(_false(frame.rows)), _false(frame.rows)
        if mask is None:
            passing, passed = frame, None
        else:
            passed = mask if not mask.null_count else pc.fill_null(mask, False)
            passing = frame.restricted(passed)
        for number in conditions:
            if not passing.rows:
                break
            truths = pc.fill_null(_column(self._value(number, passing), passing.rows), False)
            passing = passing.restricted(truths)
            passed = truths if passed is None else _spread(truths, passed)
        if passed is not None and passing is frame:
            passed = None
        return passing, passed

    # -- one node ----------------------------------------------------------------------------------

    def _value(self, number: int, frame: _Frame) -> Any:
        """An array of the node for the rows of the frame; a scalar of a constant."""
        waiting: list[tuple[_Asked, _Computing]] = []
        asked: _Asked = (number, frame)
        while True:
            found = self._at_hand(*asked)
            if found is None:
                waiting.append((asked, self._computing(*asked)))
            while waiting:
                (done, within), computing = waiting[-1]
                try:
                    asked = computing.send(found)
                    break
                except StopIteration as stop:
                    found = within.values[done] = stop.value
                    waiting.pop()
            else:
                return found

    def _at_hand(self, number: int, frame: _Frame) -> Any:
        """The value, if no other frame is needed for it."""
        found = self._constants.get(number)
        if found is None:
            found = frame.known(number)
        if found is None and frame.rows == 0:
            found = pa.array([], self._kinds[number])
        if found is None and not self._is_unsafe[number]:
            for each in self._plan_of(number):
                if frame.known(each) is None:
                    frame.values[each] = self._computed(each, frame)
            found = frame.values[number]
        return found

    def _plan_of(self, number: int) -> list[int]:
        """The node and all that it is computed from, in order, without constants."""
        found = self._plans.get(number)
        if found is None:
            needed, pending = set(), [number]
            while pending:
                each = pending.pop()
                if each not in needed and each not in self._constants:
                    needed.add(each)
                    pending.extend(self._program.operands_of(each))
            found = self._plans[number] = sorted(needed)
        return found

    def _computed(self, number: int, frame: _Frame) -> Any:
        """A node whose operands are known."""
        step = self._steps.get(number)
        if step is None:
            return frame.column(self._program.nodes[number], self._kinds[number])
        operands = [
            self._constants[each] if each in self._constants else frame.known(each)
            for each in step.node.operands
        ]
        return self._applied(step, frame, operands)

    def _applied(self, step: _Step, frame: _Frame, operands: list[Any]) -> Any:
        try:
            return step.run(frame.rows, operands)
        except VALUE_ERRORS as error:
            failing = step.first_failing(frame.rows, operands)
            raise row_error(step.text, error, frame.row(failing)) from error
        except FailingValue as failure:
            cause = failure.cause
            if failure.position is None:
                raise batch_error(step.text, cause, frame.rows) from cause
            raise row_error(step.text, cause, frame.row(failure.position)) from cause

    # -- nodes that can fail -----------------------------------------------------------------------

    def _computing(self, number: int, frame: _Frame) -> _Computing:
        node = self._program.nodes[number]
        assert isinstance(node, CallNode)
        kind = self._kinds[number]
        if node.function in ("AND", "OR"):
            return _deciding(node, frame, decisive=node.function == "OR")
        if node.function in ("CASE", "IF"):
            return _branching(node, frame, kind)
        if node.function in ("COALESCE", "IFNULL"):
            return _first_there(node, frame, kind)
        return self._calling(self._steps[number], frame)

    def _calling(self, step: _Step, frame: _Frame) -> _Computing:
        operands = []
        for each in step.node.operands:
            found = yield each, frame
            operands.append(found)
        return self._applied(step, frame, operands)


def _deciding(node: CallNode, frame: _Frame, decisive: bool) -> _Computing:
    """AND and OR: an operand is computed for rows that no earlier one decided."""
    combine = pc.or_kleene if decisive else pc.and_kleene
    result = pa.repeat(pa.scalar(not decisive), frame.rows)
    for operand in node.operands:
        is_open = pc.fill_null(pc.not_equal(result, decisive), True)
        rest = frame.restricted(is_open)
        truths = yield operand, rest
        truths = _column(truths, rest.rows).cast(pa.bool_())
        result = pc.replace_with_mask(result, is_open, combine(result.filter(is_open), truths))
    return result


def _branching(node: CallNode, frame: _Frame, kind: pa.DataType) -> _Computing:
    """CASE and IF: each condition for rows that no earlier one took, each value for its rows."""
    *branches, otherwise = node.operands
    pieces = _Pieces(frame, kind)
    for condition, value in zip(branches[::2], branches[1::2]):
        rest = pieces.rest
        truths = yield condition, rest
        truths = pc.fill_null(_column(truths, rest.rows).cast(pa.bool_()), False)
        taking = pieces.taking(truths)
        found = yield value, taking
        pieces.add(found, taking)
    found = yield otherwise, pieces.rest
    return pieces.joined(found)


def _first_there(node: CallNode, frame: _Frame, kind: pa.DataType) -> _Computing:
    """COALESCE and IFNULL: each operand for rows in which all before it are null."""
    pieces = _Pieces(frame, kind)
    for operand in node.operands[:-1]:
        rest = pieces.rest
        found = yield operand, rest
        found = _column(found, rest.rows)
        there = pc.is_valid(found)
        pieces.add(found.filter(there), pieces.taking(there))
    found = yield node.operands[-1], pieces.rest
    return pieces.joined(found)


class _Pieces:
    """Values that were found for some rows of a frame, and the frame of the other rows."""

    def __init__(self, frame: _Frame, kind: pa.DataType) -> None:
        self.rest = frame
        self._kind = kind
        self._left = np.arange(frame.rows)
        self._taken = self._left
        self._rows: list[Any] = []
        self._values: list[Any] = []

    def taking(self, truths: pa.BooleanArray) -> _Frame:
        """The rows of the rest where it is true, which leave the rest."""
        chosen = truths.to_numpy(zero_copy_only=False)
        taking = self.rest.restricted(truths)
        self.rest = self.rest.restricted(pc.invert(truths))
        self._taken, self._left = self._left[chosen], self._left[~chosen]
        return taking

    def add(self, values: Any, frame: _Frame) -> None:
        """The values of the rows that were taken last."""
        self._rows.append(self._taken)
        self._values.append(_of_kind(_column(values, frame.rows), self._kind))

    def joined(self, values: Any) -> Any:
        """All values in the order of the frame, with those of the rest."""
        self._taken = self._left
        self.add(values, self.rest)
        rows = np.concatenate(self._rows)
        places = np.empty(len(rows), np.int64)
        places[rows] = np.arange(len(rows))
        return pa.concat_arrays(self._values).take(pa.array(places))


# -- rows ------------------------------------------------------------------------------------------


class _Frame:
    """Some rows of a batch, and what was computed for them."""

    def __init__(
        self, rows: int, batch: pa.RecordBatch, outer: _Frame | None = None, chosen: Any = None
    ) -> None:
        self.rows = rows
        self.values: dict[int, Any] = {}
        self._batch = batch
        self._outer = outer
        self._chosen = chosen

    def restricted(self, chosen: pa.BooleanArray) -> _Frame:
        """The rows for which it is true."""
        rows = chosen.true_count
        return self if rows == self.rows else _Frame(rows, self._batch, self, chosen)

    def known(self, number: int) -> Any:
        """The node's array, if it was computed for these rows or for all rows around them."""
        frame: _Frame | None = self
        inside: list[_Frame] = []
        while frame is not None:
            found = frame.values.get(number)
            if found is not None:
                for each in reversed(inside):
                    found = each.values[number] = found.filter(each._chosen)
                return found
            inside.append(frame)
            frame = frame._outer
        return None

    def column(self, node: Any, kind: pa.DataType) -> Any:
        """A column of the batch, for these rows."""
        assert isinstance(node, InputNode)
        found = self._batch.column(node.index)
        have = found.type
        if not have.equals(kind) and not pa.types.is_dictionary(have):
            found = _brought(found, kind)
        inside: list[_Frame] = []
        frame = self
        while frame._outer is not None:
            inside.append(frame)
            frame = frame._outer
        for each in reversed(inside):
            found = found.filter(each._chosen)
        if isinstance(node.type, DecimalType) and pa.types.is_decimal128(found.type):
            return DecimalColumn(node.type, found)
        return found

    def row(self, position: int) -> dict[str, Any]:
        """The values of the batch's row at this position of the frame."""
        frame = self
        while frame._outer is not None:
            places = np.flatnonzero(frame._chosen.to_numpy(zero_copy_only=False))
            position, frame = int(places[position]), frame._outer
        [row] = self._batch.slice(position, 1).to_pylist()
        return dict(row)


class _Codes:
    """The functions of the program, each opened once."""

    def __init__(self, program: CalcProgram, context: object) -> None:
        codes = (node.code for node in program.nodes if isinstance(node, CallNode))
        self._open: list[UserCode] = []
        try:
            for code in {id(code): code for code in codes if code is not None}.values():
                code.open(context)
                self._open.append(code)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        while self._open:
            self._open.pop().close()


def _false(rows: int) -> Any:
    return pa.repeat(pa.scalar(False), rows)


def _spread(truths: Any, passed: Any) -> Any:
    """``passed``, but false where the rows that passed are not true."""
    return pc.replace_with_mask(passed, passed, truths)


def _column(value: Any, rows: int) -> Any:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    return array_of_column(value)


def _of_kind(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    return values if values.type.equals(kind) else values.cast(kind)


def _brought(column: Any, kind: pa.DataType) -> Any:
    """A column that a source gave in another Arrow type."""
    if pa.types.is_timestamp(kind) and kind.tz is None and column.type.tz is not None:
        raise ProgramError(f"a column of {column.type} is no {kind}")
    return column.cast(kind, safe=not pa.types.is_temporal(kind))


def _batch_of(columns: list[Any], names: list[str], rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, names=names)
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing)


# -- kernels ---------------------------------------------------------------------------------------


class _Step:
    """A call with its kernel."""

    def __init__(self, node: CallNode, kernel: Kernel, kind: pa.DataType) -> None:
        self.node = node
        self._kernel: Callable[..., Any] = kernel
        self._kind = kind

    @property
    def text(self) -> str:
        """The call as errors show it."""
        return self.node.text or self.node.function

    def run(self, rows: int, operands: list[Any]) -> Any:
        """A column for all rows. A dictionary is computed once per distinct value if nothing else
        varies."""
        if any(isinstance(each, pa.DictionaryArray) for each in operands):
            return self._of_dictionaries(rows, list(map(array_of_column, operands)))
        if isinstance(self._kernel, ColumnKernel):
            return self._kernel.compute(rows, *operands)
        return self._kernel(rows, *map(array_of_column, operands))

    def _of_dictionaries(self, rows: int, operands: list[Any]) -> Any:
        varying = [at for at, each in enumerate(operands) if isinstance(each, pa.Array)]
        if len(varying) == 1 and self.node.is_deterministic:
            [at] = varying
            coded = operands[at]
            if len(coded.dictionary) < rows:
                try:
                    return self._once_per_value(coded, at, operands)
                except (*VALUE_ERRORS, FailingValue):
                    pass  # perhaps of a value that no row has
        plain = [
            each.dictionary_decode() if isinstance(each, pa.DictionaryArray) else each
            for each in operands
        ]
        return self._kernel(rows, *plain)

    def _once_per_value(self, coded: pa.DictionaryArray, at: int, operands: list[Any]) -> Any:
        distinct, codes = coded.dictionary, coded.indices
        if codes.null_count:
            codes = pc.fill_null(codes.cast(pa.int64()), len(distinct))
            distinct = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
        count = len(distinct)
        found = self._kernel(count, *operands[:at], distinct, *operands[at + 1 :])
        return _column(found, count).take(codes)

    def first_failing(self, rows: int, operands: list[Any]) -> int:
        """The first row for which the kernel raises an error, found by halving."""
        start, count = 0, rows
        while count > 1:
            half = count // 2
            try:
                self.run(half, [_slice(each, start, half) for each in operands])
            except VALUE_ERRORS:
                count = half
            else:
                start, count = start + half, count - half
        return start


def _slice(operand: Any, start: int, length: int) -> Any:
    operand = array_of_column(operand)
    return operand if isinstance(operand, pa.Scalar) else operand.slice(start, length)
