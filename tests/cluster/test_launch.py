from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from flinkpy.cluster.launch import choose_target
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import Target


def ray(initialized: bool) -> dict[str, ModuleType]:
    return {"ray": cast(ModuleType, SimpleNamespace(is_initialized=lambda: initialized))}


def test_without_ray_a_job_runs_in_this_process() -> None:
    assert choose_target({}, {}, {}) is Target.EMBEDDED
    assert choose_target({}, {}, ray(initialized=False)) is Target.EMBEDDED


def test_an_initialised_ray_is_used() -> None:
    assert choose_target({}, {}, ray(initialized=True)) is Target.RAY


@pytest.mark.parametrize("variable", ["RAY_ADDRESS", "RAY_JOB_CONFIG_JSON_ENV_VAR"])
def test_a_program_inside_a_ray_job_runs_on_ray(variable: str) -> None:
    assert choose_target({}, {variable: "x"}, {}) is Target.RAY


def test_an_address_of_ray_that_is_set_and_empty_is_none() -> None:
    assert choose_target({}, {"RAY_ADDRESS": ""}, {}) is Target.EMBEDDED


def test_what_is_said_explicitly_wins() -> None:
    assert (
        choose_target({"execution.target": "embedded"}, {"RAY_ADDRESS": "x"}, ray(initialized=True))
        is Target.EMBEDDED
    )
    assert choose_target({"execution.target": "ray"}, {}, {}) is Target.RAY


def test_a_target_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="none of embedded, ray"):
        choose_target({"execution.target": "yarn"}, {}, {})
