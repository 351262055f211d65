"""A loop: numbers go round until they are 1, by Collatz's rule (half of an even number, three times an odd one and 1), and their rounds are counted.

    python examples/iterate.py

``iterate`` begins the loop, ``close_with`` says what goes back to its beginning. How often each record goes round is its own affair; the program ends
when the input has ended and nothing is in the loop any more.
"""

from __future__ import annotations

from flinkpy.common import Types
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

LAST = 30
STEP = Types.TUPLE([Types.LONG(), Types.LONG(), Types.INT()])  # where it began, where it is, how many rounds


def collatz(step: tuple[int, int, int]) -> tuple[int, int, int]:
    start, number, rounds = step
    return start, number // 2 if number % 2 == 0 else 3 * number + 1, rounds + 1


def rounds_of(env: StreamExecutionEnvironment, last: int) -> DataStream:
    """(number, rounds) for all numbers from 2 to ``last``."""
    iteration = env.from_sequence(2, last).map(lambda number: (number, number, 0), STEP).iterate()
    steps = iteration.map(collatz, STEP)
    iteration.close_with(steps.filter(lambda step: step[1] != 1))
    return steps.filter(lambda step: step[1] == 1).map(lambda step: (step[0], step[2]), Types.TUPLE([Types.LONG(), Types.INT()]))


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    rounds_of(environment, LAST).print()
    environment.execute("Collatz")
