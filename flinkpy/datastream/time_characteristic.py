"""Which time a Flink 1.x program counted in. Kept for programs that name it: event time is what assigned timestamps give."""

from enum import Enum


class TimeCharacteristic(Enum):
    """Event time, the machine's clock, or the time of arrival."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
