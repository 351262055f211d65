"""The service over real Ray actors: the same promises, and death noticed at once."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flinkpy.core.errors import (
    EndpointNotRunningError,
    FencingError,
    HandshakeError,
    RecipientUnreachableError,
    RemoteError,
    ResourceUnavailableError,
    RpcError,
    RpcTimeoutError,
)
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken
from flinkpy.core.options.engine import RpcConfig

from .sample import FencedSample, OtherGateway, Sample, SampleGateway

ray = pytest.importorskip("ray")

from ray.exceptions import OutOfMemoryError  # noqa: E402

from flinkpy.actors.rpc import ray_service  # noqa: E402  # imports ray
from flinkpy.actors.rpc.ray_service import NAMESPACE, RayHost, RayRpcService, find_host, start_host  # noqa: E402

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own log files and sockets
]

# so long that whatever fails sooner did not time out
CONFIG = RpcConfig(ask_timeout=timedelta(seconds=60))
NAMES = (f"process-{number}" for number in itertools.count())


def set_up(service: RayRpcService) -> None:
    """What runs in each host: two plain endpoints and a fenced one."""
    Sample(service).start()
    Sample(service, "second").start()
    FencedSample(service, "fenced", FencingToken("term-two")).start()


@pytest.fixture(scope="module")
def host(on_ray: None) -> Iterator[RayHost]:
    made = new_host()
    yield made
    made.stop().result(30)


@pytest.fixture
def service(on_ray: None) -> Iterator[RayRpcService]:
    made = RayRpcService("client", config=CONFIG)
    yield made
    made.stop().result(30)


def new_host(setup: Callable[[RayRpcService], Any] = set_up) -> RayHost:
    made = start_host(next(NAMES), setup, config=CONFIG, options={"num_cpus": 0})
    made.ready().result(120)
    return made


def gateway_to(
    service: RayRpcService, address: str, token: FencingToken | None = None
) -> SampleGateway:
    return service.connect(None, address, SampleGateway, token).result(30)


def test_an_ask_is_answered_from_another_process(service: RayRpcService, host: RayHost) -> None:
    gateway = gateway_to(service, f"{host.process}/sample")
    assert gateway.echo({"a": (1, 2)}, twice=True).result(30) == ({"a": (1, 2)}, {"a": (1, 2)})
    assert gateway.thread().result(30) == f"{host.process}/sample"


class RayIsDown:
    """An actor's ``deliver`` behind a cluster that has gone."""

    def options(self, **options: Any) -> Any:
        return self

    def remote(self, *message: Any) -> Any:
        raise RuntimeError("Ray has been shut down")


def test_heartbeats_into_a_cluster_that_has_gone_leave_one_line_in_the_log(
    service: RayRpcService,
    host: RayHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = SimpleNamespace(deliver=RayIsDown())
    reached = SimpleNamespace(get_actor=lambda *_, **__: gone, is_initialized=lambda: True)
    monkeypatch.setattr(ray_service, "ray", reached)
    peer = ray_service.RayPeer(service, host.process)
    peer.resolve()
    for _ in range(3):
        peer.send(None, b"a heartbeat")
    assert [record.getMessage() for record in caplog.records] == [
        f"no message reaches {host.process} any more: Ray has been shut down"
    ]


class AnswersAtOnce:
    """An actor's ``deliver`` whose answers are there before anybody can wait for them."""

    def __init__(self, deliver: Any) -> None:
        self._deliver = deliver

    def options(self, **options: Any) -> Any:
        return self._deliver.options(**options)

    def remote(self, *message: Any) -> Any:
        answer = self._deliver.remote(*message)
        ray.wait([answer], timeout=30)
        done = answer.future()
        done.result(30)
        return SimpleNamespace(future=lambda: done)


OF_ANOTHER_RAY = """
import ray
from flinkpy.datastream import StreamExecutionEnvironment

ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10**12).add_sink(lambda number: None)
env.execute_async("endless")
ray.shutdown()

def another(*_, **__):
    print("another Ray", flush=True)

ray.init = another
"""


@pytest.mark.wide
def test_a_program_that_shut_ray_down_while_its_job_ran_starts_no_other_ray_at_its_end(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.py").write_text(OF_ANOTHER_RAY)
    command = [sys.executable, str(tmp_path / "job.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert ended.stdout == ""
    assert "no message reaches jobmanager-default any more: Ray was shut down" in ended.stderr


def test_nothing_is_sent_found_or_killed_where_ray_was_shut_down(
    service: RayRpcService, host: RayHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = gateway_to(service, f"{host.process}/sample")
    monkeypatch.setattr(ray_service, "ray", SimpleNamespace(is_initialized=lambda: False))
    with pytest.raises(RecipientUnreachableError, match="Ray was shut down"):
        gateway.echo(1).result(30)
    with pytest.raises(RecipientUnreachableError, match="Ray was shut down"):
        service.connect(None, "elsewhere/sample", SampleGateway).result(30)
    assert find_host(host.process) is None
    with pytest.raises(RecipientUnreachableError, match="Ray was shut down"):
        host.kill()


@pytest.mark.wide
def test_a_callback_asks_again_while_the_process_is_being_looked_up(
    service: RayRpcService, host: RayHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the first ask may be there so fast that its callback runs in the thread that
    has sent the ask."""
    actor = ray.get_actor(host.process, namespace=NAMESPACE)
    monkeypatch.setattr(
        ray,
        "get_actor",
        lambda *name, **where: SimpleNamespace(deliver=AnswersAtOnce(actor.deliver)),
    )
    echoed: Future[Any] = Future()
    service.connect(None, f"{host.process}/sample", SampleGateway).add_done_callback(
        lambda done: done.result(0).echo("again", twice=False).forward_to(echoed)
    )
    assert echoed.result(30) == "again"


def test_messages_of_one_caller_keep_their_order(service: RayRpcService, host: RayHost) -> None:
    gateway = gateway_to(service, f"{host.process}/second")
    for number in range(1000):
        gateway.note(number)
    assert gateway.notes().result(30) == list(range(1000))


def test_endpoints_of_two_actors_talk_to_each_other(service: RayRpcService, host: RayHost) -> None:
    other = new_host()
    gateway = gateway_to(service, f"{other.process}/sample")
    assert gateway.through(f"{host.process}/sample", 5).result(30) == [5, 5]
    assert gateway.through(f"{other.process}/second", 6).result(30) == [6, 6]
    other.stop().result(30)


@pytest.mark.wide
def test_the_users_own_objects_travel(service: RayRpcService, host: RayHost) -> None:
    assert (
        gateway_to(service, f"{host.process}/sample").echo(lambda value: value + 1).result(30)(1)
        == 2
    )


@pytest.mark.wide
def test_errors_arrive_with_the_remote_traceback(service: RayRpcService, host: RayHost) -> None:
    gateway = gateway_to(service, f"{host.process}/sample")
    with pytest.raises(ResourceUnavailableError, match="no slots") as ours:
        gateway.fail("ours").result(30)
    assert "sample.py" in ours.value.remote_traceback  # type: ignore[attr-defined]
    with pytest.raises(RemoteError, match="ZeroDivisionError: in the deep"):
        gateway.fail("foreign").result(30)
    with pytest.raises(RemoteError, match="StubbornError"):
        gateway.fail("stubborn").result(30)


@pytest.mark.wide
def test_an_ask_times_out(host: RayHost) -> None:
    hasty = RayRpcService("hasty", config=RpcConfig(ask_timeout=timedelta(seconds=1)))
    gateway = gateway_to(hasty, f"{host.process}/sample")
    with pytest.raises(
        RpcTimeoutError, match=f"never at {host.process}/sample: no answer within 1 s"
    ):
        gateway.never().result(30)
    hasty.stop().result(30)


def test_handshakes_and_tokens_are_checked(service: RayRpcService, host: RayHost) -> None:
    with pytest.raises(HandshakeError, match="client speaks version 1 and wants a OtherGateway"):
        service.connect(None, f"{host.process}/sample", OtherGateway).result(30)
    with pytest.raises(RecipientUnreachableError, match="nobody listens"):
        gateway_to(service, f"{host.process}/nobody")
    with pytest.raises(
        RecipientUnreachableError, match="there is no process nowhere on Ray in namespace flinkpy"
    ):
        gateway_to(service, "nowhere/sample")
    with pytest.raises(FencingError, match="leads as term-two"):
        gateway_to(service, f"{host.process}/fenced", FencingToken("term-one")).echo(1).result(30)


@pytest.mark.wide
def test_what_does_not_pickle_fails_where_it_is_sent(service: RayRpcService, host: RayHost) -> None:
    gateway = gateway_to(service, f"{host.process}/sample")
    with pytest.raises(RpcError, match=r"sample\.note cannot be sent to another process"):
        gateway.note(threading.Lock())
    assert gateway.echo(1).result(30) == 1


def test_a_killed_process_is_noticed_at_once_by_those_who_watch_and_those_who_wait(
    service: RayRpcService,
) -> None:
    host = new_host()
    watcher = Sample(service, "watcher")
    watcher.start()
    gateway = gateway_to(service, f"{host.process}/sample")
    heard: Future[str] = Future()
    watcher.call_async(
        lambda: service.watch(watcher, f"{host.process}/sample", heard.complete)
    ).result(30)
    ask = gateway.never()
    assert gateway.echo(1).result(30) == 1
    host.kill()
    assert f"process {host.process} died" in heard.result(30)
    with pytest.raises(RecipientUnreachableError, match=f"process {host.process}"):
        ask.result(30)
    with pytest.raises(RecipientUnreachableError):
        gateway.echo(1).result(30)


def test_a_process_that_ray_killed_for_memory_is_gone(
    service: RayRpcService, host: RayHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's error for that is none of an actor that died."""

    def killed(data: bytes) -> object:
        raise OutOfMemoryError("1 worker(s) were killed due to the node running low on memory.")

    gateway = gateway_to(service, f"{host.process}/sample")
    monkeypatch.setattr(ray_service, "unpack", killed)
    with pytest.raises(RecipientUnreachableError, match=r"is gone: .* running low on memory\."):
        gateway.echo(1).result(30)


@pytest.mark.wide
def test_a_process_that_stops_answers_what_is_open_and_tells_those_who_watch(
    service: RayRpcService,
) -> None:
    host = new_host()
    watcher = Sample(service, "watcher")
    watcher.start()
    heard: Future[str] = Future()
    watcher.call_async(
        lambda: service.watch(watcher, f"{host.process}/sample", heard.complete)
    ).result(30)
    gateway = gateway_to(service, f"{host.process}/sample")
    ask = gateway.hold()
    gateway.notes().result(30)
    host.stop().result(30)
    with pytest.raises(EndpointNotRunningError, match="is terminated: the answer was still open"):
        ask.result(30)
    assert heard.result(30) == f"process {host.process} has stopped"


@pytest.mark.wide
def test_a_process_may_end_itself(service: RayRpcService) -> None:
    class Ending(Sample):
        def release(self) -> None:
            assert isinstance(self.service, RayRpcService)
            self.service.exit_process()

    host = new_host(lambda service: Ending(service).start())
    watcher = Sample(service, "watcher")
    watcher.start()
    heard: Future[str] = Future()
    watcher.call_async(
        lambda: service.watch(watcher, f"{host.process}/sample", heard.complete)
    ).result(30)
    gateway_to(service, f"{host.process}/sample").release()
    assert heard.result(30) == f"process {host.process} has stopped"


@pytest.mark.wide
def test_a_set_up_that_fails_says_why(on_ray: None) -> None:
    def broken(service: RayRpcService) -> None:
        raise ValueError("no such disk")

    host = start_host(next(NAMES), broken, options={"num_cpus": 0})
    with pytest.raises(RecipientUnreachableError, match="no such disk"):
        host.ready().result(30)


@pytest.mark.wide
def test_hosts_are_found_by_name(host: RayHost) -> None:
    found = find_host(host.process)
    assert found is not None
    found.ready().result(30)
    assert find_host("nowhere") is None
    assert ray_service.NAMESPACE == "flinkpy"
