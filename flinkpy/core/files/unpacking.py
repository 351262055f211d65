"""How archives are unpacked: nothing of them lands outside of the folder."""

from __future__ import annotations

from typing import Any


def unpacked_safely() -> dict[str, Any]:
    """The arguments with which ``tarfile`` and ``shutil`` refuse such archives. Of Python 3.10 and
    3.11 only later patch releases have them."""
    import tarfile

    return {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
