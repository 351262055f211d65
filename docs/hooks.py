"""What the site has besides ``docs/``: the README as its first page, the examples, CONTRIBUTING,
the changes, and a table of all options.

Pages link to each other by their place in the repository, so that links work where the repository
is read, too. Here each such link is led to the page of the site which shows that file. A link to a
file that the site does not show stays as it is, and the strict build refuses it."""

from __future__ import annotations

import posixpath
import re
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
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


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
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
