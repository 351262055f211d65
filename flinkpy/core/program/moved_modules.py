"""Modules that savepoints of earlier versions name, and where their classes are now.

A savepoint holds some of the engine's own values, such as the split of a file or a part file that
waits for its commit. They are pickled, so it names their classes by module. Whoever moves such a
module lists its old place here, and the savepoints under ``tests/checkpoints/kept`` show that all
are found."""

from __future__ import annotations

MOVED = {
    "flinkpy.connectors.files.column_source": "flinkpy.connectors.files.reading.column_source",
    "flinkpy.connectors.files.text_files": "flinkpy.connectors.files.reading.text_files",
    "flinkpy.connectors.files.watched_files": "flinkpy.connectors.files.reading.watched_files",
    "flinkpy.connectors.part_files.file_writer": "flinkpy.connectors.files.writing.file_writer",
    "flinkpy.connectors.part_files.part_names": "flinkpy.connectors.files.writing.part_names",
}


def module_now(module: str) -> str:
    """The module that has the classes of this one now."""
    return MOVED.get(module, module)
