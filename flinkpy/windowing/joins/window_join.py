"""The window join of two streams of rows: each pair of records with the same key in the same window
goes to the join function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.core.codegen.generated import failure_in, forget_source
from flinkpy.core.codegen.inlining import inlined, raised_by
from flinkpy.core.mutability import isolated
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import Work
from flinkpy.operators.functions import Function, method_of
from flinkpy.operators.output.output_isolation import with_private_results
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Results
from flinkpy.windowing.joins.aligned_join import AlignedJoinOperator
from flinkpy.windowing.joins.join_loops import (
    JoinLoop,
    Part,
    in_chunks,
    index_of,
    join_loop,
    narrowed,
)

_MISSING = object()


class WindowJoinOperator(AlignedJoinOperator):
    """A JoinFunction makes one record of each pair; with ``flat`` a FlatJoinFunction makes any
    number."""

    joins = True

    def __init__(
        self,
        function: object,
        key1: KeySpec,
        key2: KeySpec,
        assigner: object,
        allowed_lateness: int = 0,
        *,
        flat: bool = False,
    ) -> None:
        super().__init__(function, key1, key2, assigner, allowed_lateness)
        method_of(function, "join")
        self.flat = flat

    def open(self) -> None:
        self._loops: dict[bool, JoinLoop] = {}
        super().open()
        self._make_loops()

    def begin_to_copy(self) -> None:
        self._make_loops()

    def _make_loops(self) -> None:
        self._forget_loops()
        join = method_of(self.function, "join")
        if (
            not self.flat
            and not self.context.object_reuse
            and inlined(join, "one", "other") is None
        ):
            join = with_private_results(join)
        self._call = join = isolated(join) if self._copies else join
        self._loops = (
            {}
            if self.flat
            else {
                unique: join_loop(join, unique=unique, set_key=isinstance(self.function, Function))
                for unique in (True, False)
            }
        )

    def _forget_loops(self) -> None:
        for loop in getattr(self, "_loops", {}).values():
            forget_source(loop)

    def close(self) -> None:
        self._forget_loops()
        super().close()

    def combine(self, first: list[Part], second: list[Part], timestamp: int) -> Work:
        if not first or not second:
            return
        index, unique = index_of(narrowed(second, first))
        if self.flat:
            yield from self.emit_groups(self._pairs(first, index, unique), timestamp)
            return
        loop, limit = self._loops[unique], self.context.batch_records
        given = loop(
            in_chunks(first, limit), index.get, _MISSING, self._call, self.backend.current, limit
        )
        while True:
            try:
                values = next(given, None)
            except BaseException as error:
                raise self._explained(loop, first, error) from error
            if values is None:
                return
            results = Results(True)
            results.values, results.stamps = values, [timestamp] * len(values)
            results.emit(self.output)
            if len(values) >= limit:
                yield

    def _pairs(
        self, first: list[Part], index: dict[Any, Any], unique: bool
    ) -> Iterator[tuple[Any, Any]]:
        current = self.backend.current
        for keys, ones in first:
            for key, one in zip(keys, ones):
                found = index.get(key, _MISSING)
                if found is not _MISSING:
                    current.key = key
                    for other in (found,) if unique else found:
                        yield one, other

    def _explained(self, loop: JoinLoop, first: list[Part], error: BaseException) -> Exception:
        if isinstance(error, TypeError):
            self.raise_unhashable(first, error)
        failure = failure_in(loop, error.__traceback__)
        # Python turns a StopIteration in a generator into a RuntimeError
        if failure is None and isinstance(error.__cause__, StopIteration):
            error = error.__cause__
            failure = failure_in(loop, error.__traceback__)
        if failure is None:
            return user_code_error(error, self.context)
        pair = failure.variables.get("one"), failure.variables.get("other")
        return user_code_error(raised_by(self._call, pair, error), self.context, pair)
