"""The example of a static table."""

from __future__ import annotations

import pytest

from tests.examples.test_examples import run


@pytest.mark.wide
def test_orders_meet_their_products_and_unknown_ones_stay() -> None:
    printed = run("static_table.py").splitlines()
    assert "|       9 |      4 | null |  null | null    |" in printed
    assert "| food    | 17.5 |" in printed
    assert "| kitchen | 12.0 |" in printed
