"""Reads, changes and writes savepoints without a job: Flink's State Processor API, in Python.

A savepoint's state becomes rows, an Arrow table or a pandas DataFrame; and rows, Arrow, pandas or
Spark data become the state that a job starts from. All of it runs in the process at hand."""

from flinkpy.core.elements import SavepointFormatType
from flinkpy.core.program.public_names import publish
from flinkpy.state_processor.bootstrap_functions import (
    BootstrapContext,
    KeyedStateBootstrapFunction,
    StateBootstrapFunction,
)
from flinkpy.state_processor.bootstrap_transformation import (
    OperatorTransformation,
    StateBootstrapTransformation,
)
from flinkpy.state_processor.operator_identifier import OperatorIdentifier
from flinkpy.state_processor.read_state import KeyedEntry, ReadState
from flinkpy.state_processor.savepoint_reader import (
    KeyedStateReaderContext,
    KeyedStateReaderFunction,
    SavepointReader,
)
from flinkpy.state_processor.savepoint_writer import SavepointWriter

__all__ = [
    "BootstrapContext",
    "KeyedEntry",
    "KeyedStateBootstrapFunction",
    "KeyedStateReaderContext",
    "KeyedStateReaderFunction",
    "OperatorIdentifier",
    "OperatorTransformation",
    "ReadState",
    "SavepointFormatType",
    "SavepointReader",
    "SavepointWriter",
    "StateBootstrapFunction",
    "StateBootstrapTransformation",
]

publish(__name__)
