"""Word count: prints the most frequent words of a file, or the growing count of every word from a
socket.

    python examples/word_count.py [--input FILE] [--batch]
    nc -lk 9999                                          # in another terminal; type lines there
    python examples/word_count.py --host localhost --port 9999

Lines become words, words become (word, 1), and all pairs of one word go to one subtask, which adds
them up. A sum is emitted for every word read, so the last sum of each word is its count. With
--batch only this last sum is emitted."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from flinkpy.common import Types
from flinkpy.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

DATA = Path(__file__).parent / "data" / "river.txt"


def words(line: str) -> Iterator[str]:
    """The words of a line, in lower case."""
    for word in line.lower().split():
        yield word.strip(".,;:!?\"'()")


def running_counts(lines: DataStream) -> DataStream:
    """(word, count so far), for every word read."""
    return (
        lines.flat_map(words, output_type=Types.STRING())
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .sum(1)
    )


def count_file(env: StreamExecutionEnvironment, path: str | Path) -> dict[str, int]:
    """How often each word occurs in the file."""
    with running_counts(env.read_text_file(str(path))).execute_and_collect("word count") as pairs:
        return dict(pairs)  # the last pair of each word wins


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts words.")
    parser.add_argument(
        "--input",
        default=str(DATA),
        metavar="FILE",
        help="text to count (default: a few lines about rivers)",
    )
    parser.add_argument(
        "--batch", action="store_true", help="run as a batch job: one result per word"
    )
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, help="count the lines of a server there instead")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    if arguments.batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    if arguments.port is not None:
        running_counts(env.socket_text_stream(arguments.host, arguments.port)).print()
        env.execute("word count")
        return
    counts = count_file(env, arguments.input)
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]:
        print(f"{count:>4}  {word}")


if __name__ == "__main__":
    main()
