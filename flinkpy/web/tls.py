"""How the REST endpoint speaks TLS."""

from __future__ import annotations

import ssl

from flinkpy.core.options.tls.tls_files import TlsFiles


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """TLS 1.2 or newer. Raises ConfigurationError that names the option whose file cannot be
    used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files.load_into(context)
    return context
