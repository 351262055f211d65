"""Sources and sinks under PyFlink's module paths. They are implemented in ``flinkpy.connectors``,
which has more of them.

As in PyFlink, older programs find the names of files, Kafka and sequences here, too; their modules
are imported when somebody asks."""

from importlib import import_module
from typing import Any

from flinkpy.core.program.public_names import publish
from flinkpy.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

_MODULES = {
    "file_system": (
        "BucketAssigner",
        "FileEnumeratorProvider",
        "FileSink",
        "FileSource",
        "FileSourceBuilder",
        "FileSplitAssignerProvider",
        "OutputFileConfig",
        "RollingPolicy",
        "StreamFormat",
        "StreamingFileSink",
    ),
    "kafka": ("FlinkKafkaConsumer", "FlinkKafkaProducer", "KafkaSource", "Semantic"),
    "number_seq": ("NumberSequenceSource",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
