"""The command line within this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flinkpy.cli.main import main


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Flinkpy = Callable[..., Outcome]


@pytest.fixture
def flinkpy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Flinkpy:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        captured = capsys.readouterr()
        code = end.value.code
        return Outcome(
            code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err
        )

    return call
