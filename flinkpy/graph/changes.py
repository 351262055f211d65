"""Whether a stream only adds records, or also brings updates: a new version of a key's row whenever its aggregate has
changed.

The number of updates depends on how records are grouped into batches, and only a key's last update is valid. So
updates must not be aggregated, joined, or put into windows. Operators declare whether they accept them
(``takes_updates``); other programs are refused. In BATCH there is only one row per key, so there are no updates.
"""

from __future__ import annotations

from flinkpy.core.errors import ProgramError
from flinkpy.graph.transformations import Transformation


def refuse_added_updates(transformation: Transformation) -> None:
    """Raises ProgramError for an operator that would aggregate updates."""
    maker = next((each.updates_of for each in transformation.inputs if each.updates_of is not None), None)
    if maker is not None and not getattr(getattr(transformation, "operator", None), "takes_updates", True):
        raise ProgramError(
            f"{transformation.label} cannot take what {maker.label} gives: that is a new row for a key whenever its aggregate has changed, and each "
            "would count as one more record. Aggregate in windows there, keep the latest row of each key in a KeyedProcessFunction between, or, "
            "where the input ends, call env.set_runtime_mode(RuntimeExecutionMode.BATCH) first, in which each key gives one row")
