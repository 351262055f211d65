"""A session and its programs run one and the same flinkpy, or the program is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import flinkpy
from flinkpy import __version__
from flinkpy.cluster.installation import fingerprint, state
from flinkpy.cluster.ray.ray_sessions import is_another_installation
from flinkpy.cluster.session import SessionInfo


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of this installation, which is this process's from now on."""
    home = Path(flinkpy.__file__).parent
    copy = tmp_path / "site-packages" / "flinkpy"
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(flinkpy, "__file__", str(copy / "__init__.py"))
    return copy


def fresh() -> str:
    return fingerprint.__wrapped__()


def test_a_copy_is_the_same_and_a_changed_one_is_another(elsewhere: Path) -> None:
    assert fresh() == fingerprint()
    (elsewhere / "core" / "clock.py").write_text("# another build\n")
    assert fresh() != fingerprint()


@pytest.mark.finding("first-use 25")
def test_a_change_or_the_end_of_an_installation_is_seen(elsewhere: Path) -> None:
    before = state()
    assert before == state()
    os.utime(elsewhere / "core" / "clock.py", ns=(1, 1))
    assert state() != before
    shutil.rmtree(elsewhere)
    assert state() == frozenset()
    assert fresh() == ""


@pytest.mark.finding("first-use 25")
@pytest.mark.parametrize(
    ("info", "said"),
    [
        (SessionInfo(__version__, {}, installation=fingerprint()), None),
        (
            SessionInfo("0.0.9", {}, installation=fingerprint()),
            f"was started by flinkpy 0.0.9, this is {__version__}",
        ),
        (
            SessionInfo(__version__, {}, installation="another"),
            f"was started by another build of flinkpy {__version__}",
        ),
        (SessionInfo(__version__, {}), f"was started by another build of flinkpy {__version__}"),
        (
            SessionInfo(__version__, {}, installation=fingerprint(), is_intact=False),
            (
                "was started from an installation of flinkpy that has gone or changed since, so it "
                "can start no worker"
            ),
        ),
    ],
)
def test_a_program_is_told_of_a_session_that_runs_another_flinkpy(
    info: SessionInfo, said: str | None
) -> None:
    assert is_another_installation(info) == said
