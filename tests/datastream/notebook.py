"""A notebook without a browser: its cells run one after the other in a kernel of their own, and
what each shows is kept."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

TIMEOUT_S = 60  # for a cell
INTERRUPT = "interrupt me"  # a cell that shows this is interrupted, as the stop button does


@dataclass
class Ran:
    """What a cell showed. ``error`` is the text in place of a traceback; ``live`` what was drawn
    over itself, in the order it was drawn."""

    printed: str = ""
    result: dict[str, str] = field(default_factory=dict)
    error: str = ""
    live: list[dict[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.result.get("text/plain", "")


class _Client(NotebookClient):
    """Interrupts cells that ask for it, and keeps what is drawn over."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.live: dict[int, list[dict[str, str]]] = {}
        self._interrupted: dict[int, asyncio.Future[None]] = {}

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        kind, content = msg["msg_type"], msg["content"]
        if kind in ("display_data", "update_display_data"):
            self.live.setdefault(cell_index, []).append(content["data"])
        if (
            kind in ("stream", "display_data", "update_display_data")
            and cell_index not in self._interrupted
            and INTERRUPT in str(content)
        ):
            assert self.km is not None
            interrupt: Any = self.km.interrupt_kernel()
            self._interrupted[cell_index] = asyncio.ensure_future(interrupt)
        return super().process_message(msg, cell, cell_index)


def run_notebook(
    cells: Mapping[str, str], folder: Path, environment: Mapping[str, str]
) -> dict[str, Ran]:
    """Runs them all, failing ones too; what each showed, by its name."""
    made: Any = nbformat.v4
    notebook = made.new_notebook(cells=[made.new_code_cell(source) for source in cells.values()])
    client = execute(notebook, folder, environment, kind=_Client, allow_errors=True)
    return {
        name: _ran(cell, client.live.get(index, []))
        for index, (name, cell) in enumerate(zip(cells, notebook.cells))
    }


def execute(
    notebook: Any,
    folder: Path,
    environment: Mapping[str, str],
    *,
    kind: Any = NotebookClient,
    allow_errors: bool = False,
) -> Any:
    """Runs the notebook in ``folder``; the client that ran it. Kernels are talked to through files:
    of those that start at a time and choose ports, two may choose the same."""
    with tempfile.TemporaryDirectory(prefix="nb-") as sockets:
        channels = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}})
        client = kind(
            notebook,
            config=channels,
            timeout=TIMEOUT_S,
            kernel_name="python3",
            allow_errors=allow_errors,
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(env=dict(environment))
    return client


def _ran(cell: Any, live: list[dict[str, str]]) -> Ran:
    ran = Ran(live=live)
    for output in cell.outputs:
        if output.output_type == "stream":
            ran.printed += output.text
        elif output.output_type == "execute_result":
            ran.result = dict(output.data)
        elif output.output_type == "error":
            ran.error = "\n".join(output.traceback)
    return ran
