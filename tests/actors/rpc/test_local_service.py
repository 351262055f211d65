"""What only threads have: timers of real time, a pool, start-up cost, and an import that stays
light."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import partial

import pytest

from flinkpy.actors.rpc.local_service import LocalRpcService
from flinkpy.actors.rpc.threads import BackgroundThreads, TimerThread
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import EndpointNotRunningError, ProcessEndedError
from flinkpy.core.futures import Future, all_of

from .sample import Sample, SampleGateway


@pytest.fixture
def timers() -> Iterator[TimerThread]:
    made = TimerThread("timers", SYSTEM_CLOCK, lambda error: None)
    yield made
    made.stop()


def test_timers_run_in_the_order_of_their_times(timers: TimerThread) -> None:
    ran: list[int] = []
    done: Future[None] = Future()
    all_there = threading.Event()
    timers.schedule(0.0, all_there.wait)
    timers.schedule(0.3, lambda: done.complete(None))
    for number in (2, 0, 1):
        timers.schedule(0.1 * number, lambda number=number: ran.append(number))  # type: ignore[misc]
    all_there.set()
    done.result(timeout=30)
    assert ran == [0, 1, 2]


def test_cancelled_timers_do_not_pile_up(timers: TimerThread) -> None:
    for _ in range(5000):
        timers.schedule(3600, lambda: None).cancel()
    assert len(timers) <= TimerThread.SWEEP_FROM + 1


def test_an_error_in_a_timer_is_reported_and_the_next_one_runs() -> None:
    errors: list[BaseException] = []
    done: Future[None] = Future()
    timers = TimerThread("timers", SYSTEM_CLOCK, errors.append)
    timers.schedule(0, lambda: 1 // 0)
    timers.schedule(0.001, lambda: done.complete(None))
    done.result(timeout=30)
    timers.stop()
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_stopped_timer_thread_takes_no_more(timers: TimerThread) -> None:
    timers.stop()
    timers.schedule(0, lambda: pytest.fail("ran"))
    assert len(timers) == 0


def test_slow_functions_run_side_by_side_up_to_the_limit() -> None:
    pool = BackgroundThreads("pool", limit=3)
    meeting = threading.Barrier(3, timeout=30)
    met: list[Future[None]] = [Future() for _ in range(6)]

    def meet(future: Future[None]) -> None:
        meeting.wait()
        future.complete(None)

    for future in met:
        pool.submit(lambda future=future: meet(future))  # type: ignore[misc]
    all_of(met).result(timeout=30)
    pool.stop()
    assert not pool.submit(lambda: None)


def test_each_endpoint_has_a_thread_of_its_own_named_after_it() -> None:
    service = LocalRpcService()
    for name in ("a", "b"):
        Sample(service, name).start()
    names = {
        service.connect(None, f"local/{name}", SampleGateway).result(30).thread().result(30)
        for name in ("a", "b")
    }
    assert names == {"local/a", "local/b"}
    threads = [thread for thread in threading.enumerate() if thread.name in names]
    service.stop().result(30)
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)


def test_a_service_that_stops_fails_the_asks_that_are_still_open() -> None:
    here = LocalRpcService(process="here")
    there = here.sibling("there")
    Sample(there).start()
    ask = here.connect(None, "there/sample", SampleGateway).result(30).never()
    here.stop().result(30)
    with pytest.raises(
        EndpointNotRunningError,
        match="rpc service here has stopped: never at there/sample not answered",
    ):
        ask.result(30)
    there.stop().result(30)


def test_a_fatal_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    service = LocalRpcService()
    Sample(service).start()
    gateway = service.connect(None, "local/sample", SampleGateway).result(30)
    gateway.fail_silently()
    gateway.echo(1).result(30)
    service.stop().result(30)
    assert "fatal error in local/sample" in caplog.text
    assert "nobody waits for this" in caplog.text


def test_a_coroutine_that_asks_thousands_of_times_keeps_a_flat_stack() -> None:
    service = LocalRpcService()
    endpoint = Sample(service)
    endpoint.start()
    done: Future[int] = Future()

    async def many() -> int:
        gateway = await endpoint.connect("local/sample", SampleGateway)
        return sum([await gateway.echo(1) for _ in range(3000)])

    endpoint.run_async(lambda: endpoint.spawn(many()).forward_to(done))
    assert done.result(timeout=30) == 3000
    service.stop().result(30)


def test_the_local_service_does_not_import_ray() -> None:
    modules = (
        "sys, flinkpy.actors.rpc.local_service, flinkpy.actors.rpc.simulated.unreliable_network"
    )
    code = f"import {modules}; sys.exit(bool({{'ray', 'cloudpickle'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_threads_may_ask_at_once_and_no_answer_is_lost() -> None:
    service = LocalRpcService()
    for name in ("a", "b"):
        Sample(service, name).start()
    gateways = [
        service.connect(None, f"local/{name}", SampleGateway).result(30) for name in ("a", "b")
    ]
    wrong: list[object] = []

    def ask(offset: int) -> None:
        asks = [
            (number, gateways[number % 2].echo(number)) for number in range(offset, offset + 500)
        ]
        wrong.extend(number for number, ask in asks if ask.result(timeout=30) != number)

    threads = [threading.Thread(target=ask, args=(1000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert wrong == []
    assert len(service.asks) == 0
    service.stop().result(30)


def test_an_endpoint_that_has_stopped_is_not_held_by_its_timers() -> None:
    service = LocalRpcService()
    endpoint = Sample(service, "scheduling")
    endpoint.start()
    endpoint.schedule_run_async(1000, partial(endpoint.note, "late"))
    thread = next(thread for thread in threading.enumerate() if thread.name == endpoint.address)
    endpoint.stop().result(30)
    thread.join(timeout=30)
    held = weakref.ref(endpoint)
    del endpoint
    gc.collect()
    assert held() is None
    service.stop().result(30)


@pytest.mark.finding("gaps G12")
def test_who_asks_through_a_service_that_ended_by_an_error_gets_this_error_also_when_it_has_stopped() -> (
    None
):
    service = LocalRpcService()
    endpoint = Sample(service)
    endpoint.start()
    gateway = service.connect(None, endpoint.address, SampleGateway).result(30)
    service.refuse_all(ProcessEndedError("it ended: KeyError", is_bug=True))
    service.stop().result(30)
    with pytest.raises(ProcessEndedError, match=r"^it ended: KeyError$"):
        gateway.echo(1).result(30)
