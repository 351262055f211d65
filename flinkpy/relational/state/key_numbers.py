"""Dense numbers of keys, for operators whose state is arrays over them. Keys that are gone give
their numbers back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import PLACES, KeyedBatch, KeyIndex, encoded
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import with_schema
from flinkpy.relational.state.numbered_rows import FrozenRows, NumberedRows

# rows a key: so many at least make it worth to find a batch's distinct keys first. Whole numbers
# are found about as fast as they are told apart
_FEW, _FEW_NUMBERS = 3, 16


class KeyNumbers:
    """Numbers keys of these columns. Null is a key as any other; all NaNs are one key, and the
    zeros of both signs are one.

    >>> known = KeyNumbers(pa.schema([("k", pa.string())]))
    >>> known.numbers(pa.record_batch({"k": ["a", None, "a"]})).tolist()
    [0, 1, 0]
    >>> known.free(np.array([0]))
    >>> known.find(pa.record_batch({"k": ["a", None]})).tolist()
    [-1, 1]
    >>> known.numbers(pa.record_batch({"k": ["b", "c"]})).tolist()
    [0, 2]
    >>> known.keys_of(np.array([2, 1])).column(0).to_pylist()
    ['c', None]
    """

    def __init__(self, schema: pa.Schema, places: int = PLACES) -> None:
        self.schema = schema
        self.index = KeyIndex(key_names(len(schema)), places)
        """What finds them, by the names of ``key_batch``."""
        self._keys = NumberedRows(schema)
        is_number = len(schema) == 1 and pa.types.is_integer(schema.field(0).type)
        self._few = _FEW_NUMBERS if is_number else _FEW
        self._are_few = not is_number  # whether the last batch had few distinct keys

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def size(self) -> int:
        """Every number is below."""
        return self.index.size

    @property
    def nbytes(self) -> int:
        """How much memory the keys take, without the table that finds them."""
        return self._keys.nbytes

    def numbers(self, keys: pa.RecordBatch) -> Any:
        """The number of each row's key; new keys get one."""
        found = self.of(keys)
        return found.ids.take(found.codes)

    def of(self, keys: pa.RecordBatch) -> KeyedBatch:
        """The distinct keys of a batch, in the order in which they come, with their numbers; new
        keys get one."""
        named = key_batch(keys.columns)
        if not self._are_few:
            found = self.index.of(named)
            self._are_few = len(found.ids) * self._few <= len(found.codes)
        else:
            found = self._of_few(named)
        if found.is_new.any():
            fresh = keys.take(pa.array(found.firsts[found.is_new]))
            self._keys.put(found.ids[found.is_new], with_schema(fresh, self.schema))
        return found

    def _of_few(self, named: pa.RecordBatch) -> KeyedBatch:
        distinct = encoded(named.columns)
        firsts = distinct.firsts
        numbered = self.index.numbers(named.take(pa.array(firsts)))
        is_new = np.zeros(distinct.count, np.bool_)
        is_new[numbered.fresh] = True
        self._are_few = distinct.count * self._few <= named.num_rows
        return KeyedBatch(distinct.codes, numbered.ids, firsts, is_new)

    def find(self, keys: pa.RecordBatch) -> Any:
        """The number of each row's key; -1 where it has none."""
        return self.index.find(key_batch(keys.columns))

    def free(self, numbers: npt.NDArray[np.int64]) -> None:
        """The keys with these numbers are gone; other keys get the numbers. A number must be known,
        and be there once."""
        if len(numbers):
            self.index.forget(numbers)
            self._keys.remove(numbers)

    def keys_of(self, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The keys with these numbers, which must be known."""
        return self._keys.take(numbers)

    def freeze(self) -> FrozenRows:
        """The keys by number as they are now."""
        return self._keys.freeze()
