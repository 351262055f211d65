"""What every RpcService promises, whatever carries its messages."""

from __future__ import annotations

import pytest

from flinkpy.actors.rpc.delivery import envelope
from flinkpy.core.errors import (
    EndpointNotRunningError,
    EngineError,
    FencingError,
    HandshakeError,
    ProcessEndedError,
    RecipientUnreachableError,
    RemoteError,
    ResourceUnavailableError,
    RpcError,
    RpcTimeoutError,
)
from flinkpy.core.futures import Future, all_of
from flinkpy.core.ids import FencingToken
from flinkpy.core.lifecycles import EndpointState

from .conftest import HASTY, Rpc
from .sample import FencedSample, OtherGateway, Sample, SampleGateway


def gateway_to(
    rpc: Rpc, address: str, token: FencingToken | None = None, process: str = "client"
) -> SampleGateway:
    return rpc.wait(rpc.service(process).connect(None, address, SampleGateway, token))


def started(rpc: Rpc, name: str = "sample", process: str = "one") -> Sample:
    endpoint = Sample(rpc.service(process), name)
    endpoint.start()
    return endpoint


# -- asking and telling ----------------------------------------------------------------------------


def test_an_ask_is_answered(rpc: Rpc) -> None:
    gateway = gateway_to(rpc, started(rpc).address)
    assert rpc.wait(gateway.echo({"a": [1, 2]})) == {"a": [1, 2]}
    assert rpc.wait(gateway.echo(7, twice=True)) == (7, 7)


def test_tells_and_asks_of_one_caller_keep_their_order(rpc: Rpc) -> None:
    gateway = gateway_to(rpc, started(rpc).address)
    for number in range(500):
        gateway.note(number)
    assert rpc.wait(gateway.notes()) == list(range(500))


def test_a_wrong_call_fails_where_it_is_written(rpc: Rpc) -> None:
    gateway = gateway_to(rpc, started(rpc).address)
    with pytest.raises(TypeError, match="note"):
        gateway.note(1, 2)  # type: ignore[call-arg]


def test_a_coroutine_lets_other_messages_run_while_it_waits(rpc: Rpc) -> None:
    endpoint = started(rpc)
    gateway = gateway_to(rpc, endpoint.address)
    held = gateway.hold()
    assert rpc.wait(gateway.notes()) == ["holding"]
    gateway.release()
    assert rpc.wait(held) == "released"


def test_a_coroutine_calls_other_endpoints_and_goes_on_in_its_main_thread(rpc: Rpc) -> None:
    here, there = started(rpc, "here"), started(rpc, "there", process="two")
    assert rpc.wait(gateway_to(rpc, here.address).through(there.address, 5)) == [5, 5]


def test_an_endpoint_may_ask_itself(rpc: Rpc) -> None:
    endpoint = started(rpc)
    assert rpc.wait(gateway_to(rpc, endpoint.address).through(endpoint.address, 5)) == [5, 5]


def test_an_ask_without_answer_times_out_and_says_what_where_and_how_long(rpc: Rpc) -> None:
    endpoint = started(rpc)
    gateway = rpc.wait(rpc.service("hasty", HASTY).connect(None, endpoint.address, SampleGateway))
    with pytest.raises(
        RpcTimeoutError, match=rf"never at {endpoint.address}: no answer within 0\.1 s"
    ):
        rpc.wait(gateway.never())


def test_answers_arrive_in_the_main_thread_of_the_asking_endpoint(rpc: Rpc) -> None:
    asking, answering = started(rpc, "asking"), started(rpc, "answering", process="two")
    arrived: Future[bool] = Future()

    def ask(gateway: SampleGateway) -> None:
        asking.assert_main_thread()
        gateway.echo(1).then(lambda _: asking.main_thread.is_here()).forward_to(arrived)

    rpc.on(asking, lambda: asking.connect(answering.address, SampleGateway).then(ask))
    assert rpc.wait(arrived)


# -- errors ----------------------------------------------------------------------------------------


def test_an_error_of_ours_arrives_as_itself_with_the_remote_traceback(rpc: Rpc) -> None:
    with pytest.raises(
        ResourceUnavailableError, match=r"slotmanager\.number-of-slots\.max"
    ) as raised:
        rpc.wait(gateway_to(rpc, started(rpc).address).fail("ours"))
    assert "sample.py" in raised.value.remote_traceback  # type: ignore[attr-defined]


def test_any_other_error_arrives_as_a_remote_error_with_the_remote_traceback(rpc: Rpc) -> None:
    with pytest.raises(RemoteError, match="ZeroDivisionError: in the deep") as raised:
        rpc.wait(gateway_to(rpc, started(rpc).address).fail("foreign"))
    assert "in fail" in raised.value.remote_traceback


def test_an_error_that_does_not_pickle_is_converted(rpc: Rpc) -> None:
    with pytest.raises(RemoteError, match="StubbornError: wanted 2, had 1"):
        rpc.wait(gateway_to(rpc, started(rpc).address).fail("stubborn"))


def test_an_error_in_a_tell_is_fatal_and_the_endpoint_goes_on(rpc: Rpc) -> None:
    gateway = gateway_to(rpc, started(rpc).address)
    gateway.fail_silently()
    assert rpc.wait(gateway.echo(1)) == 1
    assert [type(error) for error in rpc.fatal] == [KeyError]


def test_an_error_in_a_tell_that_is_a_coroutine_is_fatal(rpc: Rpc) -> None:
    gateway = gateway_to(rpc, started(rpc).address)
    gateway.fail_silently_later()
    gateway.release()
    assert rpc.wait(gateway.echo(1)) == 1
    assert [type(error) for error in rpc.fatal] == [KeyError]


def test_an_error_in_a_scheduled_action_is_fatal(rpc: Rpc) -> None:
    endpoint = started(rpc)
    after: Future[None] = Future()

    def fail() -> None:
        endpoint.run_async(lambda: after.complete(None))
        raise KeyError("a bug")

    endpoint.schedule_run_async(0.001, fail)
    rpc.wait(after)
    assert [type(error) for error in rpc.fatal] == [KeyError]


# -- life ------------------------------------------------------------------------------------------


def test_on_start_runs_first_and_on_stop_last(rpc: Rpc) -> None:
    endpoint = Sample(rpc.service())
    endpoint.run_async(lambda: endpoint.life.append("queued before the start"))
    assert endpoint.lifecycle.state is EndpointState.CREATED
    endpoint.start()
    assert rpc.on(endpoint, lambda: endpoint.lifecycle.state) is EndpointState.STARTED
    rpc.wait(endpoint.stop())
    assert endpoint.lifecycle.is_terminal
    assert endpoint.life == ["on_start", "queued before the start", "on_stop"]


def test_an_endpoint_that_was_not_started_is_not_found(rpc: Rpc) -> None:
    endpoint = Sample(rpc.service())
    with pytest.raises(
        RecipientUnreachableError, match=rf"nobody listens at {endpoint.address} \(it is created\)"
    ):
        gateway_to(rpc, endpoint.address)


def test_an_endpoint_stopped_before_its_start_runs_nothing(rpc: Rpc) -> None:
    endpoint = Sample(rpc.service())
    rpc.wait(endpoint.stop())
    assert (endpoint.life, endpoint.lifecycle.state) == ([], EndpointState.TERMINATED)


def test_stopping_waits_for_on_stop_and_refuses_calls_meanwhile(rpc: Rpc) -> None:
    cleaned_up: Future[None] = Future()
    endpoint = Sample(rpc.service(), on_stop=lambda: cleaned_up)
    endpoint.start()
    gateway = gateway_to(rpc, endpoint.address)
    stopped = endpoint.stop()
    with pytest.raises(EndpointNotRunningError, match="is stopping: echo refused"):
        rpc.wait(gateway.echo(1))
    assert not stopped.done
    cleaned_up.complete(None)
    rpc.wait(stopped)


def test_on_stop_may_still_ask_others(rpc: Rpc) -> None:
    other = started(rpc, "other", process="two")
    endpoint = Sample(
        rpc.service(),
        on_stop=lambda: endpoint.connect(other.address, SampleGateway).then(
            lambda gateway: gateway.note("farewell")
        ),
    )
    endpoint.start()
    rpc.wait(endpoint.stop())
    assert rpc.wait(gateway_to(rpc, other.address).notes()) == ["farewell"]


def test_an_error_in_on_stop_is_fatal_and_the_endpoint_terminates_all_the_same(rpc: Rpc) -> None:
    endpoint = Sample(rpc.service(), on_stop=lambda: Future.failed(KeyError("a bug")))
    endpoint.start()
    rpc.wait(endpoint.stop())
    rpc.wait(rpc.service().stop())
    assert [type(error) for error in rpc.fatal] == [KeyError]


def test_an_endpoint_that_cannot_start_is_fatal_and_terminates(rpc: Rpc) -> None:
    class Broken(Sample):
        def on_start(self) -> None:
            raise KeyError("a bug")

    endpoint = Broken(rpc.service())
    endpoint.start()
    rpc.wait(endpoint.stop())
    assert endpoint.lifecycle.state is EndpointState.TERMINATED
    rpc.wait(rpc.service().stop())
    assert [type(error) for error in rpc.fatal] == [KeyError]


def test_what_an_endpoint_leaves_unanswered_is_answered_with_an_error_when_it_stops(
    rpc: Rpc,
) -> None:
    endpoint = started(rpc)
    gateway = gateway_to(rpc, endpoint.address)
    open_asks = [gateway.never(), gateway.hold()]
    rpc.wait(gateway.echo(1))
    rpc.wait(endpoint.stop())
    for ask in open_asks:
        assert isinstance(ask, Future)
        with pytest.raises(
            EndpointNotRunningError, match="is terminated: the answer was still open"
        ):
            rpc.wait(ask)


def test_mail_left_in_a_stopped_endpoint_is_answered_with_an_error(rpc: Rpc) -> None:
    endpoint = started(rpc)
    gateway = gateway_to(rpc, endpoint.address)
    endpoint.stop()
    asks = [gateway.echo(number) for number in range(20)]
    for ask in asks:
        with pytest.raises(RpcError, match=endpoint.address):
            rpc.wait(ask)


def test_what_should_still_run_in_a_stopped_endpoint_fails(rpc: Rpc) -> None:
    endpoint = started(rpc)

    def stop_and_leave_something() -> Future[str]:
        endpoint.stop()
        return endpoint.call_async(lambda: "ran after all")

    left = rpc.on(endpoint, stop_and_leave_something)
    with pytest.raises(EndpointNotRunningError, match="one/sample"):
        rpc.wait(left)
    with pytest.raises(EndpointNotRunningError, match="one/sample"):
        rpc.wait(endpoint.call_async(lambda: "ran after all"))


def test_nobody_listens_at_the_address_of_a_stopped_endpoint_and_it_may_be_used_again(
    rpc: Rpc,
) -> None:
    endpoint = started(rpc)
    gateway = gateway_to(rpc, endpoint.address)
    rpc.wait(endpoint.stop())
    with pytest.raises(RecipientUnreachableError, match=f"nobody listens at {endpoint.address}"):
        rpc.wait(gateway.echo(1))
    started(rpc)
    assert rpc.wait(gateway.echo(1)) == 1


def test_an_address_is_taken_only_once(rpc: Rpc) -> None:
    started(rpc)
    with pytest.raises(EngineError, match="one/sample is taken"):
        Sample(rpc.service())


def test_stopping_twice_is_stopping_once(rpc: Rpc) -> None:
    endpoint = started(rpc)
    rpc.wait(all_of([endpoint.stop(), endpoint.stop()]))
    assert endpoint.life == ["on_start", "on_stop"]


def test_a_service_that_stops_stops_its_endpoints(rpc: Rpc) -> None:
    endpoints = [started(rpc, f"sample-{number}") for number in range(4)]
    rpc.wait(rpc.service().stop())
    assert {endpoint.lifecycle.state for endpoint in endpoints} == {EndpointState.TERMINATED}


def test_a_service_that_has_stopped_asks_nobody(rpc: Rpc) -> None:
    endpoint = started(rpc)
    gateway = gateway_to(rpc, endpoint.address)
    rpc.wait(rpc.service("client").stop())
    with pytest.raises(
        EndpointNotRunningError,
        match="the rpc service client has stopped: echo at one/sample not sent",
    ):
        rpc.wait(gateway.echo(1))
    with pytest.raises(
        EndpointNotRunningError,
        match="the rpc service client has stopped: no connection to one/sample",
    ):
        gateway_to(rpc, endpoint.address)


# -- connecting ------------------------------------------------------------------------------------


def test_connecting_to_a_process_that_is_not_there_fails(rpc: Rpc) -> None:
    with pytest.raises(RecipientUnreachableError, match="there is no process nowhere"):
        gateway_to(rpc, "nowhere/sample")


def test_a_handshake_for_another_gateway_names_both_sides(rpc: Rpc) -> None:
    endpoint = started(rpc)
    with pytest.raises(
        HandshakeError,
        match=(
            "client speaks version 1 and wants a OtherGateway, one/sample speaks version 1 and is "
            "a SampleGateway"
        ),
    ):
        rpc.wait(rpc.service("client").connect(None, endpoint.address, OtherGateway))


def test_a_handshake_of_another_version_is_refused(
    rpc: Rpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = started(rpc)
    monkeypatch.setattr(
        "flinkpy.actors.rpc.delivery.asks.PROTOCOL_VERSION", envelope.PROTOCOL_VERSION + 1
    )
    with pytest.raises(
        HandshakeError, match=r"client speaks version 2 .* one/sample speaks version 1"
    ):
        gateway_to(rpc, endpoint.address)


def test_a_fenced_endpoint_takes_messages_of_its_own_term_only(rpc: Rpc) -> None:
    endpoint = FencedSample(rpc.service(), "fenced", FencingToken("term-two"))
    endpoint.start()
    assert rpc.wait(gateway_to(rpc, endpoint.address, FencingToken("term-two")).echo(1)) == 1
    with pytest.raises(FencingError, match="leads as term-two, the call of echo is for term-one"):
        rpc.wait(gateway_to(rpc, endpoint.address, FencingToken("term-one")).echo(1))
    with pytest.raises(FencingError, match="is for nobody"):
        rpc.wait(gateway_to(rpc, endpoint.address).echo(1))


def test_a_fenced_endpoint_without_leadership_refuses_all(rpc: Rpc) -> None:
    endpoint = FencedSample(rpc.service(), "fenced")
    endpoint.start()
    with pytest.raises(FencingError, match="has no leadership"):
        rpc.wait(gateway_to(rpc, endpoint.address, FencingToken("term-one")).echo(1))


# -- the main thread -------------------------------------------------------------------------------


def test_the_main_thread_is_asserted(rpc: Rpc) -> None:
    endpoint = started(rpc)
    assert rpc.on(endpoint, endpoint.main_thread.is_here)
    with pytest.raises(EngineError, match=endpoint.address):
        endpoint.assert_main_thread()


def test_a_timer_runs_in_the_main_thread_and_a_cancelled_one_does_not(rpc: Rpc) -> None:
    endpoint = started(rpc)
    ran: list[str] = []
    last: Future[bool] = Future()
    endpoint.schedule_run_async(0.002, lambda: ran.append("cancelled")).cancel()
    endpoint.schedule_run_async(0.02, lambda: last.complete(endpoint.main_thread.is_here()))
    endpoint.schedule_run_async(0.01, lambda: ran.append("first"))
    assert rpc.wait(last)
    assert ran == ["first"]


def test_a_slow_function_runs_off_the_main_thread_and_its_result_comes_back_into_it(
    rpc: Rpc,
) -> None:
    endpoint = started(rpc)
    back: Future[tuple[bool, bool]] = Future()

    def begin() -> None:
        result = endpoint.service.run_in_background(endpoint, endpoint.main_thread.is_here)
        result.then(lambda was_here: (was_here, endpoint.main_thread.is_here())).forward_to(back)

    endpoint.run_async(begin)
    assert rpc.wait(back) == (False, True)


def test_an_error_of_a_slow_function_is_in_its_future(rpc: Rpc) -> None:
    endpoint = started(rpc)
    with pytest.raises(ZeroDivisionError):
        rpc.wait(endpoint.service.run_in_background(endpoint, lambda: 1 // 0))


def test_those_who_watch_hear_of_the_end_of_a_process(rpc: Rpc) -> None:
    watcher, watched = started(rpc), started(rpc, process="two")
    heard: Future[str] = Future()
    cancelled: list[str] = []
    rpc.on(
        watcher, lambda: watcher.service.watch(watcher, watched.address, cancelled.append)
    ).cancel()
    rpc.on(watcher, lambda: watcher.service.watch(watcher, watched.address, heard.complete))
    rpc.wait(rpc.service("two").stop())
    assert rpc.wait(heard) == "process two has stopped"
    assert cancelled == []


def test_watching_a_process_that_is_not_there_reports_its_death(rpc: Rpc) -> None:
    watcher = started(rpc)
    heard: Future[str] = Future()
    rpc.on(watcher, lambda: watcher.service.watch(watcher, "nowhere/sample", heard.complete))
    assert rpc.wait(heard) == "there is no process nowhere"


@pytest.mark.finding("gaps G12")
def test_a_process_that_ends_by_an_error_tells_those_who_wait_and_those_who_ask(rpc: Rpc) -> None:
    gateway = gateway_to(rpc, started(rpc).address)
    waiting = gateway.never()
    rpc.wait(gateway.echo(1))  # `never` has been taken before
    rpc.service().refuse_all(ProcessEndedError("one ended: KeyError", is_bug=True))
    for asked in (waiting, gateway.echo(2)):
        with pytest.raises(ProcessEndedError, match=r"^one ended: KeyError$") as told:
            rpc.wait(asked)
        assert told.value.is_bug


@pytest.mark.finding("gaps G12")
def test_an_error_in_a_coroutine_that_nobody_waits_for_is_not_lost(rpc: Rpc) -> None:
    endpoint = started(rpc)

    async def fails() -> None:
        raise ValueError("in the background")

    endpoint.run_async(lambda: endpoint.run_coroutine(fails()))
    rpc.on(endpoint, lambda: None)
    assert [str(error) for error in rpc.fatal] == ["in the background"]
