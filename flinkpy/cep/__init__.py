"""Patterns over streams: Flink's CEP under Python names (docs/patterns.md)."""

from flinkpy.cep.dynamic.dynamic_calls import DynamicMatchContext
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate, RefusedPattern
from flinkpy.cep.entry import CEP
from flinkpy.cep.event_conditions import ConditionContext, IterativeCondition, SimpleCondition
from flinkpy.cep.match_functions import (
    MatchContext,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
)
from flinkpy.cep.pattern import MalformedPatternError, Pattern, WithinType
from flinkpy.cep.skip import AfterMatchSkipStrategy
from flinkpy.core.program.public_names import publish

__all__ = [
    "CEP",
    "Pattern",
    "WithinType",
    "AfterMatchSkipStrategy",
    "IterativeCondition",
    "SimpleCondition",
    "ConditionContext",
    "PatternProcessFunction",
    "TimedOutPartialMatchHandler",
    "MatchContext",
    "MalformedPatternError",
    "PatternUpdate",
    "RefusedPattern",
    "DynamicMatchContext",
]

publish(__name__)
