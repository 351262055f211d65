"""The address at which others reach this machine."""

from __future__ import annotations

import socket


def outward_address() -> str:
    """The address of the network interface that this machine sends with; nothing is sent. Without a
    network, that of the machine itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # reserved for documentation: no host has it
            return str(sock.getsockname()[0])
        except OSError:
            return "127.0.0.1"
