"""Programs with a mistake are refused while they are built, with what to change and the line of the
program that is wrong.

Each mistake stands in a program of its own, whose last line it is.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError
from tests.waiting import PATIENCE_S

PROGRAM = """\
from datetime import timedelta
from flinkpy.common import Configuration, Duration, Row, Time, Types, WatermarkStrategy
from flinkpy.datastream import *
from flinkpy.datastream.functions import *
from flinkpy.datastream.state import *
from flinkpy.datastream.window import *
from flinkpy.datastream.async_retry_strategies import *

class OfKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value

class Plain(ProcessFunction):
    def process_element(self, value, ctx):
        yield value

class Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value
    def process_broadcast_element(self, value, ctx):
        pass

class KeyedRules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value
    def process_broadcast_element(self, value, ctx):
        pass

class OfWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key

async def lookup(value):
    return [value]

class AsyncOnly:
    async def process_element(self, value, ctx):
        return [value]

def twice(value):
    yield value
    yield value

env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded", "parallelism.default": 1})
raw = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
stream = raw.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v: v[1]))
keyed = stream.key_by(lambda v: v[0])
ten = TumblingEventTimeWindows.of(Time.seconds(10))
by_clock = TumblingProcessingTimeWindows.of(Time.seconds(10))
rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
"""

LISTED = "Types.LIST(Types.INT())"
WINDOWS = [
    (
        "EventTimeSessionWindows.with_gap(Time.seconds(-1))",
        r"the gap \(milliseconds\) is a whole number from 1 on, this is -1000",
    ),
    ("EventTimeSessionWindows.with_gap(Time.seconds(0))", "from 1 on, this is 0"),
    (
        "EventTimeSessionWindows.with_gap(10)",
        "the session gap is a Time or a Duration, such as Time.seconds",
    ),
    ("ProcessingTimeSessionWindows.with_gap(timedelta(seconds=-1))", "from 1 on, this is -1000"),
    (
        "EventTimeSessionWindows.with_dynamic_gap(3)",
        "takes a SessionWindowTimeGapExtractor or a function of the record, this is 3",
    ),
    (
        "DynamicProcessingTimeSessionWindows(SessionWindowTimeGapExtractor)",
        "takes a SessionWindowTimeGapExtractor or a function",
    ),
    (
        "TumblingEventTimeWindows.of(Time.seconds(0))",
        r"the size \(milliseconds\) is a whole number from 1 on, this is 0",
    ),
    ("TumblingEventTimeWindows.of(Duration.of_seconds(-5))", "this is -5000"),
    ("TumblingProcessingTimeWindows.of(5)", "the window's size is a Time or a Duration"),
    (
        "TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(5))",
        r"the offset \(5000 ms\) must be smaller than the size \(5000 ms\)",
    ),
    (
        "TumblingProcessingTimeWindows.of(Time.seconds(5), Time.seconds(-6))",
        r"the offset \(-6000 ms\) must be smaller than the size",
    ),
    (
        "SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(0))",
        r"the slide \(milliseconds\) is a whole number from 1 on",
    ),
    (
        "SlidingProcessingTimeWindows.of(Time.seconds(5), Time.seconds(-1))",
        "the slide .* this is -1000",
    ),
    ("SlidingEventTimeWindows.of(Time.seconds(0), Time.seconds(1))", "the size .* this is 0"),
    (
        "SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1), Time.seconds(2))",
        r"must be smaller than the slide \(1000 ms\)",
    ),
    ("Time.seconds('a')", "a Time is made of a number, this is 'a'"),
    ("Time.milliseconds(0.5)", "a whole number of milliseconds, this is 0.5"),
    ("keyed.count_window(0)", "a count window's size is a whole number from 1 on, this is 0"),
    ("keyed.count_window(3, -1)", "the slide is a whole number of records"),
    ("keyed.window(3)", "takes a window assigner"),
    ("keyed.window(TumblingEventTimeWindows)", "not a class: write TumblingEventTimeWindows.of"),
    ("keyed.window(ten).allowed_lateness(-1)", "the lateness cannot be negative, this is -1 ms"),
    (
        "keyed.window(ten).allowed_lateness(Time.seconds(-1))",
        "the lateness cannot be negative, this is -1000 ms",
    ),
    ("keyed.window(ten).allowed_lateness(1.5)", "takes milliseconds or a Time"),
    ("keyed.window(ten).side_output_late_data('late')", "takes an OutputTag"),
    ("keyed.window(ten).reduce(lambda a: a)", "calls its function with 2 arguments"),
    ("keyed.window(ten).process(OfKey())", "takes a ProcessWindowFunction here"),
    ("keyed.window(ten).process(OfWindow)", r"write OfWindow\(\)"),
    ("keyed.window(ten).apply(OfWindow())", "takes a WindowFunction here"),
    ("keyed.window(ten).aggregate(lambda a, b: a)", "takes an AggregateFunction object"),
    ("keyed.window(ten).sum(7)", r"sum\(7\): the records have 2 fields"),
    (
        "keyed.window(ten).sum('amount')",
        (
            r"sum\('amount'\): the records are tuples of 2 fields, which have no names: say a "
            r"position"
        ),
    ),
    ("keyed.window(ten).sum(0)", r"sum needs numbers, and this is a field of Types.STRING\(\)"),
    (
        "stream.window_all(ten).process(OfWindow())",
        "takes a ProcessAllWindowFunction here.*is for windows of a keyed stream",
    ),
    (
        "raw.key_by(lambda v: v[0]).window(ten)",
        (
            r"needs records with timestamps.*call assign_timestamps_and_watermarks\(\.\.\.\) "
            r"before"
        ),
    ),
    (
        "env.from_collection([1]).window_all(EventTimeSessionWindows.with_gap(Time.seconds(1)))",
        "needs records with timestamps",
    ),
    (
        (
            "raw.join(stream).where(lambda v: v).equal_to(lambda v: v).window(ten).apply(lambda "
            "a, b: a)"
        ),
        "records with timestamps",
    ),
    ("stream.join(stream).where(3)", "takes a function"),
    ("stream.join(stream).where(lambda v: v).window(ten)", "equal_to"),
    (
        "stream.join(stream).where(lambda v: v).equal_to(lambda v: v).apply(lambda a, b: a)",
        "window",
    ),
    ("stream.co_group(3)", "takes a stream"),
]
TRIGGERS_AND_EVICTORS = [
    ("keyed.window(ten).trigger(CountTrigger)", "takes a Trigger object"),
    ("keyed.window(ten).trigger(CountEvictor.of(1))", "takes a Trigger object"),
    ("keyed.window(ten).evictor(CountEvictor)", "takes an Evictor object"),
    ("keyed.window(ten).evictor(CountTrigger.of(1))", "takes an Evictor object"),
    (
        (
            "keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(1))).trigger(DeltaTrigger.of(1, "
            "lambda a, b: 1))"
        ),
        "merge, and .* cannot",
    ),
    (
        "CountTrigger.of(0)",
        "CountTrigger: the number of records is a whole number from 1 on, this is 0",
    ),
    (
        "ContinuousEventTimeTrigger.of(Time.seconds(0))",
        r"the interval \(milliseconds\) is a whole number from 1 on",
    ),
    ("ContinuousProcessingTimeTrigger.of(3)", "the interval is a Time or a Duration"),
    ("PurgingTrigger.of(3)", "takes a trigger, this is 3"),
    (
        "DeltaTrigger.of('far', lambda a, b: 1)",
        "DeltaTrigger: the threshold is a number, this is 'far'",
    ),
    ("DeltaTrigger.of(1, 2)", "a delta function takes an old and a new record"),
    ("CountEvictor.of(-1)", "the number of records kept is a whole number from 1 on, this is -1"),
    (
        "TimeEvictor.of(Time.seconds(-1))",
        r"the time kept \(milliseconds\) is a whole number from 1 on",
    ),
    ("TimeEvictor.of(5)", "the time kept is a Time or a Duration"),
    ("DeltaEvictor.of('far', lambda a, b: 1)", "DeltaEvictor: the threshold is a number"),
    ("DeltaEvictor.of(1, None)", "None cannot be called"),
]
KEYS = [
    (
        f"raw.key_by(lambda v: [v], key_type={LISTED})",
        r"a value of Types.LIST\(Types.INT\(\)\) cannot be a key, as it cannot be hashed",
    ),
    (
        "raw.key_by(lambda v: {}, Types.MAP(Types.INT(), Types.INT()))",
        "Types.MAP.* cannot be a key",
    ),
    (
        "raw.key_by(lambda v: v, Types.OBJECT_ARRAY(Types.INT()))",
        "Types.OBJECT_ARRAY.* cannot be a key",
    ),
    (
        "raw.key_by(lambda v: v, Types.PRIMITIVE_ARRAY(Types.INT()))",
        "Types.PRIMITIVE_ARRAY.* cannot be a key",
    ),
    (
        f"raw.key_by(lambda v: v, Types.TUPLE([Types.INT(), {LISTED}]))",
        r"Types.LIST\(Types.INT\(\)\) \(in Types.TUPLE.*\) cannot be a key",
    ),
    (
        f"env.from_collection([Row([1])], Types.ROW_NAMED(['xs'], [{LISTED}])).key_by('xs')",
        "field 'xs': a value of Types.LIST.* cannot be a key",
    ),
    (
        "env.from_collection([Row(1)], Types.ROW_NAMED(['x'], [Types.INT()])).key_by('y')",
        "the rows have no field 'y'; they have x",
    ),
    ("stream.join(stream).where(lambda v: [v], Types.LIST(Types.INT()))", "cannot be a key"),
    ("raw.key_by(3)", "takes a function"),
    ("raw.key_by(lambda a, b: a)", "with 1 argument"),
    ("raw.key_by(lambda v: v, int)", "one function, or one or several names"),
    ("raw.key_by(lambda v: v, key_type=int)", "is no type"),
]
JOINS = [
    (
        "keyed.interval_join(keyed).between(Time.seconds(1), Time.seconds(-1))",
        r"the lower bound \(1000 ms\) is above the upper bound \(-1000 ms\)",
    ),
    ("keyed.interval_join(keyed).between(1, 2)", "the lower bound is a Time or a Duration"),
    (
        "keyed.interval_join(stream)",
        r"takes a keyed stream: call key_by\(\.\.\.\) on the other stream too",
    ),
    ("keyed.interval_join(keyed).process(OfKey())", "say the interval first"),
    (
        (
            "keyed.interval_join(keyed).in_processing_time().between(Time.seconds(-1), "
            "Time.seconds(1))"
        ),
        "event time only",
    ),
    (
        ("keyed.interval_join(keyed).between(Time.seconds(-1), Time.seconds(1)).process(OfKey())"),
        "with 3 arguments",
    ),
    (
        (
            "keyed.interval_join(keyed).between(Time.seconds(1), "
            "Time.seconds(1)).upper_bound_exclusive().process(lambda a, b, c: [1])"
        ),
        "nothing remains of the interval",
    ),
    (
        (
            "keyed.interval_join(keyed).between(Time.seconds(0), "
            "Time.seconds(1)).side_output_left_late_data('x')"
        ),
        "takes an OutputTag",
    ),
    (
        (
            "raw.key_by(lambda v: v[0]).interval_join(keyed).between(Time.seconds(-1), "
            "Time.seconds(1))"
        ),
        "those of the left stream have none",
    ),
]
ASYNC = [
    (
        "AsyncDataStream.unordered_wait(stream, lookup, Time.seconds(-1))",
        "the timeout cannot be negative",
    ),
    ("AsyncDataStream.unordered_wait(stream, lookup, '1s')", "the timeout is a Time"),
    (
        "AsyncDataStream.ordered_wait(stream, lookup, Time.seconds(1), 0)",
        "capacity .* a whole number from 1 on; this is 0",
    ),
    (
        "AsyncDataStream.ordered_wait(stream, lambda v: [v], Time.seconds(1))",
        "is not asynchronous: declare it with 'async def'",
    ),
    ("AsyncDataStream.ordered_wait(3, lookup, Time.seconds(1))", "takes a stream first"),
    (
        "AsyncDataStream.unordered_wait_with_retry(stream, lookup, Time.seconds(1), 3)",
        "the retry strategy is an AsyncRetryStrategy",
    ),
    (
        (
            "AsyncDataStream.ordered_wait_with_retry(stream, lookup, 0, "
            "AsyncRetryStrategy.fixed_delay(3, 100))"
        ),
        "retries need a timeout",
    ),
    (
        "AsyncRetryStrategy.fixed_delay(-1, 100)",
        "max_attempts must be a number greater than zero, this is -1",
    ),
    (
        "AsyncRetryStrategy.exponential_backoff(3, 0, 10, 2.0)",
        "initial_delay must be a number greater than zero",
    ),
    ("AsyncRetryStrategy.fixed_delay(3, 100, 5)", "a retry predicate is a function"),
]
CONNECTED = [
    ("stream.broadcast(ValueStateDescriptor('a', Types.INT()))", "takes MapStateDescriptors"),
    (
        "stream.broadcast(rules, MapStateDescriptor('rules', Types.INT(), Types.INT()))",
        "two of the descriptors are named 'rules'",
    ),
    (
        "stream.connect(stream.broadcast(rules)).process(KeyedRules())",
        "takes a BroadcastProcessFunction here, as the stream is not keyed",
    ),
    (
        "keyed.connect(stream.broadcast(rules)).process(Rules())",
        "takes a KeyedBroadcastProcessFunction here, as the stream is keyed",
    ),
    ("stream.connect(stream.broadcast(rules)).process(Rules)", r"write Rules\(\)"),
    ("stream.connect(3)", "takes a stream"),
    ("keyed.connect(keyed).process(OfKey())", "has no process_element1"),
    ("stream.iterate(-1)", "takes a Duration or milliseconds from 0 on"),
    ("stream.iterate().close_with(3)", r"close_with\(\) takes a stream"),
    (
        "stream.iterate().close_with(raw.map(lambda v: v))",
        "takes a stream made from this iteration",
    ),
    ("stream.union(raw, 3)", "takes streams"),
    (
        "stream.process(lambda value, ctx: [value])",
        "takes a ProcessFunction object, .* is a plain function.*or call map",
    ),
    (
        "keyed.process(lambda value, ctx: [value])",
        "takes a KeyedProcessFunction object, .* is a plain function",
    ),
    ("keyed.process(Plain())", "takes a KeyedProcessFunction; Plain is a ProcessFunction"),
    (
        "stream.process(OfKey())",
        (
            r"OfKey is a KeyedProcessFunction, and this stream has no keys: call key_by\(\.\.\.\) "
            r"before"
        ),
    ),
    ("keyed.map(OfKey())", "takes a MapFunction"),
    ("keyed.sum(7)", "the records have 2 fields"),
    ("keyed.max_by('amount')", "the records are tuples of 2 fields, which have no names"),
    ("keyed.process(OfKey(), Types.STRING)", r"call it: Types.STRING\(\)|is no type"),
    (
        (
            "made = stream.process(Plain()); made.get_side_output(OutputTag('x', Types.INT())); "
            "made.get_side_output(OutputTag('x', Types.STRING()))"
        ),
        r"the side output 'x' was asked for as Types.INT\(\) before, and now as Types.STRING\(\)",
    ),
    ("stream.map(lambda v: v).get_side_output('x')", "takes an OutputTag"),
    ("OutputTag('')", "text that is not empty"),
    ("OutputTag('a', int)", "one of Types"),
]
TIME = [
    (
        "WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(-1))",
        "out-of-orderness cannot be negative",
    ),
    ("WatermarkStrategy.for_bounded_out_of_orderness(5)", "takes a Duration"),
    (
        "WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(0))",
        "the idle timeout must be positive",
    ),
    (
        "WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(3)",
        "takes a TimestampAssigner, a function",
    ),
    (
        (
            "WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment('', "
            "Duration.of_seconds(1))"
        ),
        "a watermark group has a name",
    ),
    ("WatermarkStrategy.for_generator(int)", "int is no WatermarkGenerator"),
    (
        "env.get_config().set_auto_watermark_interval(-1)",
        "the interval is in milliseconds from 0 on, this is -1",
    ),
    (
        (
            "raw.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda "
            "a, b, c: 1))"
        ),
        "the timestamp assigner is called with the record, or the record and its timestamp so far",
    ),
    (
        (
            "raw.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda: "
            "1))"
        ),
        "takes neither",
    ),
    ("raw.assign_timestamps_and_watermarks(5)", "takes a WatermarkStrategy"),
]
STATE_AND_TYPES = [
    ("ValueStateDescriptor('', Types.INT())", "a state needs a name of its own"),
    ("ValueStateDescriptor('a', int)", "is no type; use one of Types"),
    ("ListStateDescriptor('a', 'int')", "is no type"),
    (
        "ReducingStateDescriptor('a', 3, Types.INT())",
        "a ReduceFunction or a function of two values",
    ),
    (
        "AggregatingStateDescriptor('a', lambda a, b: a, Types.INT())",
        "an AggregateFunction object is needed",
    ),
    (
        "StateTtlConfig.new_builder(Time.seconds(0)).build()",
        "a time to live is longer than nothing",
    ),
    ("StateTtlConfig.new_builder(5).build()", "a time to live is a Duration"),
    (
        "StateTtlConfig.new_builder(Time.seconds(1)).set_update_type('OnRead')",
        "a UpdateType is needed, such as StateTtlConfig.UpdateType",
    ),
    (
        "StateTtlConfig.new_builder(Time.seconds(1)).set_state_visibility(True)",
        "a StateVisibility is needed",
    ),
    ("ValueStateDescriptor('a', Types.INT()).enable_time_to_live(5)", "a StateTtlConfig is needed"),
    ("Types.ROW(3)", "takes a list of types"),
    ("Types.TUPLE(Types.INT())", "takes a list of types"),
    ("Types.ROW([int])", "takes types, such as"),
    ("Types.LIST(Types.INT)", r"call it: Types.INT\(\)"),
    ("Types.ROW_NAMED(['a'], [Types.INT(), Types.INT()])", "1 names for 2 types"),
    ("env.set_state_backend('rocksdb')", "HashMapStateBackend"),
    ("env.set_state_backend(HashMapStateBackend)", "HashMapStateBackend"),
    ("env.from_collection([1, 'x'], Types.INT())", "value 1 is not of the declared type"),
    ("env.set_runtime_mode('BATCH')", "takes a RuntimeExecutionMode"),
]


SOURCES = [
    (
        "import pandas; env.from_collection(pandas.DataFrame({'a': [1]}))",
        r"takes records, this is a DataFrame: call from_pandas\(\)",
    ),
    (
        "import pyarrow; env.from_collection(pyarrow.record_batch({'a': [1]}))",
        r"a RecordBatch.*from_arrow\(\)|this is a RecordBatch",
    ),
    ("env.from_pandas([1])", "from_pandas takes a pandas frame, this is a list"),
    (
        "import pandas; env.from_pandas(pandas.DataFrame({'a': [1, 'x']}))",
        r"from_pandas: field 'a' holds 1 \(int\) and 'x' \(str\), and a column has one type",
    ),
    (
        "import pandas; env.from_pandas(pandas.DataFrame([[1, 2]], columns=['a', 'a']))",
        "from_pandas: Duplicate column names found",
    ),
    ("env.from_sequence('1', 5)", "from one whole number to another, this is '1'"),
    ("env.from_sequence(1, 2.5)", "from one whole number to another, this is 2.5"),
    ("env.from_parquet(None)", "a path is text or a Path, this is None"),
    ("env.from_csv([3])", "a path is text or a Path, this is 3"),
    ("env.read_text_file(None)", "a path is text or a Path, this is None"),
]
THAT_NEVER_RUN = [
    (
        "raw.map(lookup)",
        (
            r"map\(\): lookup is declared with 'async def', and nothing here would await it; "
            r"AsyncDataStream"
        ),
    ),
    ("raw.filter(lookup)", r"filter\(\): lookup is declared with 'async def'"),
    ("raw.key_by(lookup)", r"key_by\(\): lookup is declared with 'async def'"),
    (
        (
            "raw.process(type('P', (ProcessFunction,), {'process_element': "
            "AsyncOnly.process_element})())"
        ),
        "process_element is declared with 'async def'",
    ),
    (
        "raw.map(twice)",
        (
            r"map\(\) takes one value from its function, twice is a generator: return instead of "
            r"yield, or call flat_map"
        ),
    ),
    ("raw.filter(twice)", r"filter\(\) takes one value from its function, twice is a generator"),
    ("raw.key_by(twice)", r"key_by\(\) takes one value"),
    (
        (
            "raw.add_sink(type('S', (SinkFunction,), {'invoke': lambda self, value: (yield "
            "value)})())"
        ),
        r"add_sink\(\) takes one value",
    ),
]


def run(folder: Path, text: str) -> int:
    """Runs the program as ``python job.py`` would; gives the number of its last line."""
    path = folder / "job.py"
    path.write_text(text)
    exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
    return text.count("\n")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        *WINDOWS,
        *TRIGGERS_AND_EVICTORS,
        *KEYS,
        *JOINS,
        *ASYNC,
        *CONNECTED,
        *TIME,
        *STATE_AND_TYPES,
        *SOURCES,
        *THAT_NEVER_RUN,
    ],
)
def test_a_mistake_is_refused_with_what_to_change_and_the_line_of_the_program(
    tmp_path: Path, mistake: str, message: str
) -> None:
    text = f"{PROGRAM}{mistake}\n"
    with pytest.raises((ProgramError, ConfigurationError)) as caught:
        run(tmp_path, text)
    where = f"{tmp_path / 'job.py'}:{text.count(chr(10))}: "
    assert str(caught.value).startswith(where)
    assert str(caught.value).count(str(tmp_path)) == 1  # said once
    assert re.search(message, str(caught.value))


def test_the_line_is_that_of_the_call_also_where_a_helper_of_the_program_makes_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(ProgramError, match=rf"job\.py:{PROGRAM.count(chr(10)) + 2}: "):
        run(
            tmp_path,
            PROGRAM
            + (
                "def windows(gap):\n    return "
                "EventTimeSessionWindows.with_gap(gap)\nkeyed.window(windows(Time.seconds(-1)))\n"
            ),
        )


def test_python_prints_the_mistake_with_its_line(tmp_path: Path) -> None:
    text = (
        PROGRAM
        + "keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(-1))).sum(1).print()\nenv.execute()\n"
    )
    (tmp_path / "job.py").write_text(text)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "job.py")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert (
        f"{tmp_path / 'job.py'}:{text.count(chr(10)) - 1}: EventTimeSessionWindows: the gap "
        "(milliseconds) is a whole number"
    ) in done.stderr


@pytest.mark.parametrize(
    "allowed",
    [
        # gaps between windows, as in Flink
        "keyed.window(SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(5))).sum(1)",
        "keyed.count_window(3, 5).sum(1)",
        "keyed.window(TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))).sum(1)",
        "keyed.window(TumblingEventTimeWindows.of(Time.seconds(0.5))).sum(1)",
        # knows no late records
        "keyed.window(by_clock).allowed_lateness(5).side_output_late_data(OutputTag('late')).sum(1)",
        "keyed.window(ten).trigger(ProcessingTimeTrigger.create()).sum(1)",
        "raw.key_by(lambda v: v[0]).window(by_clock).sum(1)",
        "raw.key_by(lambda v: b'', Types.PRIMITIVE_ARRAY(Types.BYTE())).sum(1)",
        "raw.key_by(lambda v: Row(1), Types.ROW([Types.INT()])).sum(1)",
        "keyed.interval_join(keyed).between(Time.seconds(1), "
        "Time.seconds(1)).process(type('J', (ProcessJoinFunction,), "
        "{'process_element': lambda self, a, b, c: [a]})())",
    ],
)
def test_what_flink_allows_is_no_mistake(tmp_path: Path, allowed: str) -> None:
    run(tmp_path, f"{PROGRAM}{allowed}\n")


# -- what only running can show --------------------------------------------------------------------

IN_OPEN = """\
class Mistaken(KeyedProcessFunction):
    def open(self, runtime_context):
        self.first = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))
        self.second = runtime_context.{call}
    def process_element(self, value, ctx):
        yield value
keyed.process(Mistaken()).print()
env.execute()
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            'get_state(ValueStateDescriptor("seen", Types.STRING()))',
            "'seen'.*Types.INT.*Types.STRING|'seen'.*Types.STRING.*Types.INT",
        ),
        (
            'get_list_state(ListStateDescriptor("seen", Types.INT()))',
            "'seen'.*value state.*list state|'seen'.*list state.*value state",
        ),
        (
            'get_state(ListStateDescriptor("other", Types.INT()))',
            r"get_state\(\) takes a ValueStateDescriptor",
        ),
        ('get_state(ValueStateDescriptor("", Types.INT()))', "a state needs a name"),
    ],
)
def test_a_descriptor_used_wrongly_in_open_ends_the_job_with_the_programs_line(
    tmp_path: Path, call: str, message: str
) -> None:
    with pytest.raises((JobExecutionError, ProgramError)) as caught:
        run(tmp_path, PROGRAM + IN_OPEN.format(call=call))
    text = str(caught.value)
    assert re.search(message, text, re.DOTALL), text
    line = PROGRAM.count("\n") + 4
    assert re.search(rf'job\.py:{line}\b|job\.py", line {line}\b', text), text


@pytest.mark.parametrize(
    ("parallelism", "statement", "message"),
    [
        (
            1,
            "raw.key_by(lambda v: [v[0]]).sum(1).print()",
            (
                "unhashable type: 'list'; a key must be hashable: instead of a list or a "
                "dict use a "
                "tuple"
            ),
        ),
        (
            2,
            "raw.key_by(lambda v: [v[0]]).sum(1).print()",
            (
                "unhashable type: 'list'; a key must be hashable: instead of a list or a "
                "dict use a "
                "tuple"
            ),
        ),
        (1, "raw.key_by(lambda v: {}).process(OfKey()).print()", "unhashable type: 'dict'"),
        (2, "raw.key_by(lambda v: {}).process(OfKey()).print()", "unhashable type: 'dict'"),
        (2, "raw.key_by(lambda v: ([], 1)).process(OfKey()).print()", "list"),
        (
            2,
            "raw.key_by(lambda v: object()).process(OfKey()).print()",
            "a key of type object cannot be hashed the same way in every process",
        ),
        (2, "raw.key_by(lambda v: v[7]).process(OfKey()).print()", "IndexError"),
    ],
)
def test_a_key_that_cannot_be_hashed_ends_the_job_with_the_record(
    tmp_path: Path, parallelism: int, statement: str, message: str
) -> None:
    with pytest.raises(JobExecutionError, match=re.escape(message)) as caught:
        run(tmp_path, f"{PROGRAM}env.set_parallelism({parallelism})\n{statement}\nenv.execute()\n")
    assert "('a', 1)" in str(caught.value)


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("key", ["[v[0]]", "1 // (v[1] - 1)", "object()"])
@pytest.mark.parametrize(
    "consumer",
    [
        "map(lambda v: v).print()",
        "filter(lambda v: True).print()",
        "flat_map(lambda v: [v]).print()",
        "map(OfPlainClass()).print()",
        "add_sink(lambda v: None)",
        "print()",
    ],
)
def test_a_record_without_a_key_ends_the_job_also_before_a_function_that_reads_no_keys(
    tmp_path: Path, parallelism: int, key: str, consumer: str
) -> None:
    with pytest.raises(JobExecutionError) as caught:
        run(
            tmp_path,
            f"""{PROGRAM}
class OfPlainClass(MapFunction):
    def map(self, value):
        return value

env.set_parallelism({parallelism})
raw.key_by(lambda v: {key}).{consumer}
env.execute()
""",
        )
    assert "('a', 1)" in str(caught.value)


@pytest.mark.parametrize(
    "statement", ["raw.flat_map(lambda v: 1).print()", "raw.flat_map(len).print()"]
)
def test_a_function_of_many_results_that_returns_a_single_one_is_told_what_to_use(
    tmp_path: Path, statement: str
) -> None:
    with pytest.raises(
        JobExecutionError,
        match=(
            r"'int' object is not iterable; .* returns a list of them, or yields each; .* "
            r"map\(\)"
        ),
    ) as caught:
        run(tmp_path, f"{PROGRAM}{statement}\nenv.execute()\n")
    assert "on record ('a', 1)" in str(caught.value)


def test_what_the_users_own_line_raises_is_told_without_advice(tmp_path: Path) -> None:
    with pytest.raises(
        JobExecutionError, match=r"TypeError: 'int' object is not iterable\n.*job\.py"
    ):
        run(tmp_path, f"{PROGRAM}raw.map(lambda v: list(v[1])).print()\nenv.execute()\n")


def test_an_unbounded_source_in_batch_mode_is_refused_with_the_line_that_made_it(
    tmp_path: Path,
) -> None:
    text = (
        f"{PROGRAM}env.set_runtime_mode(RuntimeExecutionMode.BATCH)\nenv.socket_text_stream('localhost', "
        "1).print()\nenv.execute()\n"
    )
    with pytest.raises(
        ProgramError,
        match=(
            rf"BATCH needs bounded sources, but .*job\.py:{PROGRAM.count(chr(10)) + 2}.* never "
            r"ends"
        ),
    ):
        run(tmp_path, text)
