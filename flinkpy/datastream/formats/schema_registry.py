"""Messages with a schema registry: rows and columns of Avro, JSON and Protobuf. PyFlink has no such
module.

>>> from flinkpy.datastream.formats.avro import AvroColumnarDecoder, AvroColumnarEncoder
>>> from flinkpy.datastream.formats.avro import (
...     AvroRowDeserializationSchema,
...     AvroRowSerializationSchema,
... )
>>> registry = SchemaRegistry("http://registry:8081")
>>> schema = '{"type": "record", "name": "visit", "fields": [{"name": "shop", "type": "string"}]}'
>>> reads_rows = RegistryDeserializationSchema(
...     registry, AvroRowDeserializationSchema(avro_schema_string=schema)
... )
>>> writes_rows = RegistrySerializationSchema(
...     registry, "visits-value", AvroRowSerializationSchema(avro_schema_string=schema)
... )
>>> reads_columns = RegistryColumnarDecoder(registry, AvroColumnarDecoder(schema))
>>> writes_columns = RegistryColumnarEncoder(registry, "visits-value", AvroColumnarEncoder(schema))
"""

from flinkpy.core.program.public_names import publish
from flinkpy.formats.registry.registered import (
    RegistryColumnarDecoder,
    RegistryColumnarEncoder,
    RegistryDeserializationSchema,
    RegistrySerializationSchema,
)
from flinkpy.formats.registry.schema_registry import SchemaRegistry, SchemaRegistryError

__all__ = [
    "RegistryColumnarDecoder",
    "RegistryColumnarEncoder",
    "RegistryDeserializationSchema",
    "RegistrySerializationSchema",
    "SchemaRegistry",
    "SchemaRegistryError",
]

publish(__name__)
