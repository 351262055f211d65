"""A schema registry: a server that keeps schemas under numbers, so that a message has its schema's
number and not the schema. This speaks Confluent's REST API, with Python's own HTTP client."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib import error as url_errors
from urllib import parse, request

from flinkpy.core.errors import FlinkpyError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.port import RegisteredSchema

_TYPE = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND = 404


class SchemaRegistryError(FlinkpyError):
    """The schema registry cannot be reached, or refuses what it was asked for."""


class UnknownSchemaError(SchemaRegistryError):
    """The schema registry has no schema of this number or subject."""


class SchemaRegistry:
    """A registry at one URL or several, which are asked in turn. ``basic_auth`` is ``(user,
    password)``; ``headers`` are sent with each request; ``timeout`` is in seconds. It asks for each
    schema once in each process.

    >>> SchemaRegistry("http://registry:8081", basic_auth=("user", "secret"))
    SchemaRegistry('http://registry:8081')
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        basic_auth: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._urls = [each.rstrip("/") for each in ([url] if isinstance(url, str) else url)]
        if any(parse.urlsplit(each).username for each in self._urls):
            raise refuse(
                "SchemaRegistry: the URL has a user or a password in it, which errors would "
                "show; give basic_auth=(user, password)"
            )
        if not self._urls or not all(
            each.startswith(("http://", "https://")) for each in self._urls
        ):
            raise refuse(
                "SchemaRegistry takes the URL of a registry, such as 'http://registry:8081', "
                f"this is {url!r:.80}"
            )
        self._auth = basic_auth
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._forget()

    def _forget(self) -> None:
        self._schemas: dict[int, RegisteredSchema] = {}
        self._ids: dict[tuple[str, RegisteredSchema], int] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """The schema of this number. Raises UnknownSchemaError if there is none."""
        found = self._schemas.get(number)
        if found is None:
            found = self._schemas[number] = self._schema_in(
                self._ask("GET", f"/schemas/ids/{number}", "schema", what=f"schema {number}")
            )
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest schema of a subject. Raises UnknownSchemaError if there is none."""
        return self._version(subject, "latest")

    def _version(self, subject: str, version: object) -> RegisteredSchema:
        path = f"/subjects/{parse.quote(subject, safe='')}/versions/{version}"
        return self._schema_in(
            self._ask("GET", path, "schema", what=f"subject {subject!r}, version {version}")
        )

    def _schema_in(self, answer: Mapping[str, Any]) -> RegisteredSchema:
        """The schema, and those that it refers to, which the registry has under subjects of their
        own."""
        references = tuple(
            (each["name"], self._version(each["subject"], each["version"]))
            for each in answer.get("references") or ()
        )
        return RegisteredSchema(answer.get("schemaType", "AVRO"), answer["schema"], references)

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """The number of the schema, which is registered for the subject if it is not yet."""
        number = self._ids.get((subject, schema))
        if number is None:
            body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.kind}
            if schema.references:
                body["references"] = [
                    self._reference(name, each) for name, each in schema.references
                ]
            answer = self._ask(
                "POST",
                f"/subjects/{parse.quote(subject, safe='')}/versions",
                "id",
                body,
                what=f"subject {subject!r}",
            )
            number = self._ids[subject, schema] = int(answer["id"])
        return number

    def _reference(self, name: str, schema: RegisteredSchema) -> dict[str, Any]:
        self.register(name, schema)
        body = {"schema": schema.text, "schemaType": schema.kind}
        answer = self._ask(
            "POST",
            f"/subjects/{parse.quote(name, safe='')}",
            "version",
            body,
            what=f"subject {name!r}",
        )
        return {"name": name, "subject": name, "version": answer["version"]}

    def _ask(self, method: str, path: str, wanted: str, body: object = None, *, what: str) -> Any:
        """The answer, an object that has what is ``wanted``, of the first URL that gives one."""
        last: Exception | None = None
        for url in self._urls:
            try:
                with request.urlopen(
                    self._request(method, url + path, body), timeout=self._timeout
                ) as answer:
                    found = json.loads(answer.read())
                if isinstance(found, dict) and wanted in found:
                    return found
                last = ValueError(
                    f"its answer has no {wanted!r}, so it is no schema registry: {found!r:.80}"
                )
            except url_errors.HTTPError as error:
                said = _said(error)
                if error.code == _NOT_FOUND:
                    raise UnknownSchemaError(
                        f"the schema registry at {url} has no {what} ({said})"
                    ) from error
                if error.code < 500:
                    raise SchemaRegistryError(
                        f"the schema registry at {url} refuses {what}: {error.code} {said}"
                    ) from error
                last = error
            except (OSError, ValueError, HTTPException) as error:
                last = error
        raise SchemaRegistryError(
            f"the schema registry at {', '.join(self._urls)} cannot be asked for {what}: "
            f"{_why(last)}"
        ) from last

    def _request(self, method: str, url: str, body: object) -> request.Request:
        headers = {"Accept": _TYPE, **self._headers}
        if self._auth is not None:
            headers["Authorization"] = (
                f"Basic {base64.b64encode(':'.join(self._auth).encode()).decode()}"
            )
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), _TYPE
        return request.Request(url, data, headers, method=method)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in vars(self).items() if name not in ("_schemas", "_ids")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __repr__(self) -> str:
        return f"SchemaRegistry({', '.join(map(repr, self._urls))})"


def _why(error: Exception | None) -> str:
    """What went wrong; a server that does not speak HTTP is shown as far as Python's client
    understands it."""
    return (
        f"{type(error).__name__}: {error}".strip()
        if isinstance(error, HTTPException)
        else str(error)
    )


def _said(error: url_errors.HTTPError) -> str:
    with error:
        try:
            return str(json.loads(error.read())["message"])
        except (ValueError, LookupError, OSError, TypeError):
            return str(error.reason)
