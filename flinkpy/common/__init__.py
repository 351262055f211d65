"""The public value types, under PyFlink's names: Types, Row, Configuration, Time,
WatermarkStrategy, JobClient and others."""

from flinkpy.common.completable_future import CompletableFuture
from flinkpy.common.config_options import ConfigOption, ConfigOptions
from flinkpy.common.configuration import Configuration
from flinkpy.common.execution_config import ExecutionConfig
from flinkpy.common.execution_mode import ExecutionMode
from flinkpy.common.input_dependency_constraint import InputDependencyConstraint
from flinkpy.common.job_client import JobClient
from flinkpy.common.job_execution_result import JobExecutionResult
from flinkpy.common.job_id import JobID
from flinkpy.common.job_listener import JobListener
from flinkpy.common.job_status import JobStatus
from flinkpy.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from flinkpy.common.serialization import (
    BulkWriterFactory,
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    RowFieldExtractorSchema,
    SerializationSchema,
    SimpleStringSchema,
)
from flinkpy.common.serializer import TypeSerializer
from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.time import Duration, Instant, Time
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.common.types import Row, RowKind
from flinkpy.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkpy.core.elements import Watermark
from flinkpy.core.program.public_names import publish

__all__ = [
    "BulkWriterFactory",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "ExecutionMode",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobListener",
    "JobStatus",
    "OutputTag",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowFieldExtractorSchema",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]

publish(__name__)
