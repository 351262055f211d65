"""Catalogs that outlive a session."""
