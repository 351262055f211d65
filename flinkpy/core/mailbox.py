"""The mailbox and its processor: one thread, mail first, then the default action.

The same class drives RPC endpoints (no default action) and tasks (the default action processes one
batch). The processor itself never blocks: ``run_step`` does a bounded piece of work, and the owner
of the thread decides how to wait. A slot loop waits in its selector, an endpoint's thread in
``wait_for_mail``, the simulation not at all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from flinkpy.core.errors import EndpointNotRunningError, EngineError
from flinkpy.core.lifecycles import MAILBOX, MailboxState, StateMachine


class Mail(NamedTuple):
    """A piece of work for the mailbox's thread; if it will never run, ``on_refused`` is called with
    the reason."""

    action: Callable[[], None]
    on_refused: Callable[[Exception], None] | None
    description: str


class Mailbox:
    """Takes mail from any thread. Closing it answers the mail that is left, so that no message
    stays without an answer.

    ``wake`` is called in the sender's thread when mail arrives in an empty mailbox.
    """

    def __init__(self, owner: str, wake: Callable[[], None] | None = None) -> None:
        self.owner = owner
        self._machine = StateMachine(MAILBOX, f"mailbox of {owner}")
        self._mail: deque[Mail] = deque()
        self._held: list[Mail] = []
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._wake = wake

    @property
    def state(self) -> MailboxState:
        return self._machine.state

    def __len__(self) -> int:
        return len(self._mail)

    def put(
        self,
        action: Callable[[], None],
        description: str = "",
        on_refused: Callable[[Exception], None] | None = None,
    ) -> bool:
        """Queues the action. If the mailbox takes no more mail, calls ``on_refused`` and returns
        False."""
        with self._lock:
            accepted = self._machine.state is MailboxState.OPEN
            if accepted:
                was_empty = not self._mail
                self._mail.append(Mail(action, on_refused, description))
                if was_empty:
                    self._arrived.notify()
        if not accepted:
            if on_refused is not None:
                on_refused(self._refusal(description))
            return False
        if was_empty and self._wake is not None:
            self._wake()
        return True

    def take_nowait(self) -> Mail | None:
        """The oldest mail, or None."""
        try:
            return self._mail.popleft()
        except IndexError:
            return None

    def hold(self, mail: Mail) -> None:
        """Keeps mail that was taken, and is not for now. Called by the mailbox's thread, as is
        ``release``."""
        self._held.append(mail)

    def release(self) -> None:
        """What was held is the oldest mail again."""
        with self._lock:
            self._mail.extendleft(reversed(self._held))
            self._held = []

    def wait_for_mail(self, timeout: float | None = None) -> bool:
        """Blocks until there is mail or the mailbox is no longer open, at most ``timeout`` seconds;
        True if there is mail."""
        with self._lock:
            if not self._mail and self._machine.state is MailboxState.OPEN:
                self._arrived.wait(timeout)
            return bool(self._mail)

    def quiesce(self) -> None:
        """Refuses new mail from now on; mail that is already there may still be processed."""
        with self._lock:
            self._machine.try_move(MailboxState.QUIESCED)
            self._arrived.notify_all()

    def close(self) -> None:
        """Refuses new mail from now on, and answers the mail that is left with an error."""
        with self._lock:
            self._machine.try_move(MailboxState.CLOSED)
            left, self._mail, self._held = [*self._held, *self._mail], deque(), []
            self._arrived.notify_all()
        for mail in left:
            if mail.on_refused is not None:
                mail.on_refused(self._refusal(mail.description))

    def _refusal(self, description: str) -> Exception:
        return EndpointNotRunningError(
            f"{self.owner} takes no more messages (mailbox {self.state.name.lower()}): "
            f"{description or 'mail'}"
        )

    def __repr__(self) -> str:
        return f"<Mailbox of {self.owner}: {self.state.name}, {len(self._mail)} mails>"


class MailboxProcessor:
    """Runs mail, then the default action, one bounded step at a time, always in one thread.

    When the default action cannot go on, it sets ``suspended``. Whoever makes it possible again
    clears that in the same thread; other threads send mail that does."""

    MAIL_PER_STEP = 64

    def __init__(self, mailbox: Mailbox, default_action: Callable[[], None] | None = None) -> None:
        self.mailbox = mailbox
        self.default_action = default_action
        self.suspended = default_action is None
        self._thread: int | None = None
        self.mails_processed = 0
        self._admitted: str | None = None

    def assert_main_thread(self) -> None:
        if self._thread is not None and self._thread != threading.get_ident():
            raise EngineError(
                f"{self.mailbox.owner}: called from thread {threading.get_ident()}, its main "
                f"thread is {self._thread}"
            )

    def adopt_thread(self) -> None:
        """Makes the calling thread the main thread."""
        self._thread = threading.get_ident()

    @property
    def has_work(self) -> bool:
        return not self.suspended or len(self.mailbox) > 0

    def process_mail(self) -> None:
        """Runs the mail there is, at most ``MAIL_PER_STEP``."""
        for _ in range(self.MAIL_PER_STEP):
            mail = self.mailbox.take_nowait()
            if mail is None:
                return
            if self._admitted is not None and mail.description != self._admitted:
                self.mailbox.hold(mail)
                continue
            self.mails_processed += 1
            mail.action()

    def admit_only(self, description: str | None) -> None:
        """From now on runs only mail with that description; all other waits. None: runs all mail
        again, also what has waited."""
        self._admitted = description
        if description is None:
            self.mailbox.release()

    def run_step(self) -> bool:
        """Runs mail, then the default action once; True while there is more to do."""
        mailbox = self.mailbox
        if mailbox._mail:
            self.process_mail()
        if not self.suspended and self.default_action is not None:
            self.default_action()
        return not self.suspended or len(mailbox._mail) > 0
