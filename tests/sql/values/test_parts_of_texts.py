from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.columns.kernels.parts_of_texts import part_at

TEXTS = st.lists(st.none() | st.text("a/é,/", max_size=6), max_size=6)


@given(TEXTS, st.integers(0, 6), st.integers(0, 6), st.sampled_from(["/", ",", "é", "//"]))
def test_a_part_between_separators_is_that_of_python(
    texts: list[str | None], begin: int, index: int, separator: str
) -> None:
    column = pa.array(texts, pa.string())[begin:]  # a slice begins within the bytes of the whole
    found = part_at(column, separator, index)
    found.validate(full=True)
    for text, part in zip(texts[begin:], found.to_pylist(), strict=True):
        parts = text.split(separator) if text else []
        assert part == (parts[index] if index < len(parts) else None)
