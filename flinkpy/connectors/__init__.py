"""Sources and sinks. Programs import ``sources`` and ``sinks``; everything else is how they are
implemented.

The source API is in ``source_api``: ``source`` (the interfaces), ``coordinator`` (in the
JobMaster), ``source_operator`` (in the task), ``enumerators`` and ``readers`` (what most sources
share), ``python_source`` (sources written in programs)."""
