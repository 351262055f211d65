"""What the tests of sources and of sinks share: the author's outside system around each test,
patience, and how they run without pytest."""

from __future__ import annotations

import functools
import tempfile
import threading
import unittest
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import FlinkpyError

# the names of the outside system's own threads begin so, if it lives in this process
OUTSIDE = "outside"
T = TypeVar("T", bound="ConnectorTests")


class ConnectorTests:
    """The base class of :class:`SourceTests` and :class:`SinkTests`. pytest collects a subclass
    whose name begins with ``Test``; no plugin is needed. Without pytest, ``TestMine.run()`` runs
    the tests.

    The outside system is what the connector reads or writes: files, a server, an object in this
    process. If it has threads here, their names begin with ``outside``, as no thread of a connector
    may stay when its reader or writer was closed."""

    # how long anything may take before it counts as hanging: a bound, not a measure
    patience_s: float = 30.0
    prompt_s: float = 10.0  # how soon a job that is cancelled must have ended
    floor: float | None = None  # how many records must pass in a second
    report: Callable[[str], object] = staticmethod(print)  # where figures go
    folder: Path  # an empty folder for each ``open``, which is deleted behind the test

    def open(self) -> None:
        """Called before each test, and between its parts: makes an outside system ready that is
        empty. ``folder`` is empty too."""

    def close(self) -> None:
        """Called behind each test, and before ``open`` is called again; also if that failed."""

    def fail(self) -> None:
        """Makes the outside system fail from now on: what asks it gets an error."""
        raise unittest.SkipTest(
            "define fail() and mend() to see what happens when the outside system fails"
        )

    def mend(self) -> None:
        """Makes it work again."""

    def pause(self) -> None:
        """Makes the outside system slow without end: what asks it gets no answer."""
        raise unittest.SkipTest(
            "define pause() and go_on() to see what happens when the outside system is slow"
        )

    def go_on(self) -> None:
        """Makes it answer again, also what was asked meanwhile."""

    def open_anew(self) -> None:
        """Another outside system, which is empty, in another folder."""
        self.close()
        self.folder = Path(tempfile.mkdtemp(dir=self._root))
        self.open()

    def is_fast_enough(self, rate: float) -> None:
        """Compares it with the floor that the author sets."""
        if self.floor is not None:
            check(
                rate >= self.floor,
                (
                    f"{rate:,.0f} records in a second, less than the {self.floor:,.0f} that "
                    f"{type(self).__name__} promises"
                ),
            )

    # -- how they run ------------------------------------------------------------------------------

    def setup_method(self, method: object = None) -> None:
        """Called by pytest before each test."""
        self._closing: list[Callable[[], object]] = []
        temporary = tempfile.TemporaryDirectory(prefix="connector-", ignore_cleanup_errors=True)
        self._closing.append(temporary.cleanup)
        self._root = self.folder = Path(temporary.name)
        self._closing.append(self.close)
        self.open()

    def teardown_method(self, method: object = None) -> None:
        """Called by pytest behind each test."""
        errors = self.close_back_to(0)
        if errors:
            raise errors[0]

    def close_back_to(self, count: int) -> list[Exception]:
        """Closes what is open but for the first so many things, the latest first. The errors of
        those that cannot be closed."""
        errors: list[Exception] = []
        while len(self._closing) > count:
            try:
                self._closing.pop()()
            except Exception as error:
                errors.append(error)
        return errors

    @classmethod
    def run(
        cls, only: Iterable[str] | None = None, report: Callable[[str], object] = print
    ) -> None:
        """Runs all tests, or those of these names, and reports a line for each. Raises
        AssertionError at the end if any failed."""
        failed = []
        for name in (
            sorted(name for name in dir(cls) if name.startswith("test_")) if only is None else only
        ):
            outcome = cls._outcome(name, report)
            report(f"{name}: {outcome}")
            if outcome.startswith("failed"):
                failed.append(f"{name}: {outcome}")
        if failed:
            raise AssertionError("\n".join(failed))

    @classmethod
    def _outcome(cls, name: str, report: Callable[[str], object] = print) -> str:
        tests = cls()
        tests.report = report
        outcome = "passed"
        try:
            tests.setup_method()
            getattr(tests, name)()
        except unittest.SkipTest as reason:
            outcome = f"skipped: {reason}"
        except Exception as error:
            outcome = f"failed: {type(error).__name__}: {error}"
        try:
            tests.teardown_method()
        except Exception as error:
            if outcome == "passed":
                outcome = f"failed behind the test: {type(error).__name__}: {error}"
        return outcome


def in_time(test: Callable[[T], None]) -> Callable[[T], None]:
    """A test that fails if it hangs: it runs on a thread, and nobody waits for that longer than a
    few times its patience. The thread also closes what the test has opened: some things can be
    closed only by the thread that has opened them."""

    def whole(self: T) -> None:
        before = len(self._closing)
        try:
            test(self)
        except BaseException:
            self.close_back_to(before)
            raise
        errors = self.close_back_to(before)
        if errors:
            raise errors[0]

    @functools.wraps(test)
    def run(self: T) -> None:
        check_returns(
            lambda: whole(self),
            4 * self.patience_s,
            f"{test.__name__} hangs: a call of the connector does not return",
        )

    return run


def pass_a_moment(seconds: float = 0.005) -> None:
    """Lets other threads work for so long."""
    threading.Event().wait(seconds)


def new_threads(before: Iterable[threading.Thread]) -> list[threading.Thread]:
    """Those that were not there before, but for the kit's own, and those of the outside system."""
    known = set(before)
    return [
        thread
        for thread in threading.enumerate()
        if thread not in known and not thread.name.startswith(("test_", OUTSIDE))
    ]


def check_returns(action: Callable[[], object], within_s: float, otherwise: str) -> None:
    """It returns in this time, on a thread of its own, and raises nothing."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # whatever it is, the test's thread raises it
            raised.append(error)

    thread = threading.Thread(target=run, name="test_call", daemon=True)
    thread.start()
    thread.join(within_s)
    if thread.is_alive():
        raise AssertionError(otherwise)
    if raised:
        raise raised[0]


def check_ended(threads: Iterable[threading.Thread], within_s: float, when: str) -> None:
    """They end soon."""
    deadline = SYSTEM_CLOCK.monotonic() + within_s
    left = list(threads)
    while left and SYSTEM_CLOCK.monotonic() < deadline:
        pass_a_moment()
        left = [thread for thread in left if thread.is_alive()]
    check(
        not left,
        (
            f"these threads go on {within_s:g} s after {when}: "
            f"{', '.join(thread.name for thread in left)}"
        ),
    )


def check(holds: bool, sentence: str) -> None:
    """Raises AssertionError with the sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def each_once(found: Iterable[int], wanted: Iterable[int], when: str) -> None:
    """Every number that is wanted was found exactly once, and no other."""
    _compare(Counter(found), Counter(wanted), when)


def each_at_least_once(found: Iterable[int], wanted: Iterable[int], when: str) -> None:
    """Every number that is wanted was found, and no other."""
    _compare(Counter(set(found)), Counter(wanted), when)


def _compare(counts: Counter[int], expected: Counter[int], when: str) -> None:
    lost, more = expected - counts, counts - expected
    doubled = sorted(number for number in more if number in expected)
    unknown = sorted(number for number in more if number not in expected)
    told = [
        f"{what} {_some(numbers)}"
        for what, numbers in (("lost", sorted(lost)), ("doubled", doubled), ("unknown", unknown))
        if numbers
    ]
    check(not told, f"{when}: {'; '.join(told)}")


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{len(numbers)} records ({shown}{', …' if len(numbers) > 10 else ''})"


def is_one_sentence(error: BaseException, says: str) -> None:
    """The connector's own error, below what the engine adds, is one short line that says what it
    should."""
    error = innermost(error)
    text = str(error)
    check(bool(text.strip()), f"the error is empty: {error!r}")
    check(
        "\n" not in text.strip() and len(text) <= 500,
        f"the error is one sentence, this one has {len(text)} characters: {text[:200]}",
    )
    check(says in text, f"the error says {says!r}, this one is: {text}")


def innermost(error: BaseException) -> BaseException:
    """The error that the connector raised."""
    while True:
        below = error.__cause__ or getattr(error, "original", None) or getattr(error, "cause", None)
        if not isinstance(below, BaseException) or (
            isinstance(error, OSError) and not isinstance(below, FlinkpyError)
        ):
            return error
        if isinstance(error, FlinkpyError) and type(error).__name__ not in (
            "JobExecutionError",
            "UserCodeError",
            "RemoteError",
        ):
            return error  # its author says in one sentence what an error below it means
        error = below
