"""How long something took, as people read it."""

from __future__ import annotations


def duration(ms: int) -> str:
    """Formats a duration in milliseconds for people.

    >>> duration(3_723_000), duration(61_000), duration(1_500)
    ('1 h 2 min', '1 min 1 s', '1.5 s')
    """
    seconds = max(0, ms) / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
