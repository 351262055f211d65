from __future__ import annotations

from typing import Any

import pytest

from flinkpy.cep import event_keys
from flinkpy.cep.event_keys import keys_of_events


def test_a_stop_iteration_of_a_key_selector_names_its_event_and_loses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def key(event: int) -> int:
        if event == 3:
            raise StopIteration
        return event % 2

    def with_event(error: BaseException, context: object, event: int) -> Exception:
        return ValueError(f"{type(error).__name__} at {event}")

    monkeypatch.setattr(event_keys, "user_code_error", with_event)
    context: Any = None
    assert keys_of_events(key, [1, 2, 4], context) == [1, 0, 0]
    with pytest.raises(ValueError, match="StopIteration at 3"):
        keys_of_events(key, [1, 2, 3, 4], context)
