"""Whether a stream only adds records, or also brings new versions of earlier ones: updates, one for a key whenever its aggregate has changed.

How many updates there are depends on how records came in batches; only the last one of a key counts. So nobody may add them up, join them, or put
them into windows: operators say so (``takes_updates``), and a program that does it is refused. In BATCH there is one row for a key, and all is well.
"""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.core.errors import ProgramError
from flinkpy.graph.transformations import OneInputTransformation, Transformation, TwoInputTransformation


def refuse_added_updates(order: Iterable[Transformation]) -> None:
    """ProgramError for an operator that would add up updates. ``order``: inputs first."""
    makers: dict[int, Transformation] = {}  # by id(transformation): who makes the updates among its records; absent: nobody
    for each in order:
        maker = next((makers[id(reader)] for reader in each.inputs if id(reader) in makers), None)
        if isinstance(each, (OneInputTransformation, TwoInputTransformation)):
            if maker is not None and not getattr(each.operator, "takes_updates", True):
                raise ProgramError(
                    f"{each.label} cannot take what {maker.label} gives: that is a new row for a key whenever its aggregate has changed, and each "
                    "would count as one more record. Aggregate in windows there, keep the latest row of each key in a KeyedProcessFunction between, "
                    "or, where the input ends, call env.set_runtime_mode(RuntimeExecutionMode.BATCH), in which each key gives one row")
            emits = getattr(each.operator, "emits_updates", None)
            maker = maker if emits is None else each if emits else None
        if maker is not None:
            makers[id(each)] = maker
