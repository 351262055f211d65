from __future__ import annotations

import threading

import pytest

from flinkpy.core.errors import EndpointNotRunningError, EngineError
from flinkpy.core.lifecycles import MailboxState
from flinkpy.core.mailbox import Mailbox, MailboxProcessor


def test_mail_is_processed_in_the_order_it_came() -> None:
    mailbox, seen = Mailbox("t"), list[int]()
    for number in range(5):
        mailbox.put(lambda number=number: seen.append(number))  # type: ignore[misc]
    MailboxProcessor(mailbox).run_step()
    assert seen == [0, 1, 2, 3, 4]


def test_mail_comes_before_the_default_action() -> None:
    mailbox, seen = Mailbox("t"), list[str]()
    processor = MailboxProcessor(mailbox, lambda: seen.append("default"))
    mailbox.put(lambda: seen.append("mail"))
    processor.run_step()
    assert seen == ["mail", "default"]


def test_a_suspended_default_action_does_not_run_until_resumed() -> None:
    seen = list[str]()
    processor = MailboxProcessor(Mailbox("t"), lambda: seen.append("default"))
    processor.suspended = True
    assert processor.run_step() is False
    processor.suspended = False
    assert processor.run_step() is True
    assert seen == ["default"]


def test_one_step_processes_a_bounded_amount_of_mail() -> None:
    mailbox, seen = Mailbox("t"), list[int]()
    for number in range(1000):
        mailbox.put(lambda number=number: seen.append(number))  # type: ignore[misc]
    processor = MailboxProcessor(mailbox)
    processor.run_step()
    assert len(seen) == MailboxProcessor.MAIL_PER_STEP


def test_a_quiesced_mailbox_refuses_new_mail_and_gives_out_what_it_has() -> None:
    mailbox, refused, seen = Mailbox("t"), list[Exception](), list[str]()
    mailbox.put(lambda: seen.append("old"))
    mailbox.quiesce()
    assert mailbox.put(lambda: seen.append("new"), "new mail", refused.append) is False
    MailboxProcessor(mailbox).run_step()
    assert seen == ["old"]
    assert [type(error) for error in refused] == [EndpointNotRunningError]
    assert "new mail" in str(refused[0])


def test_closing_answers_what_is_left_with_an_error() -> None:
    mailbox, refused = Mailbox("t"), list[Exception]()
    mailbox.put(lambda: None, "left behind", refused.append)
    mailbox.close()
    assert mailbox.state is MailboxState.CLOSED
    assert "left behind" in str(refused[0])
    assert mailbox.take_nowait() is None


def test_closing_twice_is_allowed() -> None:
    mailbox = Mailbox("t")
    mailbox.close()
    mailbox.close()
    assert mailbox.state is MailboxState.CLOSED


def test_arriving_mail_wakes_the_owner_only_when_the_box_was_empty() -> None:
    woken = list[int]()
    mailbox = Mailbox("t", wake=lambda: woken.append(1))
    mailbox.put(lambda: None)
    mailbox.put(lambda: None)
    assert len(woken) == 1


def test_waiting_for_mail_ends_when_mail_arrives_from_another_thread() -> None:
    mailbox = Mailbox("t")
    sender = threading.Thread(target=lambda: mailbox.put(lambda: None))
    sender.start()
    assert mailbox.wait_for_mail(timeout=10)
    sender.join()


def test_a_call_from_another_thread_than_the_main_one_is_a_bug() -> None:
    processor = MailboxProcessor(Mailbox("t"))
    thread = threading.Thread(target=processor.adopt_thread)
    thread.start()
    thread.join()
    with pytest.raises(EngineError, match="main thread"):
        processor.assert_main_thread()
