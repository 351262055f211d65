"""A loop: counts the rounds of each number until it is 1, by Collatz's rule (an even number is
halved, an odd one becomes three times itself plus 1).

    python examples/iterate.py

``iterate`` begins the loop; ``close_with`` says which records go back to its beginning. Each record
makes as many rounds as it needs. The program ends when the input has ended and the loop is empty.
"""

from __future__ import annotations

from flinkpy.common import Types
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

LAST = 30
# first number, current number, rounds
STEP = Types.TUPLE([Types.LONG(), Types.LONG(), Types.INT()])


def collatz(step: tuple[int, int, int]) -> tuple[int, int, int]:
    start, number, rounds = step
    return start, number // 2 if number % 2 == 0 else 3 * number + 1, rounds + 1


def rounds_of(env: StreamExecutionEnvironment, last: int) -> DataStream:
    """(number, rounds) for all numbers from 2 to ``last``."""
    iteration = env.from_sequence(2, last).map(lambda number: (number, number, 0), STEP).iterate()
    steps = iteration.map(collatz, STEP)
    iteration.close_with(steps.filter(lambda step: step[1] != 1))
    return steps.filter(lambda step: step[1] == 1).map(
        lambda step: (step[0], step[2]), Types.TUPLE([Types.LONG(), Types.INT()])
    )


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    rounds_of(environment, LAST).print()
    environment.execute("Collatz")
