"""The REST endpoint: Flink's routes and JSON over HTTP, answered from the Dispatcher. It is imported only where it serves."""
