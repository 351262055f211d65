"""No operator keeps state that a checkpoint does not know. Whatever an operator changes after it
was opened stands here, with what keeps it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flinkpy.operators.base import StreamOperator
from tests.house_files import trees
from tests.operators.test_every_operator import operators_of

LIFE = {
    "__init__",
    "setup",
    "initialize_state",
    "open",
    "close",
    "__getstate__",
    "__setstate__",
    "set_listener",
}
CHANGES = {
    "append",
    "appendleft",
    "extend",
    "add",
    "update",
    "pop",
    "popleft",
    "clear",
    "setdefault",
    "insert",
    "remove",
    "discard",
    "put",
}

REGION = "a region, or made again from one"
OPERATOR_STATE = "operator state"
FROM_INPUT = "made from the types of the records that come"
CONTEXT = "made once, before the first record"
COUNT = "a count for people"
BUILT = "set while the program is built"
NOTHING = "nothing that a result depends on"
AT_ITS_END = "an attempt whose input ends learns it anew"
BATCH = "in batch jobs only, which take no checkpoints"
TIME = "time begins anew with the records, as in Flink; operators behind keep theirs"
LOOP = "in loops only, which are refused with checkpoints"

KEPT: dict[str, dict[str, str]] = {
    "AggregatesOfAllOperator": {"_firsts": REGION, "_is_stamped": BATCH},
    "AlignColumnsOperator": {"_select": FROM_INPUT, "_result": FROM_INPUT},
    "AlignedJoinOperator": {
        "_slices": REGION,
        "_disk": REGION,
        "_frozen_before": NOTHING,
        "_copies": FROM_INPUT,
        "_spilled": BATCH,
        "_form": BATCH,
    },
    "AsyncWaitOperator": {
        "_saved": OPERATOR_STATE,
        "_waiting": OPERATOR_STATE,
        "_begun": OPERATOR_STATE,
        "_finishing": NOTHING,
        "error_policy": BUILT,
    },
    "BatchKeyed": {"groups": BATCH},
    "BatchOperator": {"_end_of_time": BATCH, "_rest": BATCH},
    "CacheWriter": {"_file": "a file of this attempt, which is used whole or not at all"},
    "ColumnOperator": {"_schema": FROM_INPUT},
    "ColumnarJoinOperator": {
        "_held": REGION,
        "_joined": FROM_INPUT,
        "_schemas": FROM_INPUT,
        "_memory": BATCH,
    },
    "CompilesCalcs": {"_compiled": NOTHING},
    "FirstRowsOperator": {"_seen": REGION},
    "GatherRowsOperator": dict.fromkeys(
        ("_held", "_rows", "_since_ms"), "what is given in front of the barrier"
    ),
    "GivesAtEnd": {"_end_of_time": BATCH, "_rest": BATCH},
    "GlobalCommitterOperator": {"_pending": OPERATOR_STATE},
    "SinkOperator": {"_committer": CONTEXT, "_pending": OPERATOR_STATE},
    "WritingOperator": {
        "_writer_states": OPERATOR_STATE,
        "_ending": AT_ITS_END,
        "_finished": AT_ITS_END,
    },
    "IntervalRowsJoinOperator": {"_index": REGION, "_sides": REGION},
    "OverInTimeOperator": {"_index": REGION},
    "MatchingOperator": {
        "_disk": REGION,
        "_pending": REGION,
        "_watermark": TIME,
        "error_policy": BUILT,
    },
    "ColumnPatternOperator": {"_disk": REGION, "_own": BUILT, "_waiting": REGION},
    "RowsInTime": {"_waiting": REGION},
    "JoinTableOperator": {"_joined": FROM_INPUT},
    "LastResultsOperator": {
        "_rest": "what the wrapped operator has at its end, where no checkpoint begins"
    },
    "DropsLateRecords": {"late_records_dropped": COUNT},
    "FilterColumnsOperator": {"_evaluate": FROM_INPUT},
    "GroupAggregateOperator": dict.fromkeys(
        ("_calls", "_disk", "_expiry", "_groups", "_rows"), REGION
    ),
    "HashAggregateOperator": {"_groups": BATCH},
    "HashJoinOperator": dict.fromkeys(("_is_sealed", "_joined", "_waiting"), BATCH),
    "SortOperator": {"_sorted": BATCH},
    "HoldsWindows": {"_held": REGION},
    "IntervalJoinOperator": {
        "_spilled": BATCH,
        "_buffers": REGION,
        "_expiries": REGION,
        "_watermark": "the time of the input, which comes again",
        "_copies": FROM_INPUT,
        "_process": FROM_INPUT,
    },
    "IterationEntryOperator": {"_channel": LOOP},
    "IterationTailOperator": {"_channel": LOOP, "_records": LOOP},
    "KeepsSessions": {"_now": REGION, "_sessions": REGION},
    "KeyedAggregateOperator": {"_shape": FROM_INPUT, "_special": FROM_INPUT},
    "KeyedAggregatesOperator": {
        "_accumulators": REGION,
        "_firsts": REGION,
        "_as_first": FROM_INPUT,
        "_evaluates": FROM_INPUT,
        "_row": FROM_INPUT,
        "_shown": FROM_INPUT,
        "_types": FROM_INPUT,
    },
    "KeyedBroadcastProcessOperator": {
        "_broadcast_context": CONTEXT,
        "_process_context": CONTEXT,
        "_timer_context": CONTEXT,
    },
    "KeyedColumnAggregateOperator": {
        "_accumulators": REGION,
        "_firsts": REGION,
        "_as_first": FROM_INPUT,
        "_at": FROM_INPUT,
        "_kept": FROM_INPUT,
        "_result": FROM_INPUT,
    },
    "WorksAtItsEnd": {"_rest": "steps at the end, where no checkpoint begins"},
    "FullWindowOperator": dict.fromkeys(("_end_of_time", "_rest", "call"), BATCH),
    "KeyedColumnsOperator": {
        **dict.fromkeys(("_accumulators", "_firsts", "_index"), REGION),
        **dict.fromkeys(("_most_waiting", "_places", "_stamps", "_waiting_bytes"), BATCH),
        "_schema": FROM_INPUT,
        "_is_stamped": BATCH,
        "_waiting": BATCH,
        "_waiting_records": BATCH,
    },
    "OneRowOfKey": {"_keys": BATCH},
    "KeyedFunctionOperator": {"_process_context": CONTEXT, "_timer_context": CONTEXT},
    "KeyedOperator": {"_loops": FROM_INPUT, "_select": FROM_INPUT, "pairs": FROM_INPUT},
    "KeyedReduceOperator": {"_careful": FROM_INPUT},
    "ChangingRankOperator": dict.fromkeys(
        ("_kept", "_limits", "_sort_keys", "_takes_back", "_upserts"), REGION
    ),
    "LimitRowsOperator": {"_dropped": OPERATOR_STATE, "_given": OPERATOR_STATE},
    "LocalAggregatesOperator": {"_aggregates": FROM_INPUT, "_evaluates": FROM_INPUT},
    "LocalLimitOperator": {
        "_left": (
            "operator state of a LimitOperator; one in front of that passes on as many again, and "
            "they are dropped there"
        )
    },
    "LocalSliceOperator": {"_was_idle": NOTHING},
    "OverAggregateOperator": {"_rows": BATCH},
    "RankOperator": dict.fromkeys(("_best", "_spilled"), BATCH),
    "PartialAggregatesOperator": dict.fromkeys(("_held", "_waiting", "_waiting_rows"), REGION),
    "SelectColumnsOperator": {"_select": FROM_INPUT, "_result": FROM_INPUT},
    "SliceOperator": {"store": REGION, "_ahead": REGION, "_groups_ahead": REGION},
    "TimestampsAndWatermarksOperator": {"_timer": NOTHING, "zone": FROM_INPUT},
    "CalcAtWatermarkOperator": {"_watermark": TIME},
    "WatermarkRowsOperator": {"_watermark": TIME},
    "WindowJoinOperator": {"_call": FROM_INPUT, "_loops": FROM_INPUT},
    "WindowOperator": dict.fromkeys(
        (
            "_assigner_context",
            "_contents",
            "_fast_path",
            "_firing",
            "_is_default",
            "_trigger",
            "_trigger_state",
            "_window_state",
            "_windows",
        ),
        CONTEXT,
    )
    | {"error_policy": BUILT},
}


def changed_in(kind: type) -> set[str]:
    """The attributes of ``self`` that the class's own methods assign or change after ``open``."""
    found: set[str] = set()
    (own,) = (
        node
        for node in ast.walk(trees()[kind.__module__])
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    for method in ast.walk(own):
        if isinstance(method, ast.FunctionDef) and method.name not in LIFE:
            for node in ast.walk(method):
                found.update(
                    name
                    for target in _targets(node)
                    if (name := _attribute_of_self(target)) is not None
                )
    return found


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        yield node.target
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CHANGES
    ):
        yield node.func.value


def _attribute_of_self(target: ast.expr) -> str | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    is_own = (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )
    return target.attr if is_own and isinstance(target, ast.Attribute) else None


def test_what_an_operator_changes_is_known_to_checkpoints() -> None:
    bases = {
        base
        for kind in operators_of(StreamOperator)
        for base in kind.__mro__
        if base.__module__.startswith("flinkpy.")
    }
    found = {base.__name__: attributes for base in bases if (attributes := changed_in(base))}
    assert {name: sorted(attributes) for name, attributes in found.items()} == {
        name: sorted(kept) for name, kept in KEPT.items()
    }, (
        "say in KEPT what keeps it: a region (KeyedStateBackend.register_region), "
        "operator state, or why a restored operator does not need it"
    )
