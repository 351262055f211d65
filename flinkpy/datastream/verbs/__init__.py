"""The implementation of the methods of DataStream and KeyedStream, as functions of recorded
streams."""
