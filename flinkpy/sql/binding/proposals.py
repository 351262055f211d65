"""What somebody may have meant: the nearest of the names that are there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; case is the first difference forgiven."""
    names = list(dict.fromkeys(known))
    for each in names:
        if each.lower() == name.lower() and each != name:
            return each
    folded = {each.lower(): each for each in reversed(names)}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def proposal(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or nothing."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"; did you mean '{near}'?"
    if 0 < len(names) <= 12:
        return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"
    return ""
