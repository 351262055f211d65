"""A window's function with an error policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.error_policy import ErrorPolicy, FailedWindow
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.guarding.dead_letters import Letters, is_users
from flinkpy.operators.output.output_isolation import all_private
from flinkpy.windowing.general.evaluation import Call

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window


def guarded_call(call: Call, policy: ErrorPolicy, is_keyed: bool, context: OperatorContext) -> Call:
    """The call that gives, if the function raises, a dead letter for the policy's side output as
    its only result.

    The window counts as evaluated. What the function yielded before it raised is withheld; what it
    did to state stays."""
    letters = Letters(policy, context)

    def own(elements: list[Any]) -> list[Any]:
        return list(elements if context.object_reuse else all_private(elements))

    def guarded(key: object, window: Window, inputs: list[Any]) -> Any:
        kept = own(inputs)
        for calls in range(1, policy.retries + 2):
            try:
                given = call(key, window, inputs)
                return given if given is None else list(given)
            except BaseException as error:
                if calls > policy.retries or not is_users(error):
                    failed = FailedWindow(key if is_keyed else None, window, kept)
                    return [
                        (
                            policy.tag,
                            letters.letter(error, failed, window.max_timestamp(), calls=calls),
                        )
                    ]
            inputs = own(kept)
        return None

    return guarded
