from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from flinkpy.core.errors import NetworkProtocolError
from flinkpy.network.flow.credits import ReceiverCredits, SenderCredits
from flinkpy.network.flow.segments import NetworkBufferPool


class _Channel:
    """A sender with its queue of (records, segments), and what travels both ways."""

    def __init__(self, exclusive: int) -> None:
        self.sender = SenderCredits(exclusive)
        self.queue: deque[list[int]] = deque()
        # kind, segments, backlog, records
        self.to_receiver: deque[tuple[str, int, int, int]] = deque()
        self.to_sender: deque[int] = deque()
        self.arrived: deque[tuple[int, int]] = deque()  # segments, records
        self.blocked = False
        self.queued = self.consumed = 0

    @property
    def backlog(self) -> int:
        return sum(segments for _, segments in self.queue)


class Credits(RuleBasedStateMachine):
    """Any number of channels on one gate, whose messages travel in order per direction and
    otherwise as slowly as they like."""

    @initialize(
        channels=st.integers(1, 4),
        exclusive=st.integers(1, 5),
        floating=st.integers(0, 12),
        spare=st.integers(0, 10),
    )
    def start(self, channels: int, exclusive: int, floating: int, spare: int) -> None:
        self.exclusive = exclusive
        self.network = NetworkBufferPool(channels * exclusive + spare)
        self.pool = self.network.create_pool(
            "gate", channels * exclusive, channels * exclusive + floating
        )
        self.channels = [_Channel(exclusive) for _ in range(channels)]
        self.receiver = ReceiverCredits(
            channels,
            exclusive,
            floating,
            self.pool,
            lambda i, count: self.channels[i].to_sender.append(count),
        )
        self.pool.on_room = self.receiver.grant_waiting
        for channel in range(channels):
            self.receiver.open_window(channel)

    def any_channel(self, data: st.DataObject) -> int:
        return int(data.draw(st.integers(0, len(self.channels) - 1)))

    @rule(data=st.data(), records=st.integers(1, 20), segments=st.integers(1, 20))
    def queue(self, data: st.DataObject, records: int, segments: int) -> None:
        channel = self.channels[self.any_channel(data)]
        channel.queue.append([records, segments])
        channel.queued += records

    def send_one(self, index: int) -> bool:
        channel = self.channels[index]
        if not channel.queue:
            return False
        records, segments = channel.queue[0]
        part, charged = channel.sender.sendable_part(segments, records)
        if not charged:
            if channel.sender.must_announce(channel.backlog):
                channel.to_receiver.append(("backlog", 0, channel.backlog, 0))
                return True
            return False
        assert 1 <= part <= records
        if part == records:
            channel.queue.popleft()
        else:
            channel.queue[0] = [records - part, max(1, segments * (records - part) // records)]
        channel.sender.spend_credits(charged, channel.backlog)
        channel.to_receiver.append(("batch", charged, channel.backlog, part))
        return True

    def deliver_to_receiver(self, index: int) -> bool:
        channel = self.channels[index]
        if not channel.to_receiver:
            return False
        kind, segments, backlog, records = channel.to_receiver.popleft()
        if kind == "backlog":
            self.receiver.backlog_announced(index, backlog)
        else:
            self.receiver.frame_arrived(index, segments, backlog)
            channel.arrived.append((segments, records))
        return True

    def deliver_to_sender(self, index: int) -> bool:
        channel = self.channels[index]
        if not channel.to_sender:
            return False
        channel.sender.add_credits(channel.to_sender.popleft())
        return True

    def consume_one(self, index: int) -> bool:
        channel = self.channels[index]
        if channel.blocked or not channel.arrived:
            return False
        segments, records = channel.arrived.popleft()
        channel.consumed += records
        self.receiver.batch_consumed(index, segments)
        return True

    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        self.send_one(self.any_channel(data))

    @rule(data=st.data())
    def receive(self, data: st.DataObject) -> None:
        self.deliver_to_receiver(self.any_channel(data))

    @rule(data=st.data())
    def grant(self, data: st.DataObject) -> None:
        self.deliver_to_sender(self.any_channel(data))

    @rule(data=st.data())
    def consume(self, data: st.DataObject) -> None:
        self.consume_one(self.any_channel(data))

    @rule(data=st.data(), blocked=st.booleans())
    def block(self, data: st.DataObject, blocked: bool) -> None:
        self.channels[self.any_channel(data)].blocked = blocked

    @rule()
    def every_channel_that_is_not_blocked_gets_everything_through(self) -> None:
        moved = True
        while moved:
            moved = False
            for index in range(len(self.channels)):
                for move in (
                    self.deliver_to_sender,
                    self.send_one,
                    self.deliver_to_receiver,
                    self.consume_one,
                ):
                    while move(index):
                        moved = True
        for channel in self.channels:
            assert channel.blocked or channel.consumed == channel.queued

    @invariant()
    def what_is_granted_travels_or_is_held_is_what_the_pool_lent(self) -> None:
        if not hasattr(self, "channels"):
            return
        promised = 0
        for index, channel in enumerate(self.channels):
            granted, held = self.receiver.holds(index)
            in_flight = sum(
                segments for kind, segments, _, _ in channel.to_receiver if kind == "batch"
            )
            assert channel.sender.credits >= 0
            assert granted == channel.sender.credits + sum(channel.to_sender) + in_flight
            assert held == sum(segments for segments, _ in channel.arrived)
            promised += granted + held
        assert promised == self.pool.in_use <= self.pool.size

    def teardown(self) -> None:
        if hasattr(self, "channels"):
            for index in range(len(self.channels)):
                self.receiver.close_window(index)
            assert self.pool.in_use == 0


TestCredits = Credits.TestCase
TestCredits.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def test_a_frame_without_credit_is_a_broken_protocol() -> None:
    pool = NetworkBufferPool(10).create_pool("gate", 2, 2)
    receiver = ReceiverCredits(1, 2, 0, pool, lambda channel, count: None)
    receiver.open_window(0)
    with pytest.raises(
        NetworkProtocolError, match="3 segments arrived on a channel with 2 credits left"
    ):
        receiver.frame_arrived(0, 3, 0)


def test_a_sender_refuses_to_send_what_was_not_granted() -> None:
    with pytest.raises(NetworkProtocolError, match="would send 1 segments with 0 credits"):
        SenderCredits(2).spend_credits(1, 0)


def test_credits_travel_in_lots() -> None:
    grants: list[int] = []
    pool = NetworkBufferPool(100).create_pool("gate", 64, 100)
    receiver = ReceiverCredits(1, 64, 36, pool, lambda channel, count: grants.append(count))
    receiver.open_window(0)
    for _ in range(64):
        receiver.frame_arrived(0, 1, 0)
        receiver.batch_consumed(0, 1)
    assert grants == [64, 32, 32]


@pytest.mark.finding("faults 9")
def test_what_a_sender_that_has_ended_did_not_use_goes_to_a_channel_that_waits() -> None:
    grants: list[tuple[int, int]] = []
    pool = NetworkBufferPool(5).create_pool("gate", 4, 5)
    receiver = ReceiverCredits(
        2, 2, 3, pool, lambda channel, count: grants.append((channel, count))
    )
    for channel in (0, 1):
        receiver.open_window(channel)
    receiver.backlog_announced(0, 5)  # takes the only floating segment
    receiver.backlog_announced(1, 5)
    assert (grants, pool.in_use) == ([(0, 2), (1, 2), (0, 1)], 5)
    receiver.sender_ended(0)
    assert receiver.holds(0) == (0, 0)
    assert grants[3:] == [(1, 1)]
    assert pool.in_use == 3
