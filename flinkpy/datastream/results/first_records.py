"""Looking into a stream from a prompt or a notebook: ``take`` and ``show`` run what leads to it, give its first records, and cancel the rest."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.datastream.checks import refuse

if TYPE_CHECKING:
    from flinkpy.datastream.results.collecting import CloseableIterator
    from flinkpy.graph.transformations import Transformation


class Interactive:
    """What DataStream inherits. Each call runs a job of its own: what leads to this stream and nothing else, so sinks defined beside it wait for
    ``execute``. The stream can be used again afterwards."""

    def take(self, n: int = 10, job_name: str | None = None) -> list[Any]:
        """The first ``n`` records to arrive; fewer where the stream ends before. The rest of the job is cancelled.

        With several subtasks, which records are first is chance. A job that restarts meanwhile begins anew. Raises JobExecutionError when the job
        fails before; Ctrl-C cancels it.

        >>> env.from_collection([1, 2, 3]).map(lambda x: x * 2).take(2)  # doctest: +SKIP
        [2, 4]
        """
        if _checked(n, "take()") == 0:
            return []
        with running_alone(self, job_name or f"take({n})") as results:
            return results.first(n)

    def show(self, n: int = 20, truncate: bool | int = True, job_name: str | None = None) -> None:
        """Prints the first ``n`` records as a table: a column for each field of rows, columns, tuples, named tuples and dataclasses.

        Values longer than 20 characters, or than ``truncate``, are cut; with ``truncate=False`` none is.

        >>> env.from_collection([("to", 2), ("be", 1)]).show()  # doctest: +SKIP
        +----+----+
        | f0 | f1 |
        +----+----+
        | to |  2 |
        | be |  1 |
        +----+----+
        """
        from flinkpy.common.text_tables import table

        n = _checked(n, "show()")
        width = _width(truncate)
        names = _columns(self)
        records = self.take(n, job_name or f"show({n})")
        builtins.print(table(records, names, width))
        if n and len(records) == n:
            builtins.print(f"the first {n} record{'s' if n > 1 else ''}")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream belongs to the program: functions run on the workers, and cannot use it")


def _columns(stream: Any) -> list[str] | None:
    """The columns' names, where they are known before the first record."""
    names = stream._schema.names if stream._schema is not None else getattr(stream._transformation.output_type, "field_names", None)
    return list(names) if names else None


def _checked(n: Any, call: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise refuse(f"{call} takes a number of records from 0 on, this is {n!r:.80}")
    return n


def _width(truncate: Any) -> int | None:
    if isinstance(truncate, bool):
        return 20 if truncate else None
    if not isinstance(truncate, int) or truncate < 1:
        raise refuse(f"show(): truncate is True, False or a number of characters, this is {truncate!r:.80}")
    return truncate


@contextmanager
def alone(stream: Any) -> Iterator[None]:
    """What is submitted inside is what leads to ``stream``, and what was added inside. What else was defined stays for the next ``execute``; where
    nothing was submitted, all of it stays, and nothing more.

    What leads to the stream was run and, unless something else needs it, is not run again.
    """
    env = stream.get_execution_environment()
    before: list[Transformation] = env._transformations
    needed = leading_to([stream._transformation])
    env._transformations = submitted = [each for each in before if each in needed]
    try:
        yield
    finally:
        env._transformations = before if submitted else [each for each in before if each not in needed]


@contextmanager
def running_alone(stream: Any, job_name: str) -> Iterator[CloseableIterator]:
    """The records of a job of what leads to ``stream`` alone; it ends with the block."""
    from flinkpy.datastream.results.collecting import execute_and_collect

    with alone(stream):
        results = execute_and_collect(stream, job_name, quiet=False)
    with results:
        yield results


def leading_to(ends: Iterable[Transformation]) -> set[Transformation]:
    """These transformations, and all that their records come from: of a loop, the way back too."""
    from flinkpy.graph.transformations import IterationHeadTransformation

    found: set[Transformation] = set()
    waiting = list(ends)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += each.inputs
            if isinstance(each, IterationHeadTransformation):
                waiting += [each.entry, *([each.tail] if each.tail is not None else [])]
    return found
