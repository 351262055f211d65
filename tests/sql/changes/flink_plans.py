"""Plans that Flink 2.3 gave (``plans_of_flink.tsv``), and ours, in a form in which they can be
compared: the nodes that decide how rows change, each with the kinds of rows that it gives. Where
columns are computed and renamed, where rows are sent, and the names of columns differ."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flinkpy.sql.plans.planner import Plan
from tests.sql.changes.changing_tables import changing_session

_FILE = Path(__file__).parent / "plans_of_flink.tsv"
_NODE = re.compile(r"^([: ]*)(?:[:+]- )?(\w+)(?:\((.*)\))?$")
_LEFT_OUT = ("Calc", "Exchange", "WatermarkAssigner", "TableSourceScan", "Expand", "Sink")
_SHOWN = ("joinType", "leftInputSpec", "rightInputSpec", "strategy", "rankType", "key")
_OPTION = re.compile(r"^\{(.*?)=(.*?)\} ?")


@dataclass(frozen=True)
class FlinkPlan:
    """A statement, the options that were set, and Flink's plan, or its error. ``differs``: why ours
    is another one."""

    statement: str
    differs: str
    plan: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """What an error says of who cannot take whose changes."""
        words = self.plan.removeprefix("StreamPhysical")
        return words.split("(")[0] if "produced by node" in words else words.split(" in cond")[0]

    @property
    def is_error(self) -> bool:
        return "changelogMode=[" not in self.plan


def flink_plans() -> list[FlinkPlan]:
    """Those of the file, in its order."""
    with _FILE.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [_made(**line) for line in lines]


def _made(statement: str, differs: str, plan: str) -> FlinkPlan:
    options = {}
    while (found := _OPTION.match(statement)) is not None:
        options[found[1]] = found[2]
        statement = statement[found.end() :]
    return FlinkPlan(statement, differs, plan.replace("\\n", "\n"), options)


_PLANS: dict[str, Plan] = {}


def plan_of(asked: FlinkPlan) -> Plan:
    """Our plan, which is made once for all tests."""
    key = f"{asked.options} {asked.statement}"
    if key not in _PLANS:
        _PLANS[key] = changing_session(asked.options).plan(asked.statement)
    return _PLANS[key]


def outline(plan: str) -> list[str]:
    """The nodes that change rows, from the root down."""
    return list(_lines(plan))


def _lines(plan: str) -> Iterator[str]:
    for line in plan.splitlines():
        found = _NODE.match(line.rstrip())
        assert found is not None, line
        _, name, rest = found.groups()
        parts = dict(re.findall(r"(\w+)=\[((?:[^\[\]]|\[[^\]]*\])*)\]", rest or ""))
        shown = [f"{each}={parts[each]}" for each in _SHOWN if each in parts]
        if name in _LEFT_OUT:
            if name == "Sink" and parts.get("upsertMaterialize"):
                yield "Sink upsertMaterialize"
            continue
        yield " ".join([name, *shown, f"[{parts['changelogMode']}]"])
