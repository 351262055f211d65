"""Tries a folder out before anything depends on it, and tells what can never be written from a
store that may answer later."""

from __future__ import annotations

from flinkpy.core.errors import ConfigurationError, FlinkpyError
from flinkpy.core.ids import IdFactory
from flinkpy.core.secrets.hidden_secrets import without_secrets
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute, join
from flinkpy.state.checkpoints.stores_of_locations import private_file_store_of


def try_out(store: FileStore, folder: str) -> None:
    """Writes a small file in the folder, and deletes it. Raises what the store raises if that
    cannot be."""
    file = join(folder, f"_begun-{IdFactory().hex(8)}")  # there may be one whose writer has died
    store.write_atomically(file, [b"files are about to be written here\n"])
    store.delete(file)


def check_writable(key: str, location: str) -> None:
    """Raises ConfigurationError, which names the option of this key, if nothing can be written in
    the folder that it names."""
    folder = absolute(location)
    try:
        try_out(private_file_store_of(folder), folder)
    except (FlinkpyError, OSError) as error:
        raise ConfigurationError(
            f"option {key}: nothing can be written to {without_secrets(folder)}: {error}"
        ) from None
