"""The REST endpoint: Flink's routes and JSON over HTTP, answered by the Dispatcher, the
ResourceManager and the inspectors of processes. It is imported only where it serves."""
