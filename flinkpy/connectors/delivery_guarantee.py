"""What a sink promises about failures, under PyFlink's name."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """How often a record reaches a sink's target if tasks fail."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
