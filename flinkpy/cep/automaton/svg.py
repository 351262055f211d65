"""SVG for notebooks and pages: without scripts and ids, for a light and for a dark ground."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

WIDE = 6.3  # of a letter, at most

_STYLE = """\
svg { color-scheme: light dark; font: 11px system-ui, "DejaVu Sans", sans-serif; }
.ground { fill: light-dark(#fff, #1d2127); }
text { fill: light-dark(#1b1f24, #e6e9ee); text-anchor: middle; }
.name { font-weight: 600; }
.quiet, .ignore text { fill: light-dark(#4d5560, #a2acb9); }
.box { fill: light-dark(#f6f7f9, #272c34); stroke: light-dark(#9aa3af, #5b6572); }
.match .box, .dot { fill: light-dark(#e3f3ea, #1e3b2d); stroke: light-dark(#0f6238, #5fd39a); }
.edge { fill: none; stroke-width: 1.5; }
.head { stroke: none; }
.take .edge { stroke: light-dark(#0f6238, #5fd39a); }
.take .head { fill: light-dark(#0f6238, #5fd39a); }
.ignore .edge { stroke: light-dark(#9aa3af, #5b6572); stroke-dasharray: 5 3; }
.ignore .head { fill: light-dark(#9aa3af, #5b6572); }
.proceed .edge { stroke: light-dark(#0b62c4, #6cb2ff); stroke-dasharray: 2 3; }
.proceed .head { fill: light-dark(#0b62c4, #6cb2ff); }"""


def document(width: float, height: float, parts: Iterable[str], shown: str) -> str:
    """A whole picture; ``shown`` is what is read out in its place."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(shown)}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" width="{width:.0f}" height="{height:.0f}"/>',
            *parts,
            "</svg>",
        ]
    )


def text(x: float, y: float, said: str, kind: str = "", letters: int | None = None) -> str:
    """A text around ``x``; of a longer one than so many letters the end is left out."""
    whole = ""
    if letters is not None and len(said) > letters:
        whole = f"<title>{escape(said)}</title>"
        said = said[: letters - 1] + "…"
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.0f}" y="{y:.0f}">{escape(said)}{whole}</text>'


def group(kind: str, parts: Iterable[str]) -> str:
    """Parts of one kind."""
    return f'<g class="{kind}">{"".join(parts)}</g>'


def line(points: str) -> str:
    """A line by the commands of a path."""
    return f'<path class="edge" d="{points}"/>'


def head(x: float, y: float, turn: int) -> str:
    """The head of an arrow that ends here; without a turn it points to the right."""
    placed = f"translate({x:.0f} {y:.0f}) rotate({turn})"
    return f'<path class="head" transform="{placed}" d="M0 0L-7 4V-4Z"/>'
