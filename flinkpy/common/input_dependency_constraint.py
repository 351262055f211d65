"""When a consumer is scheduled whose producers end before it starts."""

from enum import Enum


class InputDependencyConstraint(Enum):
    """When a consumer is scheduled: ANY of its inputs is ready, or ALL are."""

    ANY = 0
    ALL = 1
