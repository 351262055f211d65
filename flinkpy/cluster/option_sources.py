"""The sources of options outside the program: a file, environment variables, ``-D`` on the command
line. Later ones win; code wins over all.

File: ``flinkpy-conf.yaml`` in the folder named by ``FLINKPY_CONF_DIR`` (or the path given to
``--conf``), flat keys or nested ones. Where it is absent, Flink's own ``config.yaml`` is read.
Environment: ``FLINKPY_`` and the key in capitals, anything else than letters and digits as ``_``:
``FLINKPY_PARALLELISM_DEFAULT=4``. For an unknown key, the error names the source and the nearest
known key. In Flink's own file, and for a program written for PyFlink (``--pyflink``), unknown keys
are kept without effect, and listed in one warning."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flinkpy.common.foreign_options import check_options
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import PYFLINK_IMPORTS
from flinkpy.core.options.schema import SCHEMA, read
from flinkpy.core.program.launch_context import launch_configuration, launched_by_command_line

FILE_NAME = "flinkpy-conf.yaml"
FLINKS_FILE_NAMES = ("config.yaml", "flink-conf.yaml")  # that of Flink 2, and that of Flink 1.x
ENVIRONMENT_PREFIX = "FLINKPY_"
CONF_DIR = "FLINKPY_CONF_DIR"
# of the types that YAML gives to plain words
_NOT_TEXT = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
# the latter: flinkpy.core.program.launch_context
_NOT_OPTIONS = frozenset({CONF_DIR, "FLINKPY_CONF"})


def load_settings(
    *,
    conf: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """All options set outside the program, merged: file, then environment, then ``overrides``
    (``-D``).

    Raises ConfigurationError for a missing or unreadable file, an unknown key or a value that does
    not parse."""
    environ = os.environ if environ is None else environ
    path = find_file(conf, environ)
    sources = {
        str(path): {} if path is None else read_file(path),
        "the environment": read_environment(environ),
        "-D": overrides or {},
    }
    settings = {
        _canonical(key): value for values in sources.values() for key, value in values.items()
    }
    for_pyflink = read(settings, PYFLINK_IMPORTS)
    for where, values in sources.items():
        _check(
            values,
            where,
            foreign=for_pyflink
            or (path is not None and where == str(path) and path.name in FLINKS_FILE_NAMES),
        )
    return settings


def program_settings() -> dict[str, Any]:
    """The options of a new environment: those gathered by ``flinkpy run``, or file and environment
    variables under plain ``python``."""
    return launch_configuration() if launched_by_command_line() else load_settings()


def find_file(conf: str | Path | None, environ: Mapping[str, str]) -> Path | None:
    """Returns the configuration file to read: ``conf``, or the one in ``FLINKPY_CONF_DIR``; None
    when there is none."""
    if conf is not None:
        path = Path(conf)
        path = _file_in(path) or path / FILE_NAME if os.path.isdir(path) else path
        # not pathlib's, which raises if a folder in the path may not be searched
        if not os.path.isfile(path):
            raise ConfigurationError(f"there is no configuration file {path}")
        return path
    folder = environ.get(CONF_DIR)
    if not folder:
        return None
    found = _file_in(Path(folder))
    if found is None:
        raise ConfigurationError(f"{CONF_DIR} is {folder!r}, which holds no {FILE_NAME}")
    return found


def _file_in(folder: Path) -> Path | None:
    return next(
        (
            folder / name
            for name in (FILE_NAME, *FLINKS_FILE_NAMES)
            if os.path.isfile(folder / name)
        ),
        None,
    )


def read_file(path: Path) -> dict[str, Any]:
    """Returns the options in a YAML file, nested keys joined by dots. The value of a known option
    is its text in the file, as after ``-D``; any other value is what YAML makes of it."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        content, written = yaml.safe_load(text), yaml.load(text, _as_written())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: {_one_line(error)}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: write options as `key: value` lines")
    texts = dict(_flattened(written))
    return {
        _canonical(key): texts.get(key) if key in SCHEMA else value
        for key, value in _flattened(content)
    }


def read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The options set by ``FLINKPY_…`` variables."""
    known = {environment_name(option.key): option.key for option in SCHEMA}
    found: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name in _NOT_OPTIONS:
            continue
        key = known.get(name)
        if key is None:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise ConfigurationError(
                f"environment variable {name}: no such option"
                + (f"; did you mean {near[0]}?" if near else "")
            )
        found[key] = value
    return found


def environment_name(key: str) -> str:
    """Returns the name of the variable that sets an option.

    >>> environment_name("parallelism.default")
    'FLINKPY_PARALLELISM_DEFAULT'
    """
    return ENVIRONMENT_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", key).upper()


def parse_definitions(definitions: Iterable[str]) -> dict[str, str]:
    """Returns ``key=value`` texts of ``-D`` as a mapping.

    >>> parse_definitions(["parallelism.default=2"])
    {'parallelism.default': '2'}
    """
    parsed = {}
    for definition in definitions:
        key, equals, value = definition.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"-D {definition}: write -D key=value")
        parsed[key.strip()] = value.strip()
    return parsed


def _canonical(key: str) -> str:
    """Returns an option's own key for an alias, so that a later source wins over an earlier one
    whichever name they used."""
    return SCHEMA.get(key).key if key in SCHEMA else key


def _check(values: Mapping[str, Any], where: str, *, foreign: bool) -> None:
    try:
        check_options(values, foreign=foreign)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _as_written() -> Any:
    """Returns a YAML loader that leaves values as text: for some options ``off`` is a value and not
    a boolean, and ``1:30`` is not 90."""
    import yaml

    class Texts(yaml.SafeLoader):
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in known if tag in _NOT_TEXT]
            for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return Texts


def _flattened(tree: Mapping[Any, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flattened(value, key + ".")
        elif isinstance(value, list) and key in SCHEMA:
            # the form in which options with several values are written
            yield key, ",".join(map(str, value))
        else:
            yield key, value


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
