"""What is said when Ray does not let a program in. That it does, the tests of clusters show."""

from __future__ import annotations

import pytest

from flinkpy.cluster.ray import ray_connection
from flinkpy.core.errors import ResourceUnavailableError

ELSEWHERE = "203.0.113.7:6379"  # an address nobody has
TWO_VERSIONS = """Version mismatch: The cluster was started with:
    Ray: 2.60.0
    Python: 3.11.2
This process on node 203.0.113.9 was started with:
    Ray: 2.60.0
    Python: 3.11.7
"""


@pytest.mark.parametrize(
    ("ray_says", "shown"),
    [
        (
            TWO_VERSIONS,
            (
                "was started with: Ray: 2.60.0 Python: 3.11.2 This process on node 203.0.113.9 was "
                "started with: Ray: 2.60.0 Python: 3.11.7"
            ),
        ),
        ("\nIt is full\n\nStack:\n  at one\n  at two\n", ": It is full"),
        ("", ": RuntimeError"),
    ],
)
def test_why_a_cluster_cannot_be_joined_is_one_line_that_says_it_all(
    monkeypatch: pytest.MonkeyPatch, ray_says: str, shown: str
) -> None:
    def refuses(**arguments: object) -> None:
        raise RuntimeError(ray_says)

    monkeypatch.setattr("ray.init", refuses)
    with pytest.raises(ResourceUnavailableError) as raised:
        ray_connection._init(ELSEWHERE)
    assert str(raised.value).startswith(f"cannot join the Ray cluster at {ELSEWHERE}: ")
    assert str(raised.value).endswith(shown)
