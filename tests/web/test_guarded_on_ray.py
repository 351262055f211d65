"""The REST endpoint of a session on a real Ray, over https and with a token: what Flink's clients
are told, and what nobody is."""

from __future__ import annotations

import re
import signal
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.cluster.ray_fixture import RayCluster, finish
from tests.waiting import eventually
from tests.web.certificates import Authority
from tests.web.flink_routes import READ
from tests.web.rest import Rest
from tests.web.test_contract import ASKED, OWN_FIELDS, faults, filled, ids_of
from tests.web.test_fuzz import PAGES_MARK, TOKEN, TOLD_NEVER, Attempt, answer_to, attempts
from tests.web.test_tls import trusting

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(400)]

REQUESTS = 150
JOB = """
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(0, 10**15).map(lambda n: n).add_sink(lambda value: None)
env.execute("guarded")
"""


@dataclass(frozen=True)
class Guarded:
    """A session that runs one job; its endpoint, and how a client trusts it."""

    rest: Rest
    tls: ssl.SSLContext
    job: str
    folder: Path


@pytest.fixture(scope="module")
def guarded(ray: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder, "authority")
    server, tls = authority.sign("server"), trusting(authority)
    options = [
        "rest.enabled=true",
        "rest.port=0",
        f"rest.token={TOKEN}",
        "security.ssl.rest.enabled=true",
        f"security.ssl.rest.keystore={server.certificate}",
        f"security.ssl.rest.key={server.key}",
    ]
    started = ray.flinkpy(
        "session", "start", *[part for option in options for part in ("-D", option)], "guarded"
    )
    found = re.search(r"https://localhost:(\d+)", started.out)
    assert found is not None, started
    rest = Rest(int(found[1]), token=TOKEN, tls=tls)
    program = ray.start(
        "run",
        "-t",
        "ray-session",
        "-D",
        "cluster.id=guarded",
        "-D",
        "execution.checkpointing.interval=1 s",
        "-D",
        f"execution.checkpointing.dir={folder}",
        ray.job(JOB, "guarded.py"),
    )
    try:
        eventually(
            lambda: [job["tasks"]["running"] for job in rest.get("/jobs/overview")["jobs"]] == [1]
        )
        yield Guarded(rest, tls, rest.get("/jobs/overview")["jobs"][0]["jid"], folder)
    finally:
        program.send_signal(signal.SIGINT)
        finish(program)
        ray.flinkpy("session", "stop", "guarded")


def test_only_who_has_the_token_and_speaks_https_is_answered(guarded: Guarded) -> None:
    port = guarded.rest.port
    assert guarded.rest.get("/jobs")["jobs"] == [{"id": guarded.job, "status": "RUNNING"}]
    assert Rest(port, tls=guarded.tls).ask("/jobs").status == 401
    assert Rest(port, token=TOKEN[:-1], tls=guarded.tls).ask("/jobs").status == 401
    with pytest.raises(ssl.SSLCertVerificationError):
        Rest(port, token=TOKEN, tls=ssl.create_default_context()).ask("/jobs")
    plain = b""
    with suppress(ConnectionError):
        plain = answer_to(
            port,
            Attempt(
                (
                    f"GET /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode(),
                ),
                "half",
                True,
            ),
        )
    assert b"200" not in plain


def test_every_answer_has_flinks_fields_with_their_types(guarded: Guarded) -> None:
    eventually(
        lambda: guarded.rest.get(f"/jobs/{guarded.job}/checkpoints")["counts"]["completed"] > 0
    )
    asked, found = 0, []
    for path in ASKED:
        ids = (
            ids_of(guarded.rest, guarded.job, path)
            if path in READ and READ[path].answer is not None
            else None
        )
        if ids is None:
            continue
        answer = guarded.rest.ask(filled(path, ids))
        wrong = (
            [f"status {answer.status}"]
            if answer.status != 200
            else list(faults(answer.json, READ[path].answer))
        )
        found += [
            (path, each)
            for each in wrong
            if not any(f" has {field}, " in each for field in OWN_FIELDS.get(path, ()))
        ]
        asked += 1
    assert found == []
    assert asked > 40


def test_odd_requests_do_no_harm_and_learn_nothing(guarded: Guarded) -> None:
    vertex = guarded.rest.get(f"/jobs/{guarded.job}")["vertices"][0]["id"]

    @settings(
        max_examples=REQUESTS, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(attempts(guarded.job, vertex, str(guarded.folder)))
    def ask(attempt: Attempt) -> None:
        said = answer_to(guarded.rest.port, attempt, guarded.tls)
        assert not [secret for secret in TOLD_NEVER if secret in said], said
        assert attempt.has_token or TOKEN.encode() not in said, said
        for status in map(int, re.findall(rb"^HTTP/1\.1 (\d\d\d)", said)):
            assert status != 500, said
            assert attempt.has_token or status >= 400 or status == 100 or PAGES_MARK in said, said

    ask()
    assert guarded.rest.ask("/overview").json["taskmanagers"] >= 1
    assert [each["id"] for each in guarded.rest.get("/jobs")["jobs"]] == [guarded.job]
