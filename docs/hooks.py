"""What the site has besides ``docs/``: the README as its first page, the examples, CONTRIBUTING,
the changes, and a table of all options.

Pages link to each other by their place in the repository, so that links work where the repository
is read, too. Here each such link is led to the page of the site which shows that file. A link to a
file that the site does not show stays as it is, and the strict build refuses it."""

from __future__ import annotations

import json
import posixpath
import re
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
SIGNATURE = re.compile(r"<pre>.*?</pre>", re.DOTALL)
INSIDE = ("decisions/", "ARCHITECTURE", "benchmarks", "changes", "contributing", "mutants")
AT_FIRST, AT_LAST = 8.0, 0.001  # how much the search weighs a guide, and what is about the inside
PROMPTS = re.compile(r"^```python\n(?=(?:#[^\n]*\n)*>>> )", re.MULTILINE)


def shown_files() -> dict[str, str]:
    """Where each file outside ``docs/`` stands in the site, by its path in the repository."""
    pages = {
        "README.md": "index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changes.md",
        "examples/README.md": "examples/index.md",
        "examples/data/README.md": "examples/data.md",
        "examples/notebook.ipynb": "examples/notebook.ipynb",
        "examples/live_dashboard.ipynb": "examples/live_dashboard.ipynb",
    }
    programs = {
        str(path.relative_to(ROOT)): str(path.relative_to(ROOT).with_suffix(".md"))
        for path in (ROOT / "examples").rglob("*.py")
    }
    return {**pages, **programs}


SHOWN = shown_files()


def program_page(path: str) -> str:
    return (
        f"---\ntitle: {Path(path).name}\n---\n\n# "
        f"{path}\n\n```python\n{(ROOT / path).read_text()}```\n"
    )


def default_text(default: Any) -> str:
    if default is None:
        return ""
    if isinstance(default, timedelta):
        return f"`{default.total_seconds():g} s`"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def options_page() -> str:
    """Every option, with its type and default, from the schema that the engine reads."""
    from flinkpy.core import options  # noqa: F401  (declares them)
    from flinkpy.core.options.schema import SCHEMA

    docs = {
        each.key: each.doc
        + (f" No effect here: {each.without_effect}." if each.without_effect else "")
        for each in SCHEMA
    }
    told = {key: doc.replace("|", "or").replace("<", "&lt;") for key, doc in docs.items()}
    rows = [
        f"| `{each.key}` | {default_text(each.default)} | {told[each.key]} |" for each in SCHEMA
    ]
    heading = (
        "# Options\n\n`-D KEY=VALUE`, a configuration file, environment variables and "
        "`Configuration` set these; later ones win. "
        "A key that is not here is refused.\n\n| key | default | what it does "
        "|\n|---|---|---|\n"
    )
    return heading + "\n".join(sorted(rows)) + "\n"


def on_config(config: Any) -> Any:
    """Every page of ``docs/decisions`` stands in the navigation, behind its index."""
    (inside,) = (section["Inside"] for section in config.nav if "Inside" in section)
    (decisions,) = (section["Decisions"] for section in inside if "Decisions" in section)
    decisions += sorted(
        f"decisions/{path.name}"
        for path in (ROOT / "docs" / "decisions").glob("*.md")
        if path.name != "index.md"
    )
    return config


def on_files(files: Files, config: Any) -> Files:
    for path, uri in SHOWN.items():
        if (ROOT / path).exists():
            content = program_page(path) if path.endswith(".py") else (ROOT / path).read_text()
            files.append(File.generated(config, uri, content=content))
    files.append(File.generated(config, "reference/options.md", content=options_page()))
    return files


def weight(uri: str) -> float:
    """What the search multiplies a page's score with: a reader looks for guides first, and last for
    what is about flinkpy's inside.

    >>> weight("state.md"), weight("reference/state.md"), weight("decisions/heap-state.md")
    (8.0, 1.0, 0.001)
    """
    if uri.startswith(INSIDE):
        return AT_LAST
    return 1.0 if uri.startswith(("reference/", "examples/", "pyflink")) else AT_FIRST


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    page.meta["search"] = {"boost": weight(page.file.src_uri)}
    place = next(
        (path for path, uri in SHOWN.items() if uri == page.file.src_uri),
        f"docs/{page.file.src_uri}",
    )

    def led(match: re.Match[str]) -> str:
        target = match[1]
        if "://" in target or target.startswith("mailto:"):
            return target
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        uri = SHOWN.get(wanted) or (wanted[len("docs/") :] if wanted.startswith("docs/") else None)
        return (
            posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".") if uri else target
        )

    return PROMPTS.sub("```pycon\n", LINK.sub(led, markdown))


# when the search has written its index
@event_priority(-100)  # type: ignore[untyped-decorator]  # mkdocs is an extra, its types are skipped
def on_post_build(config: Any) -> None:
    """The browser reads the index into memory before its first answer. It is half as large when
    methods stand in it with the first paragraph of their docstrings, and programs without text."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text())
    for entry in index["docs"]:
        page, _, anchor = entry["location"].partition("#")
        if page.startswith("reference/") and anchor:
            entry["text"] = SIGNATURE.sub("", entry["text"]).partition("</p>")[0]
        elif page.startswith("examples/") and SHOWN.get(f"{page.rstrip('/')}.py"):
            entry["text"] = ""
    path.write_text(json.dumps(index, separators=(",", ":")))
