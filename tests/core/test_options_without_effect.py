"""Each option is read somewhere, or says why not: then a program that sets it is told when it is
submitted."""

from __future__ import annotations

import ast
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import flinkpy
from flinkpy.cli.options import show_options
from flinkpy.common import foreign_options
from flinkpy.core import options
from flinkpy.core.options.schema import SCHEMA
from flinkpy.datastream import StreamExecutionEnvironment

pytestmark = pytest.mark.finding("gaps G10")

ROOT = Path(flinkpy.__file__).resolve().parent
# They write what a program sets, and give it back; whether anything looks at it is another matter
SETTERS = {
    "common/execution_config.py",
    "datastream/checkpoint_config.py",
    "datastream/checkpoint_storage.py",
    "datastream/env/checkpoint_settings.py",
    "datastream/env/program_settings.py",
    "datastream/env/state_backends.py",
}
# being made; a family, read by its prefix
TO_COME = {"task.cancellation.interval", "log.level.<logger>"}


def declared(name: str) -> Iterator[tuple[str, str]]:
    """Name and key of each option that a module declares."""
    for node in ast.parse(Path(ROOT, "core", "options", name).read_text()).body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if (
            isinstance(target, ast.Name)
            and isinstance(node, (ast.Assign, ast.AnnAssign))
            and isinstance(node.value, ast.Call)
        ):
            texts = [
                each.value
                for each in ast.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            key = next((text for text in texts if text in SCHEMA), None)
            if key is not None:
                yield target.id, SCHEMA.get(key).key


def readers() -> dict[str, set[str]]:
    """The modules that name each option, by its key, but for the line that declares it. (Ruff
    refuses a name that is imported and not used.)"""
    keys = dict(pair for module in options.__all__ for pair in declared(f"{module}.py"))
    declaring = re.compile(r"^[A-Z][A-Z0-9_]*(?=(: [^=]*)? = )", re.MULTILINE)
    found: dict[str, set[str]] = defaultdict(set)
    # links, which rglob does not follow
    for folder in (ROOT, *(ROOT / name for name in ("actors", "scheduler", "network"))):
        for path in folder.resolve().rglob("*.py"):
            module = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
            if module not in SETTERS:
                for name in re.findall(r"\b[A-Z][A-Z0-9_]+\b", declaring.sub("", path.read_text())):
                    if name in keys:
                        found[keys[name]].add(module)
    return found


def test_each_option_has_a_reader_or_says_why_it_has_none() -> None:
    found = readers()
    unread = {option.key for option in SCHEMA if not found[option.key]}
    flagged = {option.key for option in SCHEMA if option.without_effect is not None}
    assert unread - TO_COME == flagged
    assert len(found) > 100


def test_who_sets_one_is_told_once_when_the_job_is_submitted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_options, "_told", set())
    for _ in range(2):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.configure(
            {
                "state.changelog.enabled": "true",
                "execution.mode": "PIPELINED",
                "state.backend.rocksdb.options-factory": "a.Factory",
            }
        )
        env.from_collection([1]).print()
        with caplog.at_level(logging.WARNING, "flinkpy"):
            env.execute()
    (told,) = [message for message in caplog.messages if "no effect" in message]
    assert told.startswith(
        "options that have no effect here: state.backend.rocksdb.options-factory (there are "
        "no Java classes); state."
    )
    assert "state.changelog.enabled (" in told
    assert "execution.mode" not in told  # set to what it is anyway


def test_the_list_of_options_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_options("state.changelog.enabled")
    assert "no effect here: there is no log of changes" in capsys.readouterr().out
