"""Chromium, looking at the page. It is skipped where there is no Chromium, or no playwright to
steer it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.waiting import PATIENCE_S

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1300, "height": 850}


@dataclass
class Visit:
    """A tab of the browser. ``faults`` are the errors that the browser's console tells of."""

    page: Any
    base: str
    faults: list[str] = field(default_factory=list)

    def go(self, where: str) -> None:
        self.page.evaluate("where => { location.hash = where }", where)

    def see(self, text: str) -> None:
        """Waits until the text is in sight."""
        self.page.get_by_text(text).first.wait_for(state="visible")

    def see_role(self, role: str, name: str) -> Any:
        found = self.page.get_by_role(role, name=name).first
        found.wait_for(state="visible")
        return found


Open = Callable[..., Any]


@contextmanager
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'"
    )
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"],
        )
        yield browser
        browser.close()


@contextmanager
def visit(
    browser: Any,
    base: str,
    *,
    where: str = "",
    token: str | None = "right",
    size: dict[str, int] = DESK,
    colours: str = "light",
    **more: Any,
) -> Iterator[Visit]:
    """At first it looks at ``where``. ``more`` are options of the browser's context."""
    context = browser.new_context(
        viewport=size, color_scheme=colours, reduced_motion="reduce", **more
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    visit = Visit(page, base)
    page.on(
        "console",
        lambda message: (
            visit.faults.append(f"{message.text} ({message.location})")
            if message.type in ("error", "warning")
            else None
        ),
    )
    page.on("pageerror", lambda error: visit.faults.append(f"{error}"))
    page.goto(f"{base}/" if token is None else f"{base}/#token={token}{where}")
    yield visit
    context.close()
