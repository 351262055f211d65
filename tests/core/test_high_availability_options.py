from __future__ import annotations

import pytest

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.high_availability import HighAvailability
from flinkpy.core.options.schema import validate

FILES = {"high-availability.type": "filesystem"}


@pytest.mark.parametrize("value", ["zookeeper", "kubernetes", "org.example.Factory"])
@pytest.mark.parametrize("key", ["high-availability.type", "high-availability"])
def test_what_only_flink_has_is_refused_with_what_there_is_instead(key: str, value: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"'{value}' is not there: .* write filesystem, and name a folder"
    ):
        validate({key: value})


def test_it_is_off_unless_it_is_turned_on() -> None:
    assert HighAvailability.of({}, "default") is None
    assert HighAvailability.of({"high-availability.type": "none"}, "default") is None


def test_it_needs_a_folder_and_takes_that_of_the_checkpoints_if_no_other_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"set high-availability\.storageDir"):
        HighAvailability.of(FILES, "default")
    assert HighAvailability.of(
        {**FILES, "execution.checkpointing.dir": "/c"}, "default"
    ) == HighAvailability("/c", "default")
    named = {**FILES, "high-availability.storageDir": "/ha", "high-availability.cluster-id": "one"}
    assert HighAvailability.of(
        {**named, "execution.checkpointing.dir": "/c"}, "default"
    ) == HighAvailability("/ha", "one")
