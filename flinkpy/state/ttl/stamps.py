"""What is stored of a value that expires: the value, and when it was last touched (in nanoseconds, as the clock gives them; snapshots have
milliseconds).

A plain tuple, as one is made with every write: an object of a class takes five times as long. What reading prolongs is stored anew.
"""

from __future__ import annotations

from typing import Any, TypeAlias

NS_PER_MS = 1_000_000
Stamped: TypeAlias = tuple[Any, int]
