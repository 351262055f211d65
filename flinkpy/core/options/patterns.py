"""The options of patterns over streams."""

from __future__ import annotations

from flinkpy.core.options.schema import option

MAX_PARTIAL_MATCHES = option(
    "cep.max-partial-matches-per-key",
    int,
    None,
    (
        "How many partial matches of a pattern one key may have; with more the job fails, and says "
        "which key and which events. Absent: a warning at 10000."
    ),
    at_least=1,
)
