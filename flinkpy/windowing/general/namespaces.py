"""Pages: for each key a dict from window to what is kept for it, in the keyed state backend.

On the heap a page is what the backend itself holds, and changing it is all there is to do. A backend that gives copies is asked once per key and
batch; ``write_back`` then returns what was looked at.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TypeAlias

from flinkpy.core.keys import canonical_key

Page: TypeAlias = "dict[Any, Any]"

MISSING = object()  # where a page has nothing for a window: None may be what is kept


class LoadedPages(dict[Any, Page]):
    """The pages looked at since the last ``write_back``, each under its key's canonical form, as in a dict. An empty page is none."""

    def __init__(self, values: MutableMapping[Any, Page]) -> None:
        super().__init__()
        self._values = values

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key)
        if found is None:
            found = self._values.get(key) if canonical_key(key) is key else None
            if found is None:
                return default
            self[key] = found
        return found

    def __delitem__(self, key: Any) -> None:
        self[key] = {}

    def __bool__(self) -> bool:
        return True  # what was not looked at may still be there

    def write_back(self) -> None:
        for key, page in self.items():
            if page:
                self._values[key] = page
            else:
                self._values.pop(key, None)
        self.clear()


def pages_over(values: MutableMapping[Any, Page]) -> dict[Any, Page]:
    """Pages over what ``backend.engine_values(name)`` gives."""
    return values if type(values) is dict else LoadedPages(values)


def write_back(pages: dict[Any, Page]) -> None:
    """At the end of a batch, and before a snapshot."""
    if type(pages) is LoadedPages:
        pages.write_back()


def take(pages: dict[Any, Page], key: Any, window: Any) -> Any:
    """Removes and gives what is kept for the window, or MISSING."""
    page = pages.get(key)
    if page is None:
        return MISSING
    found = page.pop(window, MISSING)
    if not page:
        del pages[key]
    return found
