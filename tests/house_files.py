"""The project's own modules: where each lies, and what it says. Read once, for all tests of the
house."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYFLINK_NAMES = (ROOT / "tests" / "compatibility" / "pyflink_names.tsv").read_text()
PYFLINK_TABLE_MODULES = frozenset(
    (ROOT / "tests" / "compatibility" / "pyflink_table_modules.txt").read_text().split()
)
TOPS = {
    "flinkpy": "flinkpy",
    "actors": "flinkpy.actors",
    "scheduler": "flinkpy.scheduler",
    "network": "flinkpy.network",
}


def files() -> dict[str, Path]:
    """The path of each module, by its name."""
    found = {}
    for top, package in TOPS.items():
        for path in sorted((ROOT / top).rglob("*.py")):
            inner = path.relative_to(ROOT / top)
            if (ROOT / top / inner.parts[0]).is_symlink():
                continue  # a top-level folder, seen through its link
            names = [package, *inner.with_suffix("").parts]
            found[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return found


FILES = files()
TEXTS = {module: path.read_text() for module, path in FILES.items()}


@cache
def trees() -> dict[str, ast.Module]:
    """The tree of each module. Only a process that runs tests of the house parses them."""
    found = {module: ast.parse(text) for module, text in TEXTS.items()}
    gc.freeze()  # millions of nodes that stay: the collector need not look at them again and again
    return found


def is_path_of_pyflink(module: str) -> bool:
    """Whether PyFlink has a module at this path, so that it can lie nowhere else:
    docs/decisions/pyflink-facades.md."""
    there = module.replace("flinkpy.", "pyflink.", 1)
    return there in PYFLINK_TABLE_MODULES or f"\n{there}." in PYFLINK_NAMES


def statements_below(node: ast.AST) -> Iterator[ast.stmt]:
    """Each statement in it, however deep. It leaves out expressions, which hold no statements and
    are most of a tree."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(node, block, ())
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, ast.stmt):
                yield each
            yield from statements_below(each)


def statements_in(node: ast.AST) -> int:
    """How many statements there are, without docstrings; it counts as one itself, if it is one."""
    return isinstance(node, ast.stmt) + sum(
        not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in statements_below(node)
    )
