"""Stages: how a stateless record operator describes itself, so that a chain can be fused into
generated loops.

An operator with a stage must do exactly the same when run alone through ``process_batch``; a
property test holds fused and unfused chains against each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flinkpy.operators.base import BatchForm, OneInputOperator


class StageKind(Enum):
    MAP = "MAP"  # function(value) -> value
    FILTER = "FILTER"  # function(value) -> truth
    FLAT_MAP = "FLAT_MAP"  # function(value) -> iterable of values (None counts as empty)


@dataclass(frozen=True)
class Stage:
    kind: StageKind
    function: Callable[[Any], Any]  # bound to the opened user function: call it once per record


class StageOperator(OneInputOperator):
    """A one-input operator that works record by record and keeps no state."""

    batch_form = BatchForm.AS_IN_STREAM
    keeps_nothing = True

    def before_batch(self) -> None:
        """Called before each batch by whoever calls the function of the stage: the operator itself,
        a fused run, or a guard."""

    @abstractmethod
    def stage(self) -> Stage:
        """Called after ``open``."""
