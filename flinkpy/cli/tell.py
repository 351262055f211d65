"""What the commands print."""

from __future__ import annotations

import click

from flinkpy.core.secrets.hidden_secrets import without_secrets


def tell(text: str, *, err: bool = False) -> None:
    """Prints a line, or several, without secrets; with ``err`` on standard error."""
    click.echo(without_secrets(text), err=err)
