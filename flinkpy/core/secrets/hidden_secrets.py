"""Texts without secrets: what is shown, logged or archived passes through here first.

Secrets are told by where they stand: the user and password of a URL, parameters of a URL's query,
assignments as in JAAS, in properties and in the ``repr`` of a dict, and the values of options with
names that say so. A secret that stands in a text without any of these cannot be told from other
words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flinkpy.core.secrets.option_text import text_of

HIDDEN = "******"
# As Flink's: the value of a key with one of these in it is not shown
_SENSITIVE = (
    "password",
    "secret",
    "account.key",
    "account_key",
    "account-key",
    "apikey",
    "api-key",
    "api_key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "basic.auth",
    "jaas.config",
    "http-headers",
    "credential",
    "access-key",
    "access_key",
    "access.key",
    "accesskey",
)
_SIGNED = ("signature", "sig")  # of URLs that are valid for a time

# s3://key:secret@lake. A key of S3 may have slashes, and who does not escape them must be told
# without them, too.
_S3_USER = re.compile(r"(\bs3[anp]?://)[^\s/:@?#'\"]*:[^\s@?#'\"]*@", re.IGNORECASE)
_USER = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://)([^\s/:@?#'\"]*)(:[^\s/@?#'\"]*)?@")
# a container of Azure's, a user of Hadoop: no secret without a password
_KEEPS_USER = ("abfs", "abfss", "hdfs", "viewfs")
_PARAMETER = re.compile(r"([?&;]([\w.%-]+)=)([^\s&#;'\"<>]+)")
# password="…", 'sasl.password': '…', ssl.key.password=…
_WORDS = r"password|passwd|secret|jaas\.config|api[._-]?key|access[._-]?key|account[._-]?key"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_ASSIGNED = re.compile(
    rf"((?<![\w.-])[\w.-]*(?:{_WORDS})[\w.-]*(?:\s*=\s*|[\"']\s*:\s*))({_QUOTED})|"
    rf"((?<![\w.-])[\w.-]*(?:{_WORDS})[\w.-]*=)(?![\s=])([^\s,;&'\"}})]+)",
    re.IGNORECASE,
)
_SIGNS = re.compile(rf"://|{_WORDS}", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """The text with ``******`` in the place of each secret.

    >>> without_secrets("cannot read s3://key:secret@lake/sales?region=eu&session_token=abc")
    'cannot read s3://******@lake/sales?region=eu&session_token=******'
    >>> without_secrets('PlainLoginModule required username="flink" password="pa55";')
    'PlainLoginModule required username="flink" password="******";'
    """
    if _SIGNS.search(text) is None:
        return text
    if "://" in text:
        text = _S3_USER.sub(rf"\1{HIDDEN}@", text)
        text = _USER.sub(_without_user, text)
        text = _PARAMETER.sub(_without_value, text)
    return _ASSIGNED.sub(_without_assigned, text)


def _without_user(found: re.Match[str]) -> str:
    scheme, user, password = found.groups()
    if scheme.lower().removesuffix("://") not in _KEEPS_USER:
        return f"{scheme}{HIDDEN}@"
    return f"{scheme}{user}@" if password is None else f"{scheme}{user}:{HIDDEN}@"


def _without_value(found: re.Match[str]) -> str:
    beginning, key, _ = found.groups()
    is_secret = is_sensitive(key) or any(key.lower().endswith(word) for word in _SIGNED)
    return beginning + HIDDEN if is_secret else found[0]


def _without_assigned(found: re.Match[str]) -> str:
    quoted, value, plain, _ = found.groups()
    return plain + HIDDEN if quoted is None else f"{quoted}{value[0]}{HIDDEN}{value[-1]}"


def is_sensitive(key: str) -> bool:
    """Whether the value of an option with this key is a secret.

    >>> is_sensitive("rest.token"), is_sensitive("rest.port")
    (True, False)
    """
    return any(word in key.lower() for word in _SENSITIVE)


def shown_value(key: str, value: object) -> str:
    """The value of an option as text; of a secret one ``******``."""
    return HIDDEN if is_sensitive(key) else without_secrets(text_of(value))


def shown_options(configuration: Mapping[str, Any]) -> dict[str, str]:
    """All options as strangers may see them, in the order of their keys."""
    return {key: shown_value(key, value) for key, value in sorted(configuration.items())}


def shown_json(content: object) -> Any:
    """A JSON value with all its texts without secrets.

    >>> shown_json({"external_path": ["s3://key:secret@lake/chk-1", 1]})
    {'external_path': ['s3://******@lake/chk-1', 1]}
    """
    if isinstance(content, str):
        return without_secrets(content)
    if isinstance(content, Mapping):
        return {key: shown_json(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [shown_json(each) for each in content]
    return content
