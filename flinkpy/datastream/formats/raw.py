"""Messages that are one value each, as columns: bytes as they are, or text. For rows there are
``ByteArraySchema`` and ``SimpleStringSchema`` of ``flinkpy.common``. PyFlink has no such module.
Formats of your own derive from ``ColumnarDecoder`` and ``ColumnarEncoder``.

>>> import pyarrow as pa
>>> class LengthsDecoder(ColumnarDecoder):
...     schema = pa.schema([("length", pa.int64())])
...     def decode_well_formed(self, messages):
...         lengths = [None if each is None else len(each) for each in messages]
...         return Decoded(pa.record_batch([lengths], schema=self.schema))
>>> class LengthsEncoder(ColumnarEncoder):
...     def encode(self, batch):
...         return [b"x" * length for length in batch.column("length").to_pylist()]
>>> LengthsEncoder().encode(LengthsDecoder().decode([b"xx", b"xxx"]))
[b'xx', b'xxx']
"""

from flinkpy.core.program.public_names import publish
from flinkpy.formats.port import ColumnarDecoder, ColumnarEncoder, Decoded, MalformedMessageError
from flinkpy.formats.raw_columns import (
    RawColumnarDecoder,
    RawColumnarEncoder,
    StringColumnarDecoder,
)

__all__ = [
    "ColumnarDecoder",
    "ColumnarEncoder",
    "Decoded",
    "MalformedMessageError",
    "RawColumnarDecoder",
    "RawColumnarEncoder",
    "StringColumnarDecoder",
]

publish(__name__)
