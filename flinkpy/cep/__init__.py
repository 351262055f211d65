"""Patterns over streams: Flink's CEP under Python names (docs/patterns.md)."""

from flinkpy.cep.event_conditions import ConditionContext, IterativeCondition, SimpleCondition
from flinkpy.cep.pattern import MalformedPatternError, Pattern, WithinType
from flinkpy.cep.skip import AfterMatchSkipStrategy
from flinkpy.core.program.public_names import publish

__all__ = [
    "Pattern",
    "WithinType",
    "AfterMatchSkipStrategy",
    "IterativeCondition",
    "SimpleCondition",
    "ConditionContext",
    "MalformedPatternError",
]

publish(__name__)
