"""The table: a rule, the file that holds it, the text that is replaced there and by what, and the
tests that must notice."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """``old`` occurs once in ``file``."""

    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The file's text with the change. ValueError when the text to replace is not there, or
        more than once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.file} holds this {found} times: {self.old!r}")
        return text.replace(self.old, self.new)


class Mutant(NamedTuple):
    """``tests`` are what pytest is given; with ``PROGRAMS``, seeds of real programs are played
    until one fails. ``also`` is a second rule that is broken with the first, where each of them
    guards the same."""

    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    also: tuple[Change, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        return Change(self.file, self.old, self.new), *self.also


BEYOND_MEMORY = "tests/windowing/test_windows_beyond_memory.py"
JOINS_BEYOND_MEMORY = "tests/windowing/test_joins_beyond_memory.py"
RULES = "tests/actors/endpoints/test_control_plane_rules.py"
PROTOCOL = "tests/actors/endpoints/test_slot_protocol.py"
STATUS = "tests/actors/endpoints/test_job_status.py"
SCHEDULER = "tests/scheduler/test_scheduler.py"
IDS = "tests/graph/test_job_graph.py"
AGE = "return metrics.attempt_id.attempt, final is not None, metrics.read_ms"
REGISTRY = "flinkpy/scheduler/checkpointing/shared_state_registry"
SHARED_FILES = "tests/scheduler/test_shared_state_registry.py"
LIFE = "tests/runtime/test_task_lifecycle.py"
DRAWN_QUERIES = (
    "tests/table/generated/test_generated_queries.py::"
    "test_a_query_that_must_stay_right_gives_the_same_rows_in_every_way"
)
PATTERNS = "tests/cep/test_pattern_streams.py"
TIMES_OUT = "test_what_times_out_is_given_when_its_time_comes_also_for_keys_that_never_come_again"
DYNAMIC = "tests/cep/test_dynamic_patterns.py"
LEVELS = "tests/runtime/memory/test_memory_levels.py"
LEDGER = "tests/runtime/memory/test_memory_manager.py"
SPILLING = "tests/operators/test_spilling.py::"
GROUPS_SPILL = "tests/relational/test_hash_aggregate.py::"
PROGRAMS = ("tests/simulation/test_programs.py",)
GROUP_CHANGELOGS = (
    "tests/relational/test_group_changelogs.py::test_the_changelog_is_that_of_flink",
)
CHANGING_GROUPS = "tests/relational/test_changing_groups.py"
REGULAR_JOIN = "tests/relational/test_regular_join.py"
UPSERT_SINKS = "tests/relational/test_upsert_sinks.py"
VERSIONS = "tests/relational/test_versions_of_tables.py"
_OF_ITS_TIME = "test_a_row_meets_the_version_of_its_time_in_batches_of_any_size_and_after_restarts"
NUMBERS_OF_KEYS = "tests/relational/test_numbers_of_keys.py"

MUTANTS = (
    # -- patterns ----------------------------------------------------------------------------------
    Mutant(
        "a partial match of a pattern times out at the moment when its time is up",
        "flinkpy/cep/matching/calendar.py",
        "self._ends[0] <= now:",
        "self._ends[0] < now:",
        (f"{PATTERNS}::{TIMES_OUT}",),
    ),
    Mutant(
        "a key is looked at again when the next partial match of a pattern times out",
        "flinkpy/cep/matching/row_matcher.py",
        "            self._enter(key, runs)\n            yield found",
        "            yield found",
        (f"{PATTERNS}::test_the_next_partial_match_of_a_key_times_out_when_its_own_time_comes",),
    ),
    Mutant(
        "an event at the watermark is late for a pattern",
        "flinkpy/cep/matching/pending_events.py",
        "            if time > watermark:\n",
        "            if time >= watermark:\n",
        (f"{PATTERNS}::test_late_events_are_counted_or_go_to_a_side_output",),
    ),
    Mutant(
        "a partial match of a pattern keeps when it took its last event",
        "flinkpy/cep/automaton/partial_matches.py",
        "cells.append((name, event, time, number, place))",
        "cells.append((name, event, run[FIRST][TIME], number, place))",
        (f"{PATTERNS}::test_the_time_of_the_last_event_of_a_partial_match_is_saved",),
    ),
    Mutant(
        "the highest version of a pattern counts",
        "flinkpy/cep/dynamic/pattern_versions.py",
        "before is None or _rank(update) > before",
        "before is None or _rank(update) != before",
        (f"{DYNAMIC}::test_the_highest_version_counts_whatever_the_order_of_updates",),
    ),
    Mutant(
        "an event is given to all patterns whose comparisons hold",
        "flinkpy/cep/dynamic/event_filter.py",
        'bisect_left if function in (">", "<=") else bisect_right',
        'bisect_left if function in (">", "<") else bisect_right',
        (f"{DYNAMIC}::test_the_filter_lets_pass_what_a_comparison_of_any_value_finds",),
    ),
    Mutant(
        "an event that ends a partial match of a pattern is wanted as one that goes on with it",
        "flinkpy/cep/dynamic/wanted_events.py",
        "return sets if sets == EVERY or _is_ignored_without(state, sets) else EVERY",
        "return sets",
        (f"{DYNAMIC}::test_each_pattern_finds_what_it_finds_alone",),
    ),
    Mutant(
        "a version of a pattern that finishes what it has begun goes on in any subtask",
        "flinkpy/cep/dynamic/known_patterns.py",
        "store.engine_list(FINISHING, Sharing.UNION)",
        "store.engine_list(FINISHING, Sharing.SPLIT)",
        (f"{DYNAMIC}::test_what_an_old_version_has_begun_may_finish_in_another_subtask",),
    ),
    # -- what the graph says -----------------------------------------------------------------------
    Mutant(
        "rescaled streams stay within their group",
        "flinkpy/graph/partitioning.py",
        "(PartitioningKind.FORWARD, PartitioningKind.RESCALE)",
        "(PartitioningKind.FORWARD,)",
        (
            "tests/graph/test_stream_graph.py::"
            "test_rescaled_and_forwarded_streams_stay_within_their_group_and_others_go_to_everybody",
        ),
    ),
    Mutant(
        "an operator id says which input is read",
        "flinkpy/graph/hashes.py",
        "{edge.input_index}:{ids[edge.source]}",
        "{ids[edge.source]}",
        (f"{IDS}::test_an_id_says_which_input_is_read",),
    ),
    Mutant(
        "sources are told apart by their class and name",
        "flinkpy/graph/hashes.py",
        "type(_read_by(node)).__qualname__, node.name",
        '""',
        (IDS,),
    ),
    Mutant(
        "sources of one class and name are told apart by their configuration",
        "flinkpy/graph/hashes.py",
        "digest(what, described(_read_by(node)))",
        "what",
        (IDS,),
    ),
    Mutant(
        "the inputs of a union may change places",
        "flinkpy/graph/hashes.py",
        "inputs = sorted(",
        "inputs = list(",
        (IDS,),
    ),
    # -- the scheduler -----------------------------------------------------------------------------
    Mutant(
        "the consumers of a region that restarts restart too",
        "flinkpy/scheduler/failover.py",
        "yield from regions_of(group.consumer_vertices())",
        "yield from ()",
        (f"{SCHEDULER}::test_all_that_reads_from_a_region_that_runs_again_runs_again_too",),
    ),
    Mutant(
        "producers of lost results restart",
        "flinkpy/scheduler/failover.py",
        "for vertex in group.producer_vertices() if vertex.execution.result_lost]",
        "for vertex in group.producer_vertices() if False]",
        (SCHEDULER,),
    ),
    Mutant(
        "a ProgramError does not restart the job",
        "flinkpy/scheduler/failover.py",
        "        isinstance(error, ProgramError) or",
        "        ",
        (SCHEDULER,),
    ),
    Mutant(
        "exponential pauses grow",
        "flinkpy/scheduler/restart.py",
        "self._delay_s * self._factor",
        "self._delay_s",
        ("tests/scheduler/test_restart.py",),
    ),
    # -- who is believed ---------------------------------------------------------------------------
    Mutant(
        "a fenced endpoint refuses another term",
        "flinkpy/actors/rpc/endpoint.py",
        "        if token != self.token:",
        "        if False:",
        (f"{PROTOCOL}::test_dispatcher_and_resource_manager_refuse_whoever_names_a_past_term",),
    ),
    Mutant(
        "a leader whose term has ended answers nobody",
        "flinkpy/actors/rpc/leadership.py",
        "        self.token = None",
        "        pass",
        (f"{PROTOCOL}::test_who_leads_no_more_answers_nobody",),
    ),
    Mutant(
        "a TaskExecutor takes tasks under the JobMaster's token only",
        "flinkpy/actors/task_executor/task_executor.py",
        "job is None or job.token != token or",
        "job is None or",
        (f"{RULES}::test_a_task_executor_takes_no_tasks_under_another_token_than_its_job_masters",),
    ),
    Mutant(
        "slots are promised to the leading ResourceManager only",
        "flinkpy/actors/task_executor/task_executor.py",
        "if resource_manager_token != self.manager.token:",
        "if False:",
        (f"{PROTOCOL}::test_a_promise_for_another_resource_manager_is_refused",),
    ),
    Mutant(
        "every JobMaster has a token of its own",
        "flinkpy/actors/job_master/job_master.py",
        "token = service.ids.fencing_token()",
        'token = "token"',
        (f"{RULES}::test_every_job_master_leads_under_a_token_of_its_own_and_answers_to_no_other",),
    ),
    Mutant(
        "nobody connects without the cluster's secret",
        "flinkpy/network/wire/handshake.py",
        "if not hmac.compare_digest(given, right):",
        "if False:",
        ("tests/network/test_handshake.py",),
    ),
    Mutant(
        "whoever connects over TLS shows a certificate",
        "flinkpy/core/options/tls/tls_files.py",
        "context.verify_mode = ssl.CERT_REQUIRED",
        "pass",
        ("tests/network/test_tls.py",),
    ),
    Mutant(
        "what an encrypted stream has received is read without more to come",
        "flinkpy/network/wire/connection.py",
        "if self._keeps is not None and self._keeps.pending():",
        "if False:",
        ("tests/network/test_tls.py",),
    ),
    Mutant(
        "bytes that were encrypted are not encrypted again",
        "flinkpy/network/wire/tls_stream.py",
        "sent, self._under_way = self._under_way, 0",
        "sent, self._under_way = 0, 0",
        ("tests/network/test_tls.py",),
    ),
    # -- who is told, and what is forgotten --------------------------------------------------------
    Mutant(
        "a worker that was told to stop is not registered",
        "flinkpy/actors/resource_manager/resource_manager.py",
        "if resource_id in self._stopped:",
        "if False:",
        (f"{RULES}::test_a_worker_that_was_told_to_stop_is_not_registered_again",),
    ),
    Mutant(
        "the ResourceManager asks for the cluster's limits again",
        "flinkpy/actors/resource_manager/resource_manager.py",
        "        self._limits.forget()\n",
        "",
        (f"{RULES}::test_the_limits_of_the_cluster_are_asked_again_as_it_may_grow",),
    ),
    Mutant(
        "the ResourceManager drops requests that the JobMaster no longer lists",
        "flinkpy/actors/resource_manager/resource_manager.py",
        "self.slots.keep_only(job_id, payload.requested, self._now() - patience)",
        "return",
        (
            f"{RULES}::test_a_request_whose_cancellation_was_lost_is_dropped_when_the_job_master_says_what_it_waits_for",
        ),
    ),
    Mutant(
        "a TaskExecutor that stops tells its JobMasters",
        "flinkpy/actors/task_executor/connected_jobs.py",
        "            job.send_disconnect(reason)\n",
        "",
        (f"{RULES}::test_a_task_executor_that_stops_tells_its_job_masters_at_once",),
    ),
    Mutant(
        "an endpoint that lost its ResourceManager registers again",
        "flinkpy/actors/resource_manager/leader_connection.py",
        ("            self._end_registration()\n            self.register_again()\n\n    def "),
        "            self._end_registration()\n\n    def ",
        (f"{RULES}::test_a_job_master_registers_again_at_a_resource_manager_it_has_lost",),
    ),
    Mutant(
        "an endpoint that hears of another ResourceManager registers there",
        "flinkpy/actors/resource_manager/leader_connection.py",
        "        if leader != self._leader:",
        "        if self._leader == NO_LEADER:",
        (
            f"{PROTOCOL}::test_a_resource_manager_that_died_is_followed_by_one_that_knows_nothing_and_everybody_finds_it",
        ),
    ),
    Mutant(
        "a JobMaster takes no TaskExecutors after its end",
        "flinkpy/actors/job_master/job_master.py",
        "            if self.status.has_ended:\n                return RegistrationResponse",
        "            if False:\n                return RegistrationResponse",
        (f"{RULES}::test_a_job_master_takes_no_task_executors_after_its_end",),
    ),
    Mutant(
        "the archive forgets the oldest jobs",
        "flinkpy/actors/dispatcher.py",
        "while len(self._archive) > self._archive_size:",
        "while False:",
        (f"{RULES}::test_the_archive_forgets_the_oldest_jobs",),
    ),
    Mutant(
        "an event that arrives twice is handled once",
        "flinkpy/actors/rpc/delivery/courier.py",
        "events[max(0, self._next - first) :]",
        "events",
        (
            "tests/actors/endpoints/test_source_coordinators.py",
            PROTOCOL,
            "flinkpy/actors/rpc/delivery/courier.py",
            "--doctest-modules",
        ),
    ),
    Mutant(
        "what is said to a task while a batch is under way goes with the next one",
        "flinkpy/actors/rpc/delivery/courier.py",
        "del events[: len(each.events)]",
        "events.clear()",
        ("tests/actors/rpc/test_courier.py",),
    ),
    Mutant(
        "the last task that takes part in a checkpoint does not wait",
        "flinkpy/actors/task_executor/report_pace.py",
        "if self._goes_at_once or self._waits_since is None or self._is_whole(tasks):",
        "if self._goes_at_once or self._waits_since is None:",
        ("tests/actors/endpoints/test_report_pace.py", "tests/simulation/test_large_cluster.py"),
    ),
    Mutant(
        "a report waits a tick at most",
        "flinkpy/actors/task_executor/report_pace.py",
        "return max(0.0, self._waits_since + TICK_S - now)",
        "return TICK_S",
        ("tests/actors/endpoints/test_report_pace.py",),
    ),
    Mutant(
        "whose heartbeat came with a report is not asked for one",
        "flinkpy/actors/rpc/heartbeat.py",
        "self._came_unasked.add(target)",
        "pass",
        ("tests/actors/rpc/test_heartbeat.py",),
    ),
    Mutant(
        "with a short timeout all are asked for their heartbeats",
        "flinkpy/actors/rpc/heartbeat.py",
        "if self._timeout_s < SPARING * self._interval_s:",
        "if False:",
        ("tests/actors/rpc/test_heartbeat.py",),
    ),
    Mutant(
        "a producer's place travels with it",
        "flinkpy/graph/deployment.py",
        "places.setdefault(descriptor.location, len(places)),",
        "places.setdefault(descriptor.location, 0),",
        ("tests/graph/test_shuffle_descriptors.py",),
    ),
    # -- what a running job tells ------------------------------------------------------------------
    Mutant(
        "a task in its step is busy",
        "flinkpy/runtime/task.py",
        "int(time.busy * 1000)",
        "0",
        (f"{LIFE}::test_metrics_tell_busy_idle_and_back_pressured_time_apart",),
    ),
    Mutant(
        "back-pressured and idle are not the same",
        "flinkpy/runtime/task.py",
        "int(time.waited(Waiting.OUTPUT) * 1000)",
        "int(time.waited(Waiting.INPUT) * 1000)",
        (f"{LIFE}::test_metrics_tell_busy_idle_and_back_pressured_time_apart",),
    ),
    Mutant(
        "a late reading does not overwrite a newer one",
        "flinkpy/actors/job_master/subtask_metrics.py",
        AGE,
        AGE.replace("metrics.read_ms", "0"),
        (f"{STATUS}::test_a_late_reading_does_not_overwrite_a_newer_one",),
    ),
    Mutant(
        "the latest attempt counts",
        "flinkpy/actors/job_master/subtask_metrics.py",
        AGE,
        AGE.replace("return ", "return -"),
        (f"{STATUS}::test_the_latest_reading_of_the_latest_attempt_counts_whatever_comes_when",),
    ),
    Mutant(
        "a reading that arrives after the end of its attempt is ignored",
        "flinkpy/actors/job_master/subtask_metrics.py",
        AGE,
        AGE.replace("final is not None", "False"),
        (f"{STATUS}::test_nothing_comes_behind_the_end_of_an_attempt_but_the_next_attempt",),
    ),
    Mutant(
        "large accumulators are read less often",
        "flinkpy/metrics/live.py",
        "max(APART_S, (now - began) / SHARE)",
        "APART_S",
        ("tests/metrics/test_live.py",),
    ),
    # -- the life of a task ------------------------------------------------------------------------
    Mutant(
        "before a barrier, operators emit what they hold in the order of the chain",
        "flinkpy/operators/chain/operator_chain.py",
        (
            "for operator in operators:\n            _call(operator, "
            "operator.prepare_snapshot_pre_barrier"
        ),
        (
            "for operator in reversed(operators):\n            _call(operator, "
            "operator.prepare_snapshot_pre_barrier"
        ),
        ("tests/operators/test_parking.py",),
    ),
    Mutant(
        "the end of data is sent before the last flush of the outputs",
        "flinkpy/runtime/stream_task.py",
        (
            "        self._alive.write(self.input.end_of_data)\n        "
            "self.phases.append(Phase.QUIESCE_TIMERS)\n        self.timers.quiesce()\n"
        ),
        (
            "        self.phases.append(Phase.QUIESCE_TIMERS)\n        "
            "self.timers.quiesce()\n        self._alive.write(self.input.end_of_data)\n"
        ),
        ("tests/operators/test_chain.py", LIFE, "tests/runtime/test_stream_task.py"),
    ),
    Mutant(
        "sinks do not commit for a savepoint of a job that goes on",
        "scheduler/checkpointing/checkpoint_coordinator.py",
        "        if pending.options.snapshot_type.stops_job:\n",
        "        if pending.options.snapshot_type.is_savepoint:\n",
        ("tests/scheduler/test_savepoints.py",),
    ),
    Mutant(
        "a failure leads back to the savepoint that the job stops with",
        "scheduler/checkpointing/completed_checkpoint_store.py",
        "        self._foreign, self.is_stopping = checkpoint, True\n",
        "        self.is_stopping = True\n",
        ("tests/scheduler/test_savepoints.py",),
    ),
    Mutant(
        "a failure while a job drains restarts all of it",
        "scheduler/checkpointing/checkpoint_coordinator.py",
        "            self.completed.job_drains()\n",
        "            pass\n",
        ("tests/scheduler/test_savepoints.py",),
    ),
    Mutant(
        "a task that starts from the savepoint with which its job has stopped leaves at once",
        "flinkpy/runtime/stream_task.py",
        "            self._leave_at_once()\n",
        "            pass\n",
        ("tests/runtime/test_stop_with_savepoint.py",),
    ),
    Mutant(
        "with which savepoint a job stops is kept for the next JobManager",
        "actors/job_master/checkpoint_actions.py",
        "                if command.stops is not None and self._store is not None:\n",
        "                if False:\n",
        ("tests/simulation/test_stops.py",),
    ),
    Mutant(
        "who takes over a job that was stopping ends it",
        "actors/job_master/recovery_point.py",
        "    found = _being_stopped(job_id, storage, store, complete)\n",
        "    found = None\n",
        ("tests/actors/test_recovery_point.py",),
    ),
    Mutant(
        "a checkpoint that appears when another JobManager has taken over counts for nobody",
        "actors/job_master/recovery_point.py",
        "    complete = store.counting(job_id, storage.complete())\n",
        "    complete = tuple(storage.complete())\n",
        ("tests/actors/test_recovery_point.py",),
    ),
    Mutant(
        "a failover waits until a checkpoint that was being stored is gone",
        "scheduler/scheduler.py",
        "        if not self.checkpoints.lingering:",
        "        if True:",
        ("tests/scheduler/test_checkpoints.py",),
    ),
    Mutant(
        "a subtask is sent the keyed state of all its key groups",
        "scheduler/checkpointing/subtask_restores.py",
        "all_of_it[first : last + 1], *without_keys[last + 1 :]",
        "all_of_it[first:last], *without_keys[last:]",
        ("tests/scheduler/test_subtask_restores.py",),
    ),
    Mutant(
        ("what a checkpoint of another program's job has collected says nothing to this program"),
        "flinkpy/connectors/collect/collect_sink.py",
        "[mark for mark in committables if mark.program == self._program]",
        "list(committables)",
        ("tests/connectors/test_exactly_once_collect.py",),
    ),
    Mutant(
        "a task that stops with a savepoint runs no timers behind it",
        "flinkpy/runtime/stream_task.py",
        "            self.processor.admit_only(CHECKPOINT_MAIL)\n",
        "",
        ("tests/runtime/test_stop_with_savepoint.py",),
    ),
    Mutant(
        "what came while a task stood still is handled before another savepoint",
        "flinkpy/runtime/checkpointing/task_checkpoints.py",
        "            self._task.go_on()\n",
        "",
        ("tests/runtime/test_stop_with_savepoint.py",),
    ),
    Mutant(
        "a task that stops with a savepoint reads no input behind it",
        "flinkpy/runtime/stream_task.py",
        "            self.processor.default_action = self._stand_still\n",
        "            pass\n",
        ("tests/runtime/test_stop_with_savepoint.py",),
    ),
    Mutant(
        "a drained task waits for its savepoint",
        "flinkpy/runtime/stream_task.py",
        "            or self.checkpoints.awaits_stop\n        ):\n            self._suspend",
        "        ):\n            self._suspend",
        ("tests/runtime/test_stop_with_savepoint.py",),
    ),
    Mutant(
        "a drained task waits although its savepoint was given up before its barrier",
        "flinkpy/runtime/checkpointing/task_checkpoints.py",
        "            self._await_end_of(barrier)\n        if",
        "            pass\n        if",
        ("tests/runtime/test_stop_with_savepoint.py", "tests/runtime/test_task_checkpoints.py"),
    ),
    Mutant(
        "a newer barrier aborts an older checkpoint",
        "flinkpy/runtime/alignment.py",
        "        self._barrier = barrier\n        self._arrived = set()\n",
        "        self._barrier = barrier\n",
        ("tests/runtime/test_alignment.py",),
    ),
    Mutant(
        "what a barrier overtakes in a queue is part of its checkpoint",
        "flinkpy/runtime/checkpointing/output_barriers.py",
        "                if elements:",
        "                if not elements:",
        ("tests/checkpoints/test_unaligned.py",),
    ),
    Mutant(
        "what comes before a channel's own barrier is part of the checkpoint that overtook",
        "flinkpy/runtime/checkpointing/input_barriers.py",
        "            gate.record(channel, self._log_of(recording, flat))",
        "            pass",
        ("tests/checkpoints/test_unaligned.py",),
    ),
    Mutant(
        "the rest of a batch that is processed in parts is part of the checkpoint",
        "flinkpy/runtime/checkpointing/input_barriers.py",
        "        if rest is not None:",
        "        if False:",
        ("tests/checkpoints/test_unaligned.py",),
    ),
    Mutant(
        "records sent another way after a restart come before newer ones",
        "flinkpy/runtime/checkpointing/sent_first.py",
        "    for output_index in first.barred:",
        "    for output_index in ():",
        ("tests/checkpoints/test_unaligned.py", "tests/runtime/test_sent_first.py"),
    ),
    Mutant(
        "a channel that has ended does not hold up a barrier",
        "flinkpy/runtime/alignment.py",
        "        self._open.discard(channel)\n",
        "",
        ("tests/runtime/test_alignment.py",),
    ),
    Mutant(
        "an idle channel does not hold the watermark back",
        "flinkpy/runtime/valve.py",
        "        gone.aligned = False",
        "        pass",
        ("tests/runtime/test_valve.py", "tests/runtime/test_valve_cases.py"),
    ),
    Mutant(
        "a channel that lags counts for the watermark only when it has caught up",
        "flinkpy/runtime/valve.py",
        "        if state.watermark >= self._emitted:\n            self._align(state)",
        "        self._align(state)",
        ("tests/runtime/test_valve.py", "tests/runtime/test_valve_cases.py"),
    ),
    # -- files that checkpoints share --------------------------------------------------------------
    Mutant(
        "a shared file is collected when its last user is gone",
        f"{REGISTRY}.py",
        "            if not users:",
        "            if len(users) <= 1:",
        (SHARED_FILES,),
    ),
    Mutant(
        "no shared file is forgotten",
        f"{REGISTRY}.py",
        "            users.discard(checkpoint_id)",
        "            pass",
        (SHARED_FILES,),
    ),
    Mutant(
        "a checkpoint keeps what it may build on",
        f"{REGISTRY}.py",
        "        self.use(checkpoint_id, self._used.get(base_id, ()))",
        "        pass",
        (SHARED_FILES,),
    ),
    Mutant(
        "a job builds on no checkpoint that it does not own",
        "flinkpy/scheduler/checkpointing/completed_checkpoint_store.py",
        "return self.own[-1].checkpoint_id if self._settings.incremental and self.own else None",
        (
            "return self.latest.checkpoint_id if self._settings.incremental and "
            "self.latest else None"
        ),
        (SHARED_FILES,),
    ),
    Mutant(
        "at the end files of a checkpoint that is kept stay",
        "flinkpy/state/checkpoints/checkpoint_storage.py",
        "self._keep_shared(lambda name: name in shared)",
        "self._keep_shared(lambda name: False)",
        ("tests/state/checkpoints/test_shared_files.py",),
    ),
    Mutant(
        "a database is built on only by the one that it was restored as",
        "flinkpy/state/rocksdb/prepared_database.py",
        "is_as_saved=not others and contents.groups == groups",
        "is_as_saved=True",
        ("tests/state/test_incremental_rocksdb.py",),
    ),
    # -- the network -------------------------------------------------------------------------------
    Mutant(
        "a sender sends what was granted",
        "flinkpy/network/flow/credits.py",
        "        self.credits -= segments",
        "        pass",
        ("tests/network/test_credits.py",),
    ),
    Mutant(
        "a receiver grants what it has taken",
        "flinkpy/network/flow/credits.py",
        "            window.granted += taken\n",
        "            pass\n",
        ("tests/network/test_credits.py",),
    ),
    Mutant(
        "a pool lends no more than its share",
        "flinkpy/network/flow/segments.py",
        "self.in_use + count <= self.size\n",
        "True\n",
        ("tests/network/test_segments.py",),
    ),
    # -- keys, state and windows -------------------------------------------------------------------
    Mutant(
        "a key's group does not depend on the process",
        "flinkpy/core/keys.py",
        "mix64((zlib.crc32(data) << 32 | zlib.adler32(data)) ^ salt << 56 ^ len(data))",
        "mix64(hash(data) ^ salt)",
        ("tests/core/test_keys.py",),
    ),
    Mutant(
        "a subtask owns the groups that are sent to it",
        "flinkpy/core/keys.py",
        "    start = -(-subtask_index * max_parallelism // parallelism)",
        "    start = subtask_index * max_parallelism // parallelism",
        ("tests/core/test_keys.py",),
    ),
    Mutant(
        "reading a value extends its time to live only where that is configured",
        "flinkpy/state/table_backend.py",
        "ttl.get_update_type() is UpdateType.OnReadAndWrite",
        "True",
        ("tests/state/test_ttl.py", "tests/state/test_ttl_model.py"),
    ),
    Mutant(
        "an expired value is returned only where that is configured",
        "flinkpy/state/table_backend.py",
        "ttl.get_state_visibility() is StateVisibility.ReturnExpiredIfNotCleanedUp",
        "True",
        ("tests/state/test_ttl.py", "tests/state/test_ttl_model.py"),
    ),
    Mutant(
        "a window lives as long as lateness is allowed",
        "flinkpy/windowing/general/window_lifetimes.py",
        "return min(last + self.allowed_lateness, MAX_TIMESTAMP)",
        "return min(last, MAX_TIMESTAMP)",
        ("tests/windowing/test_window_operator.py", "tests/windowing/test_late_records.py"),
    ),
    Mutant(
        "a record within the allowed lateness is not late",
        "flinkpy/windowing/general/window_lifetimes.py",
        "timestamp + self.allowed_lateness <= self._service.watermark",
        "timestamp <= self._service.watermark",
        ("tests/windowing/test_window_operator.py", "tests/windowing/test_late_records.py"),
    ),
    Mutant(
        "a record that joins several windows takes the contents of all",
        "flinkpy/windowing/general/merging_window_set.py",
        "state_window, tuple(absorbed))",
        "state_window, tuple(absorbed[:1]))",
        ("tests/windowing/test_merging.py",),
    ),
    Mutant(
        "a window that has merged leaves no timer",
        "flinkpy/windowing/general/merging_windows.py",
        "                self._lifetimes.delete_cleanup(key, window)\n",
        "",
        ("tests/windowing/test_merging.py",),
    ),
    Mutant(
        "the first checkpoint aligns what was in flight another way",
        "flinkpy/scheduler/checkpointing/checkpoint_coordinator.py",
        "return latest is not None and has_rescaled_in_flight(latest, job_graph)",
        "return False",
        ("tests/scheduler/test_checkpoints.py",),
    ),
    Mutant(
        "a job reads what its checkpoint has in flight in the phases that it had",
        "flinkpy/datastream/env/program_phases.py",
        "found = in_flight() if senders else {}",
        "found = {}",
        ("tests/datastream/test_phases_of_programs.py",),
    ),
    Mutant(
        "a sender that has ended gives its credits back",
        "flinkpy/network/flow/credits.py",
        "        self._return_segments(unused, unused + window.held)",
        "        del unused",
        ("tests/network/test_credits.py",),
    ),
    Mutant(
        "no barrier begins while the operators finish",
        "flinkpy/runtime/stream_task.py",
        "        self.checkpoints.hold_back()\n",
        "",
        ("tests/runtime/test_stop_with_savepoint.py",),
    ),
    Mutant(
        "an offer that is not answered expires",
        "flinkpy/actors/task_executor/task_executor.py",
        "if slot is not None and slot.state is TaskSlotState.ALLOCATED:",
        "if slot is None and self.holdings is None:",
        (PROTOCOL,),
    ),
    Mutant(
        "event time ends also behind an idle channel",
        "flinkpy/runtime/valve.py",
        "if watermark.timestamp == MAX_TIMESTAMP and not state.ended:",
        ("if watermark.timestamp == MAX_TIMESTAMP and not state.ended and not state.idle:"),
        ("tests/runtime/test_valve.py",),
    ),
    # -- SQL ---------------------------------------------------------------------------------------
    Mutant(
        "a null key of a join meets nothing",
        "flinkpy/relational/joins/built_side.py",
        "if column.null_count and not is_safe:",
        "if column.null_count and not self._columns:",
        (DRAWN_QUERIES,),
    ),
    Mutant(
        "a condition on the side of an outer join that may have no partner stays above it",
        "flinkpy/sql/rules/filter_pushing.py",
        "gives_right = below.kind in (JoinKind.INNER, JoinKind.RIGHT)",
        "gives_right = below.kind in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.LEFT)",
        (DRAWN_QUERIES,),
    ),
    Mutant(
        "the second phase of an aggregate adds the counts of the first",
        "flinkpy/relational/aggregates/group_counts.py",
        "np.add.at(self._counts.reach(size), groups, columns[0].to_numpy())",
        "np.add.at(self._counts.reach(size), groups, 1)",
        (DRAWN_QUERIES,),
    ),
    Mutant(
        "grouping sets that are equal have groups of their own",
        "flinkpy/sql/physical/grouping_sets.py",
        "before[each] << count",
        "0 << count",
        (DRAWN_QUERIES,),
    ),
    Mutant(
        "event times of several tables in one are an event time",
        "flinkpy/sql/binding/query_binder.py",
        "LocalZonedTimestampType)) and len(marks) == 1:",
        "LocalZonedTimestampType)) and not marks:",
        (DRAWN_QUERIES,),
    ),
    Mutant(
        "a watermark comes behind the rows that it is of",
        "flinkpy/relational/windows/watermark_rows.py",
        (
            "        self.output.emit(batch)\n        if moment is not None and moment > "
            "self._watermark:\n            self._watermark = moment\n            "
            "self.output.emit_control(Watermark(moment))"
        ),
        (
            "        if moment is not None and moment > self._watermark:\n            "
            "self._watermark = moment\n            "
            "self.output.emit_control(Watermark(moment))\n        self.output.emit(batch)"
        ),
        (DRAWN_QUERIES,),
    ),
    Mutant(
        "state goes on under the aggregates and windows that it was made by",
        "flinkpy/relational/windows/meanings.py",
        "if saved != wanted:",
        "if saved and not wanted:",
        ("tests/table/translation/test_savepoints_of_queries.py",),
    ),
    Mutant(
        "a table of Kafka is written as its option says",
        "flinkpy/table/factories/kafka/kafka_clients.py",
        "DeliveryGuarantee[guarantee]",
        "DeliveryGuarantee.AT_LEAST_ONCE",
        ("tests/kafka/test_tables.py::test_rows_are_written_with_the_guarantee_of_the_option",),
    ),
    # -- exactly once, seen by real programs in the simulation -------------------------------------
    Mutant(
        "a channel whose barrier has come waits for the others",
        "flinkpy/runtime/alignment.py",
        "AlignmentStep(unblock=released, block=(channel,))",
        "AlignmentStep(unblock=released)",
        PROGRAMS,
    ),
    Mutant(
        "nothing is committed before its checkpoint is complete",
        "flinkpy/operators/sinks/pending_commits.py",
        "setdefault(checkpoint_id, []).extend(committables)\n",
        (
            "setdefault(checkpoint_id, []).extend(committables)\n"
            "            self._try(list(committables), checkpoint_id)\n"
        ),
        PROGRAMS,
    ),
    Mutant(
        "a global committer commits nothing before its checkpoint is complete",
        "flinkpy/operators/sinks/global_commits.py",
        "self._pending.save(self._committables, checkpoint_id, prepared_by)\n",
        (
            "self._pending.save(self._committables, checkpoint_id, prepared_by)\n"
            "        self._pending.commit_all()\n"
        ),
        ("tests/operators/test_global_committer.py",),
    ),
    Mutant(
        "what writers prepared for a global committer goes before the barrier",
        "flinkpy/operators/chain/operator_chain.py",
        (
            "        for operator in operators:\n            _call(operator, "
            "operator.emit_before_barrier, barrier.checkpoint_id)\n        self.write(barrier)\n"
        ),
        (
            "        self.write(barrier)\n        for operator in operators:\n            "
            "_call(operator, operator.emit_before_barrier, barrier.checkpoint_id)\n"
        ),
        ("tests/operators/test_global_committer.py",),
    ),
    Mutant(
        "a barrier does not overtake what its writer has gathered",
        "flinkpy/network/writer.py",
        ("            return\n        self._pass_gathered()\n        if type(element) is"),
        "            return\n        if type(element) is",
        PROGRAMS,
    ),
    Mutant(
        "a subtask acknowledges when its file is there",
        "flinkpy/state/checkpoints/state_writer.py",
        "                self._file.close()\n                self._appeared",
        "                self._appeared",
        PROGRAMS,
    ),
    Mutant(
        "a reader saves the position behind its last record",
        "flinkpy/connectors/source_api/readers.py",
        "        being_read = [] if self._current is None else [self._current.snapshot()]",
        "        now = [] if self._current is None else [self._current.snapshot()]\n"
        "        being_read, self.__dict__['_before'] = self.__dict__.get('_before', "
        "now), now",
        PROGRAMS,
    ),
    Mutant(
        "a job goes back to its newest checkpoint",
        "flinkpy/scheduler/checkpointing/completed_checkpoint_store.py",
        "newest = self.own[-1] if self.own",
        "newest = self.own[0] if self.own",
        PROGRAMS,
    ),
    Mutant(
        "every timer is restored",
        "flinkpy/operators/process/key_timers.py",
        "            for timestamp in timestamps:\n                self.add(timestamp, key)",
        ("            for timestamp in timestamps[1:]:\n                self.add(timestamp, key)"),
        PROGRAMS,
    ),
    Mutant(
        "every timer of a window is restored",
        "flinkpy/windowing/general/per_window/window_timers.py",
        (
            "                for moment in moments:\n                    self.add(moment, "
            "key, window)"
        ),
        (
            "                for moment in moments[1:]:\n                    "
            "self.add(moment, key, window)"
        ),
        PROGRAMS,
    ),
    Mutant(
        "an element of a union list is restored once",
        "flinkpy/state/snapshots/operator_snapshots.py",
        "[[piece for pieces in of_subtasks for piece in pieces]] * new_parallelism",
        ("[[piece for pieces in of_subtasks for piece in (*pieces, *pieces)]] * new_parallelism"),
        PROGRAMS,
    ),
    Mutant(
        "a barrier goes on when the last channel without it has ended",
        "flinkpy/runtime/alignment.py",
        "return self._completed(()) or self._tracked_through(()) or self._ended() or NOTHING",
        "return self._tracked_through(()) or self._ended() or NOTHING",
        PROGRAMS,
    ),
    Mutant(
        "a subtask stores what is in flight in each of its channels",
        "flinkpy/runtime/checkpointing/channel_recording.py",
        "in sorted(self._logs.items())\n",
        "in sorted(self._logs.items())[1:]\n",
        PROGRAMS,
    ),
    Mutant(
        "what was in flight in each channel is sent again",
        "flinkpy/runtime/checkpointing/sent_first.py",
        "        tuple(found),\n",
        "        tuple(found[1:]),\n",
        PROGRAMS,
    ),
    Mutant(
        "a transaction belongs to one attempt",
        "flinkpy/testing/simulation/programs/simulated_ends.py",
        "{context.operator_id} {context.task.attempt_id}",
        "{context.operator_id} {context.task.subtask_index}",
        PROGRAMS,
    ),
    Mutant(
        "a restored attempt gives its part files names of their own",
        "flinkpy/connectors/files/writing/part_names.py",
        'f"-r{secrets.token_hex(4)}" if restored else ""',
        '"" if secrets else ""',
        PROGRAMS,
    ),
    Mutant(
        "a file that a later checkpoint uses is not collected with an earlier one",
        f"{REGISTRY}.py",
        "            if not users:",
        "            if len(users) <= 1:",
        PROGRAMS,
    ),
    Mutant(
        "a file that no checkpoint uses any more is collected",
        f"{REGISTRY}.py",
        "            users.discard(checkpoint_id)",
        "            pass",
        PROGRAMS,
    ),
    # A failover gives up what is under way, and a number is given to one checkpoint only: so each
    # of these three guards the other two
    Mutant(
        "an acknowledgement counts for the attempt that was asked, and for its checkpoint",
        "flinkpy/scheduler/checkpointing/pending_checkpoint.py",
        (
            "        if attempt_id not in self.awaited:\n            return False\n        "
            "self.awaited.discard(attempt_id)\n        if snapshot.had_finished"
        ),
        "        asked = next((each for each in self.awaited if each.vertex == "
        "attempt_id.vertex), None)\n"
        "        if asked is None:\n            return False\n        "
        "self.awaited.discard(asked)\n        if snapshot.had_finished",
        PROGRAMS,
        (
            Change(
                "flinkpy/scheduler/checkpointing/checkpoint_coordinator.py",
                (
                    "self._aborted.get(event.checkpoint_id)\n        if pending is not "
                    "None and pending.acknowledge(event.attempt_id"
                ),
                "(next(iter(self.pending.values()), None) if "
                "self._plan.graph.current(event.attempt_id) is None else None)\n"
                "        if pending is not None and pending.acknowledge(event.attempt_id",
            ),
            Change(
                "flinkpy/actors/job_master/task_executors.py",
                "return () if task is None else",
                ("return tuple(each for each in events if each[0] is None) if task is None else"),
            ),
        ),
    ),
    Mutant(
        "a failover gives up the checkpoints under way",
        "flinkpy/scheduler/checkpointing/checkpoint_coordinator.py",
        "if self._job.state is not JobState.RUNNING:",
        "if self._job.state.name == 'FAILING':",
        PROGRAMS,
    ),
    # -- rows that change --------------------------------------------------------------------------
    Mutant(
        "a row of a group that is gone is deleted",
        "flinkpy/relational/groups/changed_results.py",
        "np.where(is_delete, _DELETE, _BEFORE)",
        "np.where(is_delete, _BEFORE, _BEFORE)",
        GROUP_CHANGELOGS,
    ),
    Mutant(
        "the row before an update takes its values back",
        "flinkpy/relational/groups/changing_groups.py",
        "is_back = (kinds == _BEFORE) | (kinds == _DELETE)",
        "is_back = kinds == _DELETE",
        GROUP_CHANGELOGS,
    ),
    Mutant(
        "a row that comes and goes in one batch takes back only itself",
        "flinkpy/relational/groups/changing_groups.py",
        "was[codes] | (signs > 0) | (np.arange(len(codes)) > first[codes])",
        "was[codes] | (signs > 0) | (np.arange(len(codes)) < 0)",
        (f"{CHANGING_GROUPS}::test_each_batch_gives_the_net_changes_of_its_keys",),
    ),
    Mutant(
        "a row of an outer join stands alone when its last partner goes, and not before",
        "flinkpy/relational/joins/regular_join.py",
        "(before == 0) & (after > 0), (before > 0) & (after == 0)",
        "(before == 0) & (after > 0), (before > 0) & (after <= 1)",
        (f"{REGULAR_JOIN}::test_a_batch_gives_the_net_change_of_its_rows",),
    ),
    Mutant(
        "rows of an upsert key that go to several subtasks lose it",
        "flinkpy/sql/changes/upsert_keys.py",
        "return frozenset(key for key in keys if wanted <= key)",
        "return frozenset(key for key in keys if wanted or key)",
        ("tests/sql/changes/test_changes_of_plans.py",),
    ),
    Mutant(
        "a cast to a narrower type makes equal keys of different ones",
        "flinkpy/sql/changes/upsert_keys.py",
        "return _width(type) <= _width(wanted)",
        "return _width(type) <= 9 and bool(wanted)",
        ("tests/sql/changes/test_changes_of_plans.py",),
    ),
    Mutant(
        "where the row that stands in a table is taken back, the last one before it stands",
        "flinkpy/relational/sinks/materialiser.py",
        "order = np.lexsort((places, keys))",
        "order = np.lexsort((-places, keys))",
        (f"{UPSERT_SINKS}::test_the_last_row_of_a_key_stands",),
    ),
    Mutant(
        "rows whose key is not that of the table are put in order in front of it",
        "flinkpy/sql/changes/sink_kinds.py",
        "return not is_unique(upsert_keys(node.input), node.primary_key)",
        "return not upsert_keys(node.input)",
        ("tests/sql/changes/test_changes_of_plans.py",),
    ),
    Mutant(
        "what is as old as its TTL is gone",
        "flinkpy/relational/state/expiry_of_numbers.py",
        "return self._written.values[numbers] > now_ms - self.ttl_ms",
        "return self._written.values[numbers] >= now_ms - self.ttl_ms",
        (f"{NUMBERS_OF_KEYS}::test_what_is_as_old_as_its_time_is_gone",),
    ),
    Mutant(
        "each row gives its group the whole TTL again",
        "flinkpy/relational/groups/changing_groups.py",
        "        self._expiry.touch(numbers, now_ms)",
        "        self._expiry.touch(numbers[expired | ~was], now_ms)",
        (
            f"{CHANGING_GROUPS}::test_each_row_gives_its_group_its_whole_time_so_a_result_as_it_was_is_sent",
        ),
    ),
    Mutant(
        "a result that is as it was is sent where a TTL counts on it",
        "flinkpy/relational/groups/changing_groups.py",
        "leaves_out_equal=self._expiry is None",
        "leaves_out_equal=True",
        (
            f"{CHANGING_GROUPS}::test_each_row_gives_its_group_its_whole_time_so_a_result_as_it_was_is_sent",
        ),
    ),
    Mutant(
        "a deleted row of a key goes out as it was kept",
        "flinkpy/relational/ranks/normalized_rows.py",
        "deleted = kept.take(goes) if len(goes)",
        "deleted = data.take(pa.array(last[had & ~stands])) if len(goes)",
        ("tests/relational/test_last_rows.py::test_upserts_become_all_changes",),
    ),
    Mutant(
        "a version that comes late does not stand before a later one",
        "flinkpy/relational/joins/versions_of_keys.py",
        "stands = new.there[last] & ~is_older",
        "stands = new.there[last]",
        (f"{VERSIONS}::{_OF_ITS_TIME}",),
    ),
    Mutant(
        "a delete ends the version that it is of",
        "flinkpy/relational/joins/versions_of_keys.py",
        "places = np.where((places >= 0) & new.there[places], places, -1)",
        "pass",
        (f"{VERSIONS}::{_OF_ITS_TIME}",),
    ),
    Mutant(
        "who keeps versions hears of every change of a batch",
        "flinkpy/sql/changes/update_kinds.py",
        "(left, with_every_change(right))",
        "(left, right)",
        (
            "tests/table/translation/test_versions_in_sql.py::test_each_order_meets_the_rate_of_its_time",
        ),
    ),
    Mutant(
        "rows of one key are spilled to one partition",
        "flinkpy/operators/spilling/key_partitions.py",
        "    hashes = words_of_rows([data.column(at) for at in keys]).hashes().view(np.uint64)",
        "    hashes = np.arange(data.num_rows, dtype=np.uint64) << np.uint64(56)",
        (SPILLING + "test_each_portion_has_all_rows_of_its_keys_in_their_order",),
    ),
    Mutant(
        "what comes late for a partition that was spilled goes to its file",
        "flinkpy/operators/spilling/key_partitions.py",
        "                if found is not None:\n                    found.append(part)",
        "                if found is not None and False:\n                    found.append(part)",
        (SPILLING + "test_each_portion_has_all_rows_of_its_keys_in_their_order",),
    ),
    Mutant(
        "a level of spilling takes bits of the hash that no level before it took",
        "flinkpy/operators/spilling/key_partitions.py",
        "np.uint64(64 - _BITS * (level + 1))",
        "np.uint64(64 - _BITS * (level // 2 + 1))",
        (
            SPILLING
            + "test_keys_are_spread_by_each_level_anew_and_equal_ones_of_any_type_are_together",
        ),
    ),
    Mutant(
        "a row of a group that is in memory is accumulated there, however full it is",
        "flinkpy/relational/hash_groups/spilling_groups.py",
        "            self._table.take_of(data, groups)",
        "            others.add(with_schema(data, self._plan.taken_schema))",
        (
            GROUPS_SPILL
            + "test_rows_of_groups_that_are_in_memory_are_accumulated_there_and_others_wait_on_disk",
        ),
    ),
    Mutant(
        "rows of an outer join that meet a spilled side block by block go out alone once",
        "flinkpy/relational/joins/spilling_join.py",
        "            yield from self._here.meet(data, of_data)",
        "            yield from self._here.probe(data)",
        ("tests/relational/test_hash_join.py::test_without_keys_every_row_meets_every_row",),
    ),
    Mutant(
        "rows that pass by a join meet those of their partition that are in files",
        "flinkpy/relational/joins/spilling_join.py",
        "                self._passing.add(data.filter(pa.array(~is_here)))",
        "                yield from self._here.probe(data.filter(pa.array(~is_here)))",
        ("tests/relational/test_hash_join.py::test_joins_give_what_duckdb_says",),
    ),
    Mutant(
        "a slice on disk is read before records are added to it",
        "flinkpy/windowing/slices/row_slices.py",
        "            states.update(found)\n",
        "            states.update({})\n",
        (BEYOND_MEMORY,),
    ),
    Mutant(
        "what leaves memory is part of a checkpoint until it is written",
        "flinkpy/windowing/slices/row_slices.py",
        "            held = [*self._beyond.leaving.items(), *held]\n",
        "            held = [*held]\n",
        (BEYOND_MEMORY,),
    ),
    Mutant(
        "a slice on disk goes with its last window",
        "flinkpy/state/timed_entries.py",
        "            self._entries.drop(start)\n",
        "            pass\n",
        (BEYOND_MEMORY,),
    ),
    Mutant(
        "a window join fires for records on disk as for those in memory",
        "flinkpy/windowing/joins/slices_on_disk.py",
        "                found += [(True, piece) for piece in self._written(start, group)]\n",
        "                pass\n",
        (JOINS_BEYOND_MEMORY,),
    ),
    Mutant(
        "windows of records on disk that had fired before a restore are not fired again",
        "flinkpy/windowing/joins/fired_before.py",
        "        return lambda key: start in again.get(key, ())\n",
        "        return None\n",
        (JOINS_BEYOND_MEMORY,),
    ),
    Mutant(
        "rows of columns on disk have fired until where their key group has",
        "flinkpy/windowing/joins/rows_by_slice.py",
        "            had_fired = self._fired.get(group, MIN_TIMESTAMP) >= window.max_timestamp()\n",
        "            had_fired = False\n",
        (JOINS_BEYOND_MEMORY,),
    ),
    Mutant(
        "a window of columns closes with what lies on disk",
        "flinkpy/windowing/slices/column_slices.py",
        "                found += self._of_slice(self._pieces(start, group) + held.get(group, []))\n",
        "                found += self._of_slice(held.get(group, []))\n",
        (BEYOND_MEMORY,),
    ),
    Mutant(
        "pieces of a log have their order behind a restore too",
        "flinkpy/state/slice_log.py",
        "        self._number = max((number for _, number, _ in restored), default=0)\n",
        "        self._number = 0\n",
        (JOINS_BEYOND_MEMORY,),
    ),
    Mutant(
        "a key over columns that came back from its way to disk is not written as it was",
        "flinkpy/operators/columnar/rows_on_disk.py",
        "                self._leaving.is_gone[places] = True\n",
        "                pass\n",
        ("tests/relational/test_changing_groups.py",),
    ),
    Mutant(
        "keys over columns that are not written yet are part of a checkpoint",
        "flinkpy/operators/columnar/rows_on_disk.py",
        "        if leaving is None:\n            return {}\n",
        "        if True:\n            return {}\n",
        ("tests/operators/test_columns_beyond_memory.py",),
    ),
    Mutant(
        "entries of the database end where their range ends",
        "flinkpy/state/rocksdb/database.py",
        "        if entry[0] >= end:\n",
        "        if entry[0] >= end + bytes([255]):\n",
        ("tests/state/test_timed_entries.py",),
    ),
    Mutant(
        "a timer of the moment that is drained has one place",
        "flinkpy/windowing/general/per_window/far_window_timers.py",
        "        if moment == far.draining:\n            far.remove(",
        "        if False:\n            far.remove(",
        ("tests/state/test_far_timers.py",),
    ),
    Mutant(
        "timers that are not written yet are part of a checkpoint",
        "flinkpy/state/far_timers.py",
        "        return list(self._unwritten)\n",
        "        return []\n",
        ("tests/state/test_far_timers.py",),
    ),
    Mutant(
        "a value that was removed is not read again from disk",
        "flinkpy/state/held_values.py",
        "        if key in self.gone:\n",
        "        if False:\n",
        (BEYOND_MEMORY,),
    ),
    Mutant(
        "arrays for which memory has no room lie in files",
        "flinkpy/operators/columnar/array_memory.py",
        "        if self.used + size > self._limit:\n",
        "        if False:\n",
        ("tests/operators/test_array_memory.py", "tests/relational/test_what_finds_rows.py"),
    ),
    Mutant(
        "rows that come back from chunks are those of the subtask's key groups",
        "flinkpy/state/snapshots/chunked_regions.py",
        "            mine = (of_rows >= self.groups.start) & (of_rows < self.groups.stop)\n",
        "            mine = of_rows >= 0\n",
        ("tests/relational/test_savepoints_of_joins.py",),
    ),
    Mutant(
        "rows of a log that take others back do so after a restart too",
        "flinkpy/relational/ranks/changing_rank.py",
        "        self._takes_back.put(rows, takes_back, kept.store.size)\n",
        "        self._takes_back.put(rows, takes_back & False, kept.store.size)\n",
        ("tests/relational/test_changing_rank.py",),
    ),
    Mutant(
        "state of which the end is missing is refused",
        "flinkpy/state/snapshots/keyed_snapshots.py",
        "            return groups if length == len(groups) and start == len(data) else None\n",
        "            return groups\n",
        ("tests/state/test_snapshots.py",),
    ),
    Mutant(
        "an index that another backend saved is not taken for the one of now",
        "flinkpy/operators/process/expiries.py",
        "        backend.register_region(name, dict)\n",
        "",
        ("tests/operators/test_interval_join_beyond_memory.py",),
    ),
    Mutant(
        "records that have met do not meet again when they come from a file",
        "flinkpy/operators/process/spilled_joins.py",
        "[side + JOINED] * count",
        "[side] * count",
        ("tests/operators/test_interval_joins_that_spill.py",),
    ),
    Mutant(
        "windows that share records on their way to a file do not change them",
        "flinkpy/windowing/slices/slices_in_files.py",
        "        if copy is None or not survives:\n",
        "        if True:\n",
        ("tests/windowing/test_slices_that_spill.py",),
    ),
    Mutant(
        "changes of one subtask are written by one",
        "flinkpy/table/factories/written_streams.py",
        "            parallelism = here\n",
        "            parallelism = None if here else here\n",
        ("tests/table/translation/test_order_of_changes.py",),
    ),
    # -- memory ------------------------------------------------------------------------------------
    Mutant(
        "sources rest from 90 % of the memory on, and not later",
        "flinkpy/runtime/memory/memory_levels.py",
        "LevelRule(MemoryLevel.RESTING, 0.90, 0.85)",
        "LevelRule(MemoryLevel.RESTING, 0.95, 0.85)",
        (LEVELS,),
    ),
    Mutant(
        "sources that rest read on when there is room again, not at the first byte",
        "flinkpy/runtime/memory/memory_levels.py",
        "rule.ends if rule.level in self._active else rule.begins",
        "rule.begins",
        (LEVELS,),
    ),
    Mutant(
        "sources that rest in vain end with a failure",
        "flinkpy/runtime/memory/memory_levels.py",
        "and not waits_in_vain:",
        "or waits_in_vain:",
        (LEVELS,),
    ),
    Mutant(
        "the task that grew most fails, not the one that has most",
        "flinkpy/runtime/memory_relief.py",
        "key=lambda each: (grown[each], _held_by(each))",
        "key=_held_by",
        ("tests/runtime/memory/test_memory_relief.py",),
    ),
    Mutant(
        "an operator reserves no more than its share",
        "flinkpy/runtime/memory/memory_manager.py",
        "if held + size > owner.share or self._sum + size > self.size:",
        "if self._sum + size > self.size:",
        (LEDGER,),
    ),
    Mutant(
        "what an operator has not given back is free for others when its task has ended",
        "flinkpy/runtime/memory/memory_manager.py",
        "            self._sum -= leaked\n",
        "",
        (LEDGER,),
    ),
    Mutant(
        "only kinds that a slot contains share its memory",
        "flinkpy/graph/resources.py",
        "for each, used in self.weights.items() if used",
        "for each in of_kinds",
        (LEDGER,),
    ),
    Mutant(
        "stages of a batch job that wait for each other do not share a slot's memory",
        "flinkpy/graph/job_graph_generator.py",
        "            and vertex.id not in awaited[other.id]\n",
        "",
        (IDS,),
    ),
)
