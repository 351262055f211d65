"""The example notebooks run as they stand, headless, and give what is stored in them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"
DASHBOARD = EXAMPLES / "live_dashboard.ipynb"

pytestmark = [pytest.mark.wide, pytest.mark.xdist_group("example notebook")]


def cells(notebook: Path = NOTEBOOK) -> list[dict[str, Any]]:
    return [
        cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"
    ]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run(NOTEBOOK, tmp_path_factory.mktemp("ipython"))


def run(path: Path, ipython: Path) -> list[dict[str, Any]]:
    """Its code cells, executed; raises where one fails that is not meant to."""
    reason = "notebooks are run with nbclient and ipykernel: pip install 'flinkpy[notebook]'"
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason=reason)
    import nbformat

    from tests.datastream.notebook import execute

    read: Any = nbformat.read
    notebook = read(path, as_version=4)
    nbformat.validate(notebook)
    execute(
        notebook,
        EXAMPLES,
        {**os.environ, "FLINKPY_EXECUTION_TARGET": "embedded", "IPYTHONDIR": str(ipython)},
    )
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: dict[str, Any]) -> str:
    """Its text, however it was shown. (Progress that was drawn and wiped leaves an empty
    output.)"""
    texts = []
    for output in cell["outputs"]:
        kind = output["output_type"]
        text = (
            output["text"]
            if kind == "stream"
            else output["traceback"]
            if kind == "error"
            else output["data"].get("text/plain", "")
        )
        texts.append(
            text if isinstance(text, str) else ("\n" if kind == "error" else "").join(text)
        )
    return "".join(texts).replace(f"{EXAMPLES}{os.sep}", "")


@pytest.mark.parametrize("index", range(len(cells())))
def test_each_cell_gives_what_is_stored(ran: list[dict[str, Any]], index: int) -> None:
    stored = cells()[index]
    if "varies" in stored["metadata"].get("tags", ()):
        assert stored["outputs"] == []
    else:
        assert shown(ran[index]) == shown(stored)


def test_the_counts_are_those_of_the_table(ran: list[dict[str, Any]]) -> None:
    table = pq.read_table(EXAMPLES / "data" / "flights.parquet", columns=["origin", "dep_delay"])
    words = [None if delay is None else delay > 15 for delay in table["dep_delay"].to_pylist()]
    expected = Counter(
        zip(
            table["origin"].to_pylist(),
            ({None: "cancelled", True: "late", False: "in time"}[word] for word in words),
        )
    )
    counted = next(shown(cell) for cell in ran if "counts.take" in cell["source"])
    assert re.sub(r"\s+", " ", counted) == str(
        sorted((*key, count) for key, count in expected.items())
    )


def test_the_job_in_the_background_shows_itself_and_is_cancelled(ran: list[dict[str, Any]]) -> None:
    started, cancelled = (cell["outputs"][-1]["data"] for cell in ran if "client" in cell["source"])
    assert re.match(r"all day · (CREATED|RUNNING) · \d+ s · ", started["text/plain"])
    assert "<svg" in started["text/html"]
    assert re.match(r"all day · (CANCELLING|CANCELED) · \d+ s · ", cancelled["text/plain"])


def test_the_notebook_is_short_and_knows_no_machine() -> None:
    assert sum(len("".join(cell["source"]).splitlines()) for cell in cells()) <= 50
    assert str(EXAMPLES.parent) not in NOTEBOOK.read_text()
    assert "/ipykernel_" not in NOTEBOOK.read_text()


def test_the_dashboard_follows_its_query_to_what_batch_gives(tmp_path: Path) -> None:
    *_, drawn, compared = run(DASHBOARD, tmp_path)
    stored = cells(DASHBOARD)
    assert drawn["outputs"][0]["data"]["text/html"] == "".join(
        stored[-2]["outputs"][0]["data"]["text/html"]
    )
    assert shown(compared) == shown(stored[-1]) == "(True, 4)"
