"""Sources and sinks under PyFlink's module paths. They are implemented in ``flinkpy.connectors``, which has more of
them."""

from flinkpy.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
