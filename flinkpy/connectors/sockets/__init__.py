"""A source of lines from a TCP server, and a sink that sends bytes to one."""
