"""Options of the webhook, to which a cluster posts what happens to its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.schema import option, read

WEBHOOK_URL = option(
    "events.webhook.url",
    str,
    None,
    "Where each new state of a job, and the end of each checkpoint, is posted as JSON.",
)
WEBHOOK_TOKEN = option(
    "events.webhook.token", str, None, "Sent along as header 'Authorization: Bearer …'."
)


@dataclass(frozen=True)
class WebhookConfig:
    url: str
    token: str | None = None

    @staticmethod
    def of(values: Mapping[str, Any]) -> WebhookConfig | None:
        """None if no webhook is configured. Raises ConfigurationError for what is no URL of
        HTTP."""
        url = read(values, WEBHOOK_URL)
        if url is None:
            return None
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"option {WEBHOOK_URL.key}: a URL begins with http:// or https://, this is "
                f"{url!r:.80}"
            )
        return WebhookConfig(url, read(values, WEBHOOK_TOKEN))
