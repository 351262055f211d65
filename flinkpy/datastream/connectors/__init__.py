"""Sources and sinks under PyFlink's module paths. What they are made of is in ``flinkpy.connectors``, where more of them stand."""

from flinkpy.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
