"""Descriptors: the name, kind and type of a state, as a program declares them in ``open``."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.core.program.program_line import refuse
from flinkpy.state.ttl.config import StateTtlConfig

RESERVED = "_"  # names of the engine's own states begin with it


class StateKind(Enum):
    VALUE = "value state"
    LIST = "list state"
    MAP = "map state"
    REDUCING = "reducing state"
    AGGREGATING = "aggregating state"
    ENGINE = "state of the engine"  # one plain value per key, written by the engine's own loops
    REGION = "region"  # held by an operator in a form of its own
    TIMED = "region on disk"  # what an operator has no room for: moment and name -> value


@runtime_checkable
class Aggregate(Protocol):
    """The methods of an AggregateFunction."""

    def create_accumulator(self) -> Any: ...

    def add(self, value: Any, accumulator: Any) -> Any: ...

    def get_result(self, accumulator: Any) -> Any: ...

    def merge(self, acc_a: Any, acc_b: Any) -> Any: ...


class StateDescriptor:
    """Name and type of a state. A second kind or type under the same name is refused."""

    kind: StateKind

    def __init__(self, name: str, type_info: TypeInformation | None) -> None:
        if not isinstance(name, str) or not name:
            raise refuse(f"a state needs a name of its own, this is {name!r:.80}")
        if name.startswith(RESERVED):
            raise refuse(f"state {name!r}: names that begin with {RESERVED!r} are the engine's")
        self.name, self.type_info = name, type_info
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Values expire as the configuration says."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise refuse(
                f"state {self.name!r}: a StateTtlConfig is needed, end the builder with "
                f"build(); this is {ttl_config!r:.80}"
            )
        self.ttl_config = ttl_config

    @property
    def ttl(self) -> StateTtlConfig | None:
        """The time to live, if it is enabled."""
        return (
            self.ttl_config
            if self.ttl_config is not None and self.ttl_config.is_enabled()
            else None
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.type_info!r}>"


class ValueStateDescriptor(StateDescriptor):
    """One value per key: ``runtime_context.get_state(descriptor)``.

    >>> ValueStateDescriptor("count", Types.LONG())
    <ValueStateDescriptor 'count' of Types.LONG()>
    """

    kind = StateKind.VALUE

    def __init__(self, name: str, value_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, _checked(name, value_type_info))


class ListStateDescriptor(StateDescriptor):
    """A list per key: ``get_list_state``.

    >>> ListStateDescriptor("clicks", Types.STRING())
    <ListStateDescriptor 'clicks' of Types.LIST(Types.STRING())>
    """

    kind = StateKind.LIST

    def __init__(self, name: str, elem_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, Types.LIST(_known(name, elem_type_info)))


class MapStateDescriptor(StateDescriptor):
    """A mapping per key: ``get_map_state``.

    >>> MapStateDescriptor("clicks per page", Types.STRING(), Types.LONG())
    <MapStateDescriptor 'clicks per page' of Types.MAP(Types.STRING(), Types.LONG())>
    """

    kind = StateKind.MAP

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(
            name, Types.MAP(_known(name, key_type_info), _known(name, value_type_info))
        )


class ReducingStateDescriptor(StateDescriptor):
    """All values of a key reduced to one by a ReduceFunction or a function of two values:
    ``get_reducing_state``.

    >>> ReducingStateDescriptor("largest", max, Types.LONG())
    <ReducingStateDescriptor 'largest' of Types.LONG()>
    """

    kind = StateKind.REDUCING

    def __init__(
        self, name: str, reduce_function: Any, type_info: TypeInformation | None = None
    ) -> None:
        super().__init__(name, _checked(name, type_info))
        self.reduce: Callable[[Any, Any], Any] = getattr(reduce_function, "reduce", reduce_function)
        if not callable(self.reduce) or isinstance(reduce_function, type):
            raise refuse(
                f"state {name!r}: a ReduceFunction or a function of two values is needed, "
                f"this is {reduce_function!r:.80}"
            )
        refuse_coroutines(reduce_function, f"state {name!r}")
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """An accumulator per key, kept by an AggregateFunction: ``get_aggregating_state``.

    >>> class Mean:
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, one, other):
    ...         return one[0] + other[0], one[1] + other[1]
    >>> AggregatingStateDescriptor("mean", Mean()).get_name()
    'mean'
    """

    kind = StateKind.AGGREGATING

    def __init__(
        self, name: str, agg_function: Aggregate, state_type_info: TypeInformation | None = None
    ) -> None:
        super().__init__(name, _checked(name, state_type_info))
        if isinstance(agg_function, type) or not isinstance(agg_function, Aggregate):
            raise refuse(
                f"state {name!r}: an AggregateFunction object is needed, this is "
                f"{agg_function!r:.80}"
            )
        refuse_coroutines(agg_function, f"state {name!r}")
        self._agg_function = agg_function

    def get_agg_function(self) -> Aggregate:
        return self._agg_function


def _checked(name: str, type_info: object) -> TypeInformation | None:
    if type_info is not None and not isinstance(type_info, TypeInformation):
        raise refuse(
            f"state {name!r}: {type_info!r:.80} is no type; use one of Types, such as Types.LONG()"
        )
    return type_info


def _known(name: str, type_info: object) -> TypeInformation:
    return _checked(name, type_info) or Types.PICKLED_BYTE_ARRAY()
