"""A file that the program has seen, and that is not there when a worker reads it."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from flinkpy.core.errors import JobExecutionError
from flinkpy.testing.environment import embedded_environment


@pytest.mark.parametrize("name", ["numbers.txt", "numbers.txt.gz"])
def test_the_error_says_on_which_machine_it_was_looked_for(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(b"")
    env = embedded_environment({"restart-strategy.type": "none"})
    lines = env.read_text_file(str(file))
    file.unlink()
    wanted = (
        f"No such file or directory on {re.escape(socket.gethostname())}, where it is to be "
        f"read .*on Ray all nodes must see it.*{name}"
    )
    with pytest.raises(JobExecutionError, match=wanted):
        list(lines.execute_and_collect("reads"))
