"""Whether a stream only adds records, or also brings new versions of earlier ones: updates, one for a key whenever its aggregate has changed.

How many updates there are depends on how records came in batches; only the last one of a key counts. So nobody may add them up, join them, or put
them into windows: operators say so (``takes_updates``), and a program that does it is refused. In BATCH there is one row for a key, and all is well.
"""

from __future__ import annotations

from flinkpy.core.errors import ProgramError
from flinkpy.graph.transformations import Transformation


def refuse_added_updates(transformation: Transformation) -> None:
    """ProgramError for an operator that would add up updates."""
    maker = next((each.updates_of for each in transformation.inputs if each.updates_of is not None), None)
    if maker is not None and not getattr(getattr(transformation, "operator", None), "takes_updates", True):
        raise ProgramError(
            f"{transformation.label} cannot take what {maker.label} gives: that is a new row for a key whenever its aggregate has changed, and each "
            "would count as one more record. Aggregate in windows there, keep the latest row of each key in a KeyedProcessFunction between, or, "
            "where the input ends, call env.set_runtime_mode(RuntimeExecutionMode.BATCH) first, in which each key gives one row")
