"""The processes of the cluster for those who serve HTTP: the TaskExecutors there are, and what the
inspector of each process answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container
from typing import TypeVar

from flinkpy.actors.gateways import ResourceManagerGateway
from flinkpy.actors.inspector.inspector_gateway import INSPECTOR, ProcessInspectorGateway
from flinkpy.actors.rpc.service import RpcService
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.core.errors import FlinkpyError, RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ResourceId
from flinkpy.web.shared_answers import SharedAnswers, answer_of

T = TypeVar("T")

PATIENCE_S = 3.0  # a process that has not answered by then is not waited for
MOST_GATEWAYS = 1000  # kept; one is made again when it is needed


class InspectorCalls:
    """What handlers ask. All calls come from the server's event loop.

    ``question`` names what is asked: all who ask a process the same question at the same time share
    its answer. Raises RpcTimeoutError if the process does not answer within ``PATIENCE_S``, another
    RpcError if it is gone."""

    def __init__(self, service: RpcService, resource_manager: ResourceManagerGateway) -> None:
        self._service, self._resource_manager = service, resource_manager
        self._answers = SharedAnswers(service.clock)
        self._gateways: dict[str, Future[ProcessInspectorGateway]] = {}
        # the address of the inspector in this process
        self.job_manager = service.address_of(INSPECTOR)

    def task_executors(self) -> Awaitable[tuple[TaskExecutorInfo, ...]]:
        return self._answers.get(("task executors",), self._resource_manager.request_task_executors)

    async def ask(
        self, address: str, question: str, call: Callable[[ProcessInspectorGateway], Future[T]]
    ) -> T:
        """Asks the inspector at that address."""
        return await _in_time(
            address,
            self._answers.get((address, question), lambda: self._gateway(address).compose(call)),
        )

    async def ask_all(
        self,
        question: str,
        call: Callable[[ProcessInspectorGateway], Future[T]],
        only: Container[ResourceId] | None = None,
    ) -> dict[ResourceId, T]:
        """Asks all TaskExecutors, or ``only`` these, at once; those that do not answer are left
        out."""
        asked = [
            each
            for each in await self.task_executors()
            if each.process.inspector and (only is None or each.resource_id in only)
        ]
        answers = await asyncio.gather(
            *[self.ask(each.process.inspector, question, call) for each in asked],
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, FlinkpyError):
                raise answer
        return {
            each.resource_id: answer
            for each, answer in zip(asked, answers)
            if not isinstance(answer, BaseException)
        }

    async def read_log(self, address: str, name: str, offset: int, size: int) -> bytes:
        """A piece of a log, which is not kept for others: they would hold up to 200 MB."""
        return await _in_time(
            address,
            answer_of(
                self._gateway(address).compose(
                    lambda inspector: inspector.read_log(name, offset, size)
                )
            ),
        )

    def _gateway(self, address: str) -> Future[ProcessInspectorGateway]:
        known = self._gateways.pop(address, None)
        if known is None or known.error is not None:
            known = self._service.connect(None, address, ProcessInspectorGateway)
        self._gateways[address] = known  # the last one asked is the last one here
        if len(self._gateways) > MOST_GATEWAYS:
            del self._gateways[next(iter(self._gateways))]
        return known


async def _in_time(address: str, answer: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(answer, PATIENCE_S)
    except asyncio.TimeoutError:
        raise RpcTimeoutError(f"{address}: no answer within {PATIENCE_S:g} s") from None
