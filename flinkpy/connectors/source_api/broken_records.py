"""What a source could not read: counted, and diverted as dead letters if its operator has a
policy."""

from __future__ import annotations

from typing import Any

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import RowBatch
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.functions import RuntimeContext
from flinkpy.operators.guarding.dead_letters import Letters

SKIPPED = "numRecordsSkipped"


class BrokenRecords:
    """Those of one operator."""

    def __init__(
        self, policy: ErrorPolicy | None, context: OperatorContext, output: Output
    ) -> None:
        self._letters = None if policy is None else Letters(policy, context)
        self._context, self._output = context, output

    def leave_out(self, record: Any, why: str) -> None:
        """Says that the record is in no batch."""
        if self._letters is None:
            RuntimeContext(self._context).get_metrics_group().counter(SKIPPED).inc(1)
            return
        self._output.emit_side(
            self._letters.side_output,
            RowBatch([self._letters.letter(ValueError(why), record, None)]),
        )
