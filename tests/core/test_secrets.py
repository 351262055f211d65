"""Secrets in texts, and files that are one user's own."""

from __future__ import annotations

import io
import logging
import os
import pickle
import re
from pathlib import Path

import pytest

from flinkpy.core.errors import ConfigurationError, FlinkpyError, ResourceUnavailableError
from flinkpy.core.files.file_systems import split_url
from flinkpy.core.files.users_files import locked, users_folder
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.core.secrets.hidden_secrets import without_secrets
from flinkpy.state.checkpoints.own_folder import remove_abandoned
from tests.house_files import FILES


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:se/cr+et=@lake/a?region=eu", "s3://******@lake/a?region=eu"),
        ("s3a://key@lake/a", "s3a://******@lake/a"),
        (
            "https://user:pa@host:8443/x and http://token@other/",
            "https://******@host:8443/x and http://******@other/",
        ),
        (
            "https://host/x?sig=abc%2F&X-Amz-Signature=1f&page=2",
            "https://host/x?sig=******&X-Amz-Signature=******&page=2",
        ),
        (
            "s3://lake/a?access_key=k&secret_key=s&session_token=t",
            "s3://lake/a?access_key=******&secret_key=******&session_token=******",
        ),
        (
            "abfss://container@account.dfs.core.windows.net/a",
            "abfss://container@account.dfs.core.windows.net/a",
        ),
        (
            "abfss://container:pass@account.dfs.core.windows.net/a",
            "abfss://container:******@account.dfs.core.windows.net/a",
        ),
        ("hdfs://flink@namenode:8020/a", "hdfs://flink@namenode:8020/a"),
        (
            "{'sasl.password': 'pa', 'sasl.username': 'flink'}",
            "{'sasl.password': '******', 'sasl.username': 'flink'}",
        ),
        ("ssl.key.password=pa,ssl.key.location=/k", "ssl.key.password=******,ssl.key.location=/k"),
        (
            'x required username="u" password = "p\\"q";',
            'x required username="u" password = "******";',
        ),
    ],
)
def test_secrets_are_hidden_where_they_stand(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8081/jobs",
        "http://localhost:8081/a@b",
        "s3://lake/user@host/x",
        "file:///tmp/a@b",
        "KeyError: 'password'",
        "unexpected token: )",
        "the password is wrong",
        "passwords = read()",
        "http://localhost:8081/#token=1fdV",
        "if password == given:",
        "a key of 12 letters",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_an_error_tells_no_secret_also_behind_a_pickle() -> None:
    error = FlinkpyError("cannot reach s3://key:word@lake/")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "cannot reach s3://******@lake/"


def test_a_log_record_of_the_engine_has_no_secret_in_message_or_traceback() -> None:
    logger, text = engine_logger("flinkpy.test_secrets"), io.StringIO()
    handler = logging.StreamHandler(text)
    logger.addHandler(handler)
    try:
        try:
            raise OSError("Cannot parse URI: 's3://key:word@lake'")
        except OSError:
            logger.exception("reading %s", "s3://key:word@lake")
    finally:
        logger.removeHandler(handler)
    assert "word" not in text.getvalue()
    assert text.getvalue().count("s3://******@lake") == 3  # with the line of the source


def test_a_location_that_was_copied_without_its_credentials_is_told_so() -> None:
    with pytest.raises(
        ConfigurationError,
        match=(
            "where flinkpy hides credentials: write them in again, or set them in the environment"
        ),
    ):
        split_url("s3://******@lake/chk-1")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.finding("faults 4")
def test_a_lock_is_in_a_folder_that_is_the_users_own(temporary: Path) -> None:
    with locked("start.lock"):
        pass
    [folder] = temporary.iterdir()
    assert folder == users_folder()
    assert (folder.stat().st_mode & 0o777, (folder / "start.lock").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


@pytest.mark.finding("faults 4")
def test_a_link_at_a_locks_place_is_not_followed_and_a_pipe_is_not_waited_for(
    temporary: Path,
) -> None:
    precious = temporary / "precious"
    precious.write_text("kept")
    for make in (lambda path: path.symlink_to(precious), os.mkfifo):
        path = users_folder() / "start.lock"
        make(path)
        with (
            pytest.raises(ResourceUnavailableError, match=r"the lock .*start.lock .*: remove it"),
            locked("start.lock"),
        ):
            pass
        path.unlink()
    assert precious.read_text() == "kept"


@pytest.mark.finding("faults 4")
def test_a_folder_that_others_can_change_or_a_link_in_its_place_is_refused(temporary: Path) -> None:
    folder = users_folder()
    folder.chmod(0o777)
    with pytest.raises(ResourceUnavailableError, match="remove it, or set TMPDIR to another place"):
        users_folder()
    folder.rmdir()
    (temporary / "elsewhere").mkdir()
    folder.symlink_to(temporary / "elsewhere")
    with pytest.raises(ResourceUnavailableError, match="remove it, or set TMPDIR to another place"):
        users_folder()


@pytest.mark.finding("faults 4")
def test_a_file_that_exists_is_not_emptied_by_a_lock(temporary: Path) -> None:
    path = users_folder() / "start.lock"
    path.write_text("as it was")
    with locked("start.lock"):
        assert path.read_text() == "as it was"


@pytest.mark.finding("faults 4")
def test_an_abandoned_folder_that_is_a_link_or_has_one_for_its_lock_is_left_alone(
    tmp_path: Path,
) -> None:
    within, precious = tmp_path / "temporary", tmp_path / "precious"
    within.mkdir()
    precious.mkdir()
    (precious / "owner").touch()
    (within / "flinkpy-rocksdb-a").symlink_to(precious)
    (within / "flinkpy-rocksdb-b").mkdir()
    (within / "flinkpy-rocksdb-b" / "owner").symlink_to(precious / "owner")
    assert remove_abandoned(within) == []
    assert (precious / "owner").exists()


def test_every_module_of_the_engine_logs_without_secrets() -> None:
    own = re.compile(r"^\w+ = logging\.getLogger\((?:__name__|\"flinkpy)", re.MULTILINE)
    known = {
        module
        for module, path in FILES.items()
        if module.startswith("flinkpy.")
        and ".testing" not in module
        and own.search(path.read_text())
    }
    assert known == set(), "use engine_logger of flinkpy.core.secrets.engine_logs"
