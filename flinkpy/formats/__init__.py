"""Messages: bytes to values and back, one by one (rows) and by the batch (columns).

``port`` has what a connector needs to know of columns; rows have PyFlink's SerializationSchema and
DeserializationSchema (``flinkpy.common.serialization``). Nothing here knows a connector. Programs
import ``flinkpy.datastream.formats``."""
