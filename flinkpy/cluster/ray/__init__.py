"""Sessions and applications on Ray: found, started, connected to, ended."""
