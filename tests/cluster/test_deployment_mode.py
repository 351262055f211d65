from __future__ import annotations

import pytest

from flinkpy.cluster.deployment_mode import RAY_JOB, Mode, choose_mode

IN_A_RAY_JOB = {RAY_JOB: "{}"}


def test_plain_ray_is_the_session_everybody_shares() -> None:
    assert choose_mode({"execution.target": "ray"}, {}) is Mode.SESSION
    assert choose_mode({}, {}) is Mode.SESSION


def test_a_ray_job_has_a_cluster_of_its_own() -> None:
    assert choose_mode({}, IN_A_RAY_JOB) is Mode.APPLICATION
    assert choose_mode({"execution.target": "ray"}, {}, has_environment=True) is Mode.APPLICATION


def test_a_named_session_is_used_from_a_ray_job_too() -> None:
    assert (
        choose_mode({"cluster.id": "nightly"}, IN_A_RAY_JOB, has_environment=True) is Mode.SESSION
    )


@pytest.mark.parametrize(
    ("target", "mode"), [("ray-session", Mode.SESSION), ("ray-application", Mode.APPLICATION)]
)
@pytest.mark.parametrize("environ", [{}, IN_A_RAY_JOB])
def test_what_is_said_explicitly_wins(target: str, mode: Mode, environ: dict[str, str]) -> None:
    assert choose_mode({"execution.target": target, "cluster.id": "nightly"}, environ) is mode
