"""The notion of time of a Flink 1.x program. Kept for programs that set it; event time depends on
assigned timestamps."""

from enum import Enum


class TimeCharacteristic(Enum):
    """Event time, the machine's clock, or the time of arrival."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
