"""Hashes of texts, in UTF-8, and of bytes, as hexadecimal digits."""

from __future__ import annotations

import hashlib

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import strictly

_SHA2 = (224, 256, 384, 512)


def digest(algorithm: str, value: str | bytes) -> str:
    """The digits of the hash."""
    content = value.encode("utf-8") if isinstance(value, str) else value
    return hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()


def sha2(value: str | bytes, bits: int) -> str:
    """The hash of this many bits. Raises ValueError if there is none."""
    if bits not in _SHA2:
        raise ValueError(f"SHA2 has no hash of {bits} bits, but {', '.join(map(str, _SHA2))}")
    return digest(f"sha{bits}", value)


def _hash(algorithm: str) -> MeaningOf:
    return strictly(lambda value: digest(algorithm, value))


HASH_MEANINGS: dict[str, MeaningOf] = {
    "MD5": _hash("md5"),
    "SHA1": _hash("sha1"),
    "SHA224": _hash("sha224"),
    "SHA256": _hash("sha256"),
    "SHA384": _hash("sha384"),
    "SHA512": _hash("sha512"),
    "SHA2": strictly(sha2),
}
