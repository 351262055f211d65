"""``python -m benchmarks.against REVISION [NAME ...] [--rounds N]``: runs the benchmarks of this
tree and of another commit in turn.

Each round runs each benchmark once in both trees. A row shows the medians, and the median of the
ratios round by round: above 1 this tree is faster, unless the unit is a time or an amount of
memory."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.__main__ import ALL

HERE = Path(__file__).resolve().parents[1]
# by row: our figure, its ratio to the bare loop's, the unit
Figures = dict[str, tuple[float, float, str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument(
        "names", nargs="*", choices=[[], *ALL], help="which benchmarks (default: all)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often each runs in each tree (default: 3)"
    )
    arguments = parser.parse_args()
    with tree_of(arguments.revision) as there:
        for name in arguments.names or ALL:
            rounds = [(figures(name, HERE), figures(name, there)) for _ in range(arguments.rounds)]
            for row in rounds[0][0]:
                print(
                    described(
                        row,
                        [
                            (ours[row], theirs[row])
                            for ours, theirs in rounds
                            if row in ours and row in theirs
                        ],
                    ),
                    flush=True,
                )


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """Extracts the files of that commit into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="flinkpy-against-") as folder:
        archive = subprocess.run(
            ["git", "archive", revision], cwd=HERE, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def figures(name: str, tree: Path) -> Figures:
    """Runs the benchmark of that tree in a process of its own and returns its figures."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        subprocess.run(
            [sys.executable, "-m", "benchmarks", name, "--save", file.name],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        rows = [json.loads(line) for line in Path(file.name).read_text().splitlines()]
    return {row["name"]: (row["ours"], row["ratio"], row["unit"]) for row in rows}


def described(
    row: str, pairs: list[tuple[tuple[float, float, str], tuple[float, float, str]]]
) -> str:
    if not pairs:
        return f"{row:<44} is not there in the other tree"
    ours, theirs = (statistics.median(side[0] for side in sides) for sides in zip(*pairs))
    quotient = statistics.median(mine[0] / other[0] for mine, other in pairs)
    of_ratios = statistics.median(mine[1] / other[1] for mine, other in pairs)
    return (
        f"{row:<44} {ours:>14,.2f} and {theirs:>14,.2f} {pairs[0][0][2]:<10} quotient "
        f"{quotient:.2f}   of the ratios to bare {of_ratios:.2f}"
    )


if __name__ == "__main__":
    main()
