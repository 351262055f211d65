"""Sources and sinks, and the source API they are built on (splits, an enumerator in the JobMaster, readers in the tasks).

How a source's parts talk: ``source`` (the ports), ``coordinator`` (in the JobMaster), ``source_operator`` (in the task), ``sequence`` (once and in
order), ``enumerators`` and ``readers`` (what most sources share). A source of one's own: ``python_source``. A sink's port is
``flinkpy.operators.sinks.sink_port``.
"""
