"""What binding is given: names, functions, connectors, and the words of the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from flinkpy.sql.binding.proposals import proposal
from flinkpy.sql.catalog.catalog_port import Connectors, Names
from flinkpy.sql.functions.built_in.other_names import OTHER_NAMES
from flinkpy.sql.functions.function_port import Function, FunctionRegistry
from flinkpy.sql.sql_errors import Span, ValidationError
from flinkpy.sql.syntax.query_tree import FunctionCall, Query


@dataclass(frozen=True)
class BindingContext:
    """``parse_query`` reads the text of views. ``options`` are the session's.
    ``adopted_name`` gives a function that a program uses without a name one that plans keep."""

    names: Names
    registry: FunctionRegistry
    connectors: Connectors
    parse_query: Callable[[str], Query]
    options: Mapping[str, str] = field(default_factory=dict)
    adopted_name: Callable[[Function], str] | None = None

    def function(self, name: str, span: Span, others: Sequence[str] = ()) -> Function:
        """The function that is called so; ``others`` may be meant there too."""
        found = self._find(name)
        if found is None:
            reason = self.registry.absence(name)
            if reason is not None:
                raise ValidationError(f"{name} is not supported: {reason}", span=span)
            if name.upper() in OTHER_NAMES:
                meant = OTHER_NAMES[name.upper()]
                problem = f"No match found for function '{name}'; in SQL of Flink it is {meant}"
                raise ValidationError(problem, span=span)
            known = [*others, *self.registry.names(), *self.names.function_names()]
            near = proposal(name.split(".")[-1], known)
            raise ValidationError(f"No match found for function '{name}'{near}", span=span)
        return found

    def named(self, call: FunctionCall) -> FunctionCall:
        """The call by a name, also where the program gave the function itself."""
        if call.function is None:
            return call
        assert self.adopted_name is not None, "only a session has functions without a name"
        name = self.adopted_name(cast("Function", call.function))
        return replace(call, name=name, function=None)

    def has_function(self, name: str) -> bool:
        return self._find(name) is not None

    def _find(self, name: str) -> Function | None:
        parts: Sequence[str] = name.split(".") if name.strip(".") else (name,)
        return self.names.find_function(parts) or self.registry.find(name)
