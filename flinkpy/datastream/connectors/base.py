"""What sources and sinks share, under PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from flinkpy.connectors.delivery_guarantee import DeliveryGuarantee
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.program.public_names import publish
from flinkpy.operators.sinks.sink_port import Sink

if TYPE_CHECKING:
    from flinkpy.datastream.data_stream import DataStream

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]


class StreamTransformer(ABC):
    """Changes a stream before a sink writes it."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """The changed stream."""


class SupportsPreprocessing(ABC):
    """A sink that changes the stream before it is written: ``sink_to`` applies the transformer.

    >>> class Doubled(StreamTransformer):
    ...     def apply(self, ds):
    ...         return ds.map(lambda value: value * 2)
    >>> class DoublingSink(SupportsPreprocessing):
    ...     def get_transformer(self):
    ...         return Doubled()
    """

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """The transformer; None leaves the stream as it is."""


publish(__name__)
