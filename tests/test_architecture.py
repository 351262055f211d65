"""What the house holds itself to, as tests: budgets, one reader of the clock, the documentation
made from the tables."""

from __future__ import annotations

import ast
import re

from flinkpy.core.lifecycles import CHECKPOINT, EXECUTION, JOB, TASK
from flinkpy.core.program.moved_modules import MOVED
from tests.house_files import (
    FILES,
    ROOT,
    TEXTS,
    is_path_of_pyflink,
    statements_below,
    statements_in,
    trees,
)

# Statements and not lines: nobody saves one by writing wider.
MODULE_STATEMENTS, FUNCTION_STATEMENTS = 350, 60


def test_no_module_and_no_function_outgrows_its_room() -> None:
    too_long = []
    for module, path in FILES.items():
        if statements_in(trees()[module]) > MODULE_STATEMENTS:
            too_long.append(
                f"{path.relative_to(ROOT)}: {statements_in(trees()[module])} statements"
            )
        too_long += [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {statements_in(node)} statements"
            for node in statements_below(trees()[module])
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and statements_in(node) > FUNCTION_STATEMENTS
        ]
    assert too_long == []


def test_every_module_opens_with_its_idea() -> None:
    assert [module for module, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_the_state_diagrams_in_the_documentation_are_those_of_the_tables() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    for table in (JOB, EXECUTION, TASK, CHECKPOINT):
        assert table.mermaid() in page, (
            f"docs/ARCHITECTURE.md: paste Lifecycle.mermaid() of {table.name}"
        )


def test_the_floors_in_the_documentation_are_those_of_the_contract() -> None:
    contract = re.search(
        r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
    )
    assert contract is not None
    layers = [floor for floor in re.findall(r'"(.*?)"', contract[1]) if floor != "__main__"]
    _, _, section = (ROOT / "docs" / "ARCHITECTURE.md").read_text().partition("## Floors")
    picture = [
        line.strip() for line in section.partition("##")[0].splitlines() if line.startswith("    ")
    ]
    assert [re.split(r" {2,}", line)[0] for line in picture] == layers


def test_the_floors_inside_packages_in_the_documentation_are_those_of_their_contracts() -> None:
    contracts = dict(
        re.findall(
            r'^containers = \["flinkpy\.([\w.]+)"\]\n(?:exhaustive = true\n)?layers = \[\n(.*?)^\]',
            (ROOT / "pyproject.toml").read_text(),
            re.DOTALL | re.MULTILINE,
        )
    )
    pictures = re.findall(
        r"^Inside `(\w+)`:\n\n((?:    .*\n)+)",
        (ROOT / "docs" / "ARCHITECTURE.md").read_text(),
        re.MULTILINE,
    )
    assert {
        room: [re.split(r" {2,}", line.strip())[0] for line in picture.splitlines()]
        for room, picture in pictures
    } == {room: re.findall(r'"(.*?)"', contracts[room]) for room, _ in pictures}
    assert len(pictures) >= 4


# What programs import. Below these packages everything is public: all their modules have PyFlink's
# paths, or are listed for programs.
PUBLIC_MODULES = {
    "flinkpy",
    "flinkpy.cep",
    "flinkpy.common",
    "flinkpy.connectors.sinks",
    "flinkpy.connectors.sources",
    "flinkpy.datastream",
    "flinkpy.datastream.connectors",
    "flinkpy.datastream.formats",
    "flinkpy.datastream.formats.protobuf",
    "flinkpy.datastream.formats.raw",
    "flinkpy.datastream.formats.schema_registry",
    "flinkpy.metrics",
    "flinkpy.spark",
    "flinkpy.state_processor",
    "flinkpy.table",
    "flinkpy.table.expressions",
    "flinkpy.testing",
    "flinkpy.testing.connectors",
}


def is_public(module: str) -> bool:
    """Whether programs may import it: listed above, or a module at one of PyFlink's paths."""
    return module in PUBLIC_MODULES or is_path_of_pyflink(module)


def test_examples_and_pages_import_only_public_modules() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    examples = [path for kind in ("*.py", "*.ipynb") for path in (ROOT / "examples").rglob(kind)]
    assert pages
    assert examples
    inner = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in [*pages, *examples]
        for module in re.findall(r"\b(?:from|import) (flinkpy[\w.]*)", path.read_text())
        if not is_public(module.rstrip("."))
    ]
    assert inner == []


# dotted, and not modules: loggers, the name of generated code, a key of metadata, click's group of
# this name
OTHER_NAMES = {
    "flinkpy.rpc",
    "flinkpy.jobmaster",
    "flinkpy.events",
    "flinkpy.resourcemanager",
    "flinkpy.inspector",
    "flinkpy.generated",
    "flinkpy.schema",
    "flinkpy.group",
    "flinkpy.command",
}


def resolves(name: str) -> bool:
    """Whether a module has this name, or its text has the part after the module's name."""
    parts = name.split(".")
    length = next(
        length for length in range(len(parts), 0, -1) if ".".join(parts[:length]) in FILES
    )
    return (
        length == len(parts)
        or parts[length].startswith("__")
        or re.search(rf"\b{parts[length]}\b", TEXTS[".".join(parts[:length])]) is not None
    )


def test_a_dotted_name_in_the_code_or_on_a_page_leads_somewhere() -> None:
    pages = {
        path.relative_to(ROOT): path.read_text()
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    }
    texts = {FILES[module].relative_to(ROOT): text for module, text in TEXTS.items()} | pages
    astray = [
        f"{where}: {name}"
        for where, text in texts.items()
        for name in re.findall(r"\bflinkpy(?:\.\w+)+", text)
        if name not in OTHER_NAMES | set(MOVED) and not resolves(name)
    ]
    assert astray == []
    assert not resolves("flinkpy.windowing.slices.slice_operator")


def test_every_decision_stands_in_the_index_of_decisions() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "index.md").read_text()
    assert [
        path.name
        for path in sorted(folder.glob("*.md"))
        if path.name != "index.md" and f"]({path.name})" not in index
    ] == []


def test_every_decision_says_what_it_costs_and_what_would_change_it() -> None:
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        if path.name != "index.md":
            text = path.read_text().lower()
            missing = [
                part
                for part in ("context", "choice", "cost", "what would change")
                if part not in text
            ]
            assert missing == [], f"{path.name} lacks {missing}"
