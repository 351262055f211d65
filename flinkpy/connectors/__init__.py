"""Sources and sinks. ``sources`` and ``sinks`` are for programs; everything else is how they are made.

The source API, in ``source_api``: ``source`` (the ports), ``coordinator`` (in the JobMaster), ``source_operator`` (in the task), ``enumerators`` and
``readers`` (what most sources share), ``python_source`` (sources of programs).
"""
