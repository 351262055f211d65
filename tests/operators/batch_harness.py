"""A chain as it runs in a batch job."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP, Watermark
from flinkpy.core.options.engine import RUNTIME_MODE, SORT_MEMORY, RuntimeMode
from flinkpy.graph.chain_config import ChainedOperator
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.context import OperatorContext
from tests.operators.harness import ChainHarness, linear


class BatchHarness(ChainHarness):
    """A chain in BATCH mode, with so much memory to sort in."""

    def __init__(self, operator: StreamOperator, memory: int = 1 << 20, inputs: int = 1) -> None:
        self.memory = memory
        super().__init__(linear(batch_form(operator), inputs=inputs))

    def context(self, operator: ChainedOperator[Any]) -> OperatorContext:
        context = super().context(operator)
        context.configuration |= {RUNTIME_MODE.key: RuntimeMode.BATCH, SORT_MEMORY.key: self.memory}
        return context

    def end(self) -> list[Any]:
        """The input ends: gives all results."""
        self.chain.control(Watermark(MAX_TIMESTAMP))
        while not self.chain.finish():
            assert self.chain.has_rest
        assert self.chain.close() == []
        assert self.writers[0].elements[-1] == Watermark(MAX_TIMESTAMP)
        return self.output
