"""PyFlink's public names (``pyflink_names.tsv``: name, versions, tier), and what stands for each of
them here."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

OURS = ("core", "connector-core", "legacy-1.x")  # the tiers flinkpy answers for


@dataclass(frozen=True)
class Name:
    """One name, as PyFlink spells it: ``pyflink.datastream.data_stream.DataStream.map``."""

    path: str
    versions: str
    tier: str

    @cached_property
    def found(self) -> tuple[Any, ...]:
        """Module, then what each further part of the name leads to; empty where there is nothing of
        that name."""
        parts = self.path.replace("pyflink", "flinkpy", 1).split(".")
        for length in range(len(parts), 0, -1):
            try:
                chain: list[Any] = [importlib.import_module(".".join(parts[:length]))]
            except ImportError:
                continue
            for part in parts[length:]:
                try:
                    chain.append(getattr(chain[-1], part))
                except (AttributeError, ImportError):
                    return ()
            return tuple(chain)
        return ()

    @property
    def owner(self) -> Any:
        """The class or module it is found in."""
        return self.found[-2] if len(self.found) > 1 else None

    @property
    def attribute(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def raw(self) -> Any:
        """The value as its class has it: a staticmethod, a property, a function."""
        if not inspect.isclass(self.owner):
            return self.found[-1]
        return inspect.getattr_static(self.owner, self.attribute, self.found[-1])

    @property
    def is_callable(self) -> bool:
        """A function, method or property: what has to be called to show that it works. Classes and
        constants are shown by their members."""
        return isinstance(self.raw, property) or (
            callable(self.found[-1]) and not inspect.isclass(self.found[-1])
        )


def load() -> list[Name]:
    lines = (Path(__file__).parent / "pyflink_names.tsv").read_text().splitlines()[1:]
    return [Name(*line.split("\t")) for line in lines]
