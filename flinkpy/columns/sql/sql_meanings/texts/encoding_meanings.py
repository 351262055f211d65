"""Texts as numbers, bytes and other texts: characters' codes, BASE64, encodings, addresses."""

from __future__ import annotations

import base64
import codecs
import re
import urllib.parse

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import strictly

_ENCODINGS = {
    "US-ASCII": "ascii",
    "ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16-be",
}
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
_URL = re.compile(
    r"(?P<PROTOCOL>https?|ftp|file|jar|mailto):(//(?P<AUTHORITY>[^/?#]*))?"
    r"(?P<FILE>(?P<PATH>[^?#]*)(\?(?P<QUERY>[^#]*))?)(#(?P<REF>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_AUTHORITY = re.compile(r"((?P<USERINFO>[^@]*)@)?(?P<HOST>\[[^\]]*\]|[^:@\[\]]*)(:[0-9]*)?")
_BYTE = re.compile("[0-9]+")


def ascii_code(text: str) -> int:
    """The first byte of the text in UTF-8, from -128 to 127; 0 for an empty one."""
    first = text[:1].encode("utf-8", "replace")[:1]
    return int.from_bytes(first, "big", signed=True)


def character(code: int) -> str:
    """The character of the number's last byte; none for a negative number."""
    return "" if code < 0 else chr(code & 0xFF)


def to_base64(text: str) -> str:
    """The bytes of the text in UTF-8, as BASE64."""
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def from_base64(text: str) -> str:
    """The text whose bytes these are. Raises ValueError for what is no BASE64."""
    padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
    return base64.b64decode(text + padding, validate=True).decode("utf-8", "replace")


def _encoding(name: str) -> str:
    found = _ENCODINGS.get(name.upper())
    if found is None:
        raise ValueError(f"no encoding {name!r}; there are {', '.join(_ENCODINGS)}")
    return found


def encode(text: str, encoding: str) -> bytes:
    """The text's bytes; a question mark for what the encoding has not."""
    mark = codecs.BOM_UTF16_BE if encoding.upper() == "UTF-16" and text else b""
    return mark + text.encode(_encoding(encoding), "replace")


def decode(value: bytes, encoding: str) -> str:
    """The text of bytes; a replacement character for what is none."""
    name = _encoding(encoding)
    if encoding.upper() == "UTF-16" and value[:2] in (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE):
        name = "utf-16"
    return value.decode(name, "replace")


def url_encode(text: str) -> str:
    """As in the query of a URL."""
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


def url_decode(text: str) -> str | None:
    """The text of what ``url_encode`` gives; null for a percent sign without two digits."""
    if _BAD_ESCAPE.search(text):
        return None
    return urllib.parse.unquote_plus(text, errors="replace")


def parse_url(text: str, part: str, key: str | None = None) -> str | None:
    """A part of a URL, or the value of a key in its QUERY; null for what is no URL."""
    url = _URL.fullmatch(text.strip())
    authority = _AUTHORITY.fullmatch((url and url["AUTHORITY"]) or "")
    if url is None or authority is None:
        return None
    if key is not None:
        part = part if part == "QUERY" else ""
    parts = {**url.groupdict(), **authority.groupdict(), "PROTOCOL": url["PROTOCOL"].lower()}
    found = parts.get(part)
    if key is None or found is None:
        return found
    pair = re.search(f"(?:&|^){re.escape(key)}=([^&]*)", found)
    return pair and pair.group(1)


def address_number(text: str) -> int | None:
    """The number of an IPv4 address; the last part of a shorter one is its last byte."""
    parts = text.split(".")
    if len(parts) > 4 or not all(_BYTE.fullmatch(part) and int(part) <= 255 for part in parts):
        return None
    numbers = [int(part) for part in parts]
    first, last = (numbers[:-1], numbers[-1])
    return sum(number << shift for number, shift in zip(first, (24, 16, 8))) + last


def number_address(number: int) -> str | None:
    """The IPv4 address of a number."""
    if not 0 <= number < 1 << 32:
        return None
    return ".".join(str(byte) for byte in number.to_bytes(4, "big"))


ENCODING_MEANINGS: dict[str, MeaningOf] = {
    "ASCII": strictly(ascii_code),
    "CHR": strictly(character),
    "TO_BASE64": strictly(to_base64),
    "FROM_BASE64": strictly(from_base64),
    "ENCODE": strictly(encode),
    "DECODE": strictly(decode),
    "URL_ENCODE": strictly(url_encode),
    "URL_DECODE": strictly(url_decode),
    "PARSE_URL": strictly(parse_url),
    "INET_ATON": strictly(address_number),
    "INET_NTOA": strictly(number_address),
}
