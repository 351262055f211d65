"""Chooses how an operator is guarded, or says why it cannot be."""

from __future__ import annotations

from typing import Any

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import Guarding, OneInputOperator, StreamOperator, TwoInputOperator
from flinkpy.operators.chain.stages import StageOperator
from flinkpy.operators.guarding.guarded_columns import GuardedColumns
from flinkpy.operators.guarding.guarded_operator import GuardedInput, GuardedInputs
from flinkpy.operators.guarding.guarded_stages import GuardedStage
from flinkpy.operators.wrapping_operator import bare


def with_policy(operator: StreamOperator, policy: ErrorPolicy, name: str) -> StreamOperator:
    """The operator with that policy in place of the one it has; itself without a guard if the
    policy changes nothing. Raises ProgramError for an operator that takes no policy; ``name`` is
    how the program calls it."""
    operator = bare(operator)
    guarding = operator.guarding
    if guarding is Guarding.NONE:
        raise ProgramError(
            f"on_error() is for functions that are called with single records, and {name!r} "
            f"{operator.takes_no_policy}"
        )
    if guarding is Guarding.BY_ITSELF:
        guarded_by_itself: Any = operator
        guarded_by_itself.set_error_policy(policy)
        return operator
    if policy.fails_at_once:
        return operator
    if guarding is Guarding.BY_ROW:
        if policy.retries:
            raise ProgramError(
                f"on_error(): {name!r} computes expressions, which give the same each time: "
                "leave the retries out"
            )
        return GuardedColumns(operator, policy)
    if isinstance(operator, StageOperator):
        return GuardedStage(operator, policy)
    if isinstance(operator, TwoInputOperator):
        return GuardedInputs(operator, policy)
    assert isinstance(operator, OneInputOperator)
    return GuardedInput(operator, policy)
