"""``python -m tests.metrics.page``: writes the table of metrics into docs/metrics.md."""

from __future__ import annotations

from pathlib import Path

from flinkpy.metrics.definitions import Scope, of_scope

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
BEGIN, END = "<!-- python -m tests.metrics.page writes what follows -->\n", "<!-- end -->\n"
TITLES = {
    Scope.JOB_MANAGER: ("JobManager", "`host`"),
    Scope.JOB: ("Jobs", "`host`, `job_id`, `job_name`"),
    Scope.TASK_MANAGER: ("TaskManagers", "`host`, `tm_id`"),
    Scope.TASK: (
        "Tasks",
        (
            "those of TaskManagers and jobs, `task_id`, `task_name`, `task_attempt_id`, "
            "`task_attempt_num`, `subtask_index`"
        ),
    ),
    Scope.OPERATOR: (
        "Operators",
        "those of tasks, `operator_id`, `operator_name`, and the keys of the program's groups",
    ),
}


def tables() -> str:
    return "\n".join(_table(scope) for scope in Scope)


def _table(scope: Scope) -> str:
    title, labels = TITLES[scope]
    rows = [f"| `{each.name}` | {each.kind.value} | {each.meaning} |" for each in of_scope(scope)]
    return "\n".join(
        [
            f"### {title}",
            "",
            f"Beginning for Prometheus: `flink_{scope.value}_`. Labels: {labels}.",
            "",
            "| Name | Kind | Meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def written(page: str) -> str:
    """The page with the tables of now."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
