"""A pattern's function with an error policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from flinkpy.cep.automaton.partial_matches import Match
from flinkpy.cep.match_functions import MatchContext
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.guarding.dead_letters import Letters, is_users

MatchCall: TypeAlias = Callable[[Match, MatchContext], "Iterable[Any] | None"]


def guarded_match(call: MatchCall, policy: ErrorPolicy, context: OperatorContext) -> MatchCall:
    """The call that gives, if the function raises, a dead letter with the match as its only
    result. What the function gave before it raised is withheld."""
    letters = Letters(policy, context)

    def guarded(match: Match, at: MatchContext) -> Iterable[Any] | None:
        for calls in range(1, policy.retries + 2):
            try:
                given = call({name: list(each) for name, each in match.items()}, at)
                return given if given is None else list(given)
            except BaseException as error:
                at._outputs = []
                if calls > policy.retries or not is_users(error):
                    letter = letters.letter(error, match, at.timestamp(), calls=calls)
                    return [(policy.tag, letter)]
        return None

    return guarded
