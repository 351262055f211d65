"""The stored form of a value that expires: the value, and when it was last touched, in nanoseconds.
Snapshots have milliseconds.

It is a plain tuple because one is made with every write, and an object of a class takes five times
as long. If reading prolongs life, the value is stored again."""

from __future__ import annotations

from typing import Any, TypeAlias

NS_PER_MS = 1_000_000
Stamped: TypeAlias = tuple[Any, int]
