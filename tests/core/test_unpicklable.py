"""What cannot travel to the workers is told by the function, the thing it uses, and what to do."""

from __future__ import annotations

import doctest
import functools
import re
import sqlite3
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.core.program import code, unpicklable

PROGRAM = """
import functools, threading
lock = threading.Lock()
numbers = (n for n in range(3))
settings = {"db": [1, lock]}

def guarded(n):
    with lock:
        return n

def indirect(n):
    return guarded(n)

def inside(n):
    def helper():
        return lock
    return helper()

def captures():
    own = threading.Lock()
    return lambda n: own

def by_default(n, used=lock):
    return n

def from_settings(n):
    return settings["db"]

def next_number(n):
    return next(numbers)

def recursive(n):
    return lock if n else recursive(n - 1)

def attribute_of_that_name(n):
    return n.settings or lock

class Holds:
    shared = 1
    def __init__(self):
        self.inner = {"lock": lock}
    def __call__(self, n):
        return n
    def method(self, n):
        return n

class Uses:
    def __call__(self, n):
        return lock

class Shares:
    cache = lock
    def __call__(self, n):
        return n

class Slotted:
    __slots__ = ("held",)
    def __init__(self):
        self.held = lock
    def __call__(self, n):
        return n

class Refuses:
    def __reduce__(self):
        raise TypeError("I stay where I am.")
refuses = Refuses()
def uses_what_refuses(n):
    return refuses
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[types.ModuleType]:
    """A module that travels by value, as what is typed does."""
    file = tmp_path_factory.mktemp("program") / "job.py"
    file.write_text(PROGRAM)
    module = types.ModuleType("typed_by_the_user")
    exec(compile(PROGRAM, str(file), "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)
    del sys.modules[module.__name__]


LOCK = (
    r"\(_thread\.lock\), which cannot be pickled\. Make it in open\(\) of a function class, "
    r"so that every worker has its own"
)
CASES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("a global", lambda p: p.guarded, rf"its function guarded \(.*job\.py:7\) uses lock {LOCK}"),
    (
        "a global of what it calls",
        lambda p: p.indirect,
        rf"function indirect \(.*:11\) uses guarded \(.*:7\), which uses lock {LOCK}",
    ),
    (
        "a global of a function inside",
        lambda p: p.inside,
        rf"function inside \(.*:14\) uses lock {LOCK}",
    ),
    (
        "what it closes over",
        lambda p: p.captures(),
        rf"function <lambda> \(.*:21\) uses own {LOCK}",
    ),
    (
        "a default",
        lambda p: p.by_default,
        rf"function by_default \(.*:23\) uses the default of used {LOCK}",
    ),
    (
        "deep in data",
        lambda p: p.from_settings,
        rf"function from_settings \(.*:26\) uses settings\['db'\]\[1\] {LOCK}",
    ),
    ("itself", lambda p: p.recursive, rf"function recursive \(.*:32\) uses lock {LOCK}"),
    (
        "an attribute of a global's name is no use of it",
        lambda p: p.attribute_of_that_name,
        rf"attribute_of_that_name \(.*:35\) uses lock {LOCK}",
    ),
    (
        "an object's field",
        lambda p: p.Holds(),
        rf"its Holds object has self\.inner\['lock'\] {LOCK}",
    ),
    (
        "a bound method's object",
        lambda p: p.Holds().method,
        rf"function Holds\.method \(.*:44\) has self\.inner\['lock'\] {LOCK}",
    ),
    (
        "an object's method",
        lambda p: p.Uses(),
        rf"function Uses\.__call__ \(.*:48\) uses lock {LOCK}",
    ),
    ("a class attribute", lambda p: p.Shares(), rf"its Shares object has self\.cache {LOCK}"),
    ("a slot", lambda p: p.Slotted(), rf"its Slotted object has self\.held {LOCK}"),
    (
        "in a partial",
        lambda p: functools.partial(p.guarded, 1),
        rf"function guarded \(.*:7\) uses lock {LOCK}",
    ),
    (
        "under a cache",
        lambda p: functools.lru_cache(p.guarded),
        rf"its function guarded \(.*:7\) uses lock {LOCK}",
    ),
    (
        "given to a partial",
        lambda p: functools.partial(p.captures, p.lock),
        rf"its partial object has self\.args\[0\] {LOCK}",
    ),
    (
        "a generator",
        lambda p: p.next_number,
        (
            r"uses numbers \(generator\), which cannot be pickled\. Make it inside the function, "
            r"or give a list"
        ),
    ),
    (
        "in its own words",
        lambda p: p.uses_what_refuses,
        (
            r"uses refuses \(typed_by_the_user\.Refuses\), which cannot be pickled \(I stay "
            r"where I am\)\. Make it"
        ),
    ),
    (
        "among others",
        lambda p: [len, {"f": p.guarded}],
        rf"its function guarded \(.*:7\) uses lock {LOCK}",
    ),
    (
        "no function at all",
        lambda p: [1, p.lock],
        r"it holds a _thread\.lock, which cannot be pickled\. Values go from worker to",
    ),
]


@pytest.mark.parametrize(
    ("make", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_cannot_travel_is_named(
    program: Any, make: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ProgramError) as refused:
        code.dumps(make(program), "the operator 'Map'")
    assert str(refused.value).startswith("the operator 'Map' cannot be sent to the workers: ")
    assert re.search(message, str(refused.value)), str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_travels_is_not_looked_into(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpicklable, "explain", lambda *_: pytest.fail("it could be pickled"))
    assert code.loads(code.dumps(lambda n: n + 1))(2) == 3


def test_objects_that_fail_when_they_are_asked_leave_the_general_message() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("ask me nothing")

    with pytest.raises(
        ProgramError,
        match=(
            r"the program cannot be sent to the workers: ask me nothing\. Open connections, "
            r"locks, files"
        ),
    ):
        code.dumps(Hostile())


def test_a_connection_of_a_library_is_told_by_its_type(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "db")
    try:
        with pytest.raises(
            ProgramError, match=r"uses connection \(sqlite3\.Connection\), which cannot be pickled"
        ):
            code.dumps(lambda n: connection.execute("select 1"))
    finally:
        connection.close()


def test_an_own_lock_inside_the_engines_objects_is_still_the_users() -> None:
    from flinkpy.operators.rows.stateless import MapOperator

    lock = threading.Lock()
    with pytest.raises(
        ProgramError,
        match=r"its function <lambda> \(.*test_unpicklable\.py:\d+\) uses lock \(_thread\.lock\)",
    ):
        code.dumps(MapOperator(lambda n: lock))


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(unpicklable).failed == 0
