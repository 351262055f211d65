"""When a chain wants no more input: whatever came in would only reach operators that have had
enough."""

from __future__ import annotations

from flinkpy.graph.chain_config import ChainConfig, ChainedEdge
from flinkpy.operators.base import StreamOperator


class Enough:
    """Asks the operators of a chain that may some time have enough, provided that all of the
    chain's input goes to them."""

    def __init__(self, config: ChainConfig[StreamOperator]) -> None:
        found: list[StreamOperator] = []

        def all_goes_there(at: int) -> bool:
            chained = config.operators[at]
            if type(chained.operator).has_enough is not StreamOperator.has_enough:
                found.append(chained.operator)
                return True
            return bool(chained.edges) and all(
                isinstance(edge, ChainedEdge) and all_goes_there(edge.target)
                for edge in chained.edges
            )

        self._operators = found if all_goes_there(0) else []

    @property
    def reached(self) -> bool:
        """Whether all further input would be dropped."""
        return bool(self._operators) and all(operator.has_enough for operator in self._operators)
