"""``on_error``: what an operator does with a record whose function raises."""

from __future__ import annotations

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.operator_settings import operator_of
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.graph.transformations import (
    OneInputTransformation,
    SourceTransformation,
    TwoInputTransformation,
)
from flinkpy.operators.base import SourceOperator, StreamOperator


def set_error_policy(stream: RecordedStream, policy: object) -> None:
    """Implements ``on_error``."""
    from flinkpy.operators.guarding.with_policy import with_policy

    if not isinstance(policy, ErrorPolicy):
        raise refuse(
            "on_error() takes an ErrorPolicy, such as "
            f'ErrorPolicy.divert(OutputTag("failed")), this is {policy!r:.80}'
        )
    if stream.before_key is not None:
        raise refuse(
            "on_error() is not for key_by(...): without a key nobody knows where a record "
            "belongs, so a key selector that raises fails the "
            "job. Compute the key in a map(...) with a policy, and key by the result"
        )
    made = operator_of(stream, "on_error()")
    if isinstance(made, SourceTransformation):
        assert isinstance(made.operator, SourceOperator)
        with located():
            made.operator.set_error_policy(policy, made.name)
    if isinstance(made, (OneInputTransformation, TwoInputTransformation)):
        assert isinstance(made.operator, StreamOperator)
        with located():
            made.operator = with_policy(made.operator, policy, made.name)
