"""How a TableEnvironment begins, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.configuration import Configuration
from flinkpy.sql.catalog.catalog_manager import DEFAULT_CATALOG, DEFAULT_DATABASE


class EnvironmentSettings:
    """The mode, the configuration and the first catalog.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        is_streaming: bool = True,
        catalog: str = DEFAULT_CATALOG,
        database: str = DEFAULT_DATABASE,
    ) -> None:
        self._configuration = Configuration() if configuration is None else configuration
        self._is_streaming = is_streaming
        self._catalog, self._database = catalog, database

    class Builder:
        """Returned by ``new_instance``."""

        def __init__(self) -> None:
            self._parts: dict[str, Any] = {}
            self._configuration: Configuration | None = None

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Options of tables and of jobs."""
            self._configuration = config
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Bounded tables, whose results are final."""
            self._parts["is_streaming"] = False
            return self

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Tables that change, whose results change with them."""
            self._parts["is_streaming"] = True
            return self

        def with_built_in_catalog_name(
            self, built_in_catalog_name: str
        ) -> EnvironmentSettings.Builder:
            """The name of the catalog that is there at the beginning."""
            self._parts["catalog"] = built_in_catalog_name
            return self

        def with_built_in_database_name(
            self, built_in_database_name: str
        ) -> EnvironmentSettings.Builder:
            """The name of its database."""
            self._parts["database"] = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            """The settings."""
            return EnvironmentSettings(self._configuration, **self._parts)

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """A builder."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Settings of STREAMING."""
        return EnvironmentSettings()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Settings of BATCH."""
        return EnvironmentSettings(is_streaming=False)

    @staticmethod
    def of_configuration(configuration: Configuration | Mapping[str, str]) -> EnvironmentSettings:
        """Settings of a configuration, whose ``execution.runtime-mode`` says the mode."""
        values = (
            configuration.to_dict() if isinstance(configuration, Configuration) else configuration
        )
        is_batch = str(values.get("execution.runtime-mode", "")).upper() == "BATCH"
        made = Configuration()
        for key, value in values.items():
            made.set_string(key, str(value))
        return EnvironmentSettings(made, is_streaming=not is_batch)

    def is_streaming_mode(self) -> bool:
        """Whether tables are streams."""
        return self._is_streaming

    def get_configuration(self) -> Configuration:
        """The options that were given."""
        return self._configuration

    def get_built_in_catalog_name(self) -> str:
        """The name of the first catalog."""
        return self._catalog

    def get_built_in_database_name(self) -> str:
        """The name of its database."""
        return self._database
