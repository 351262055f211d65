"""Generated functions (``flinkpy.core.generated``), for operators."""

from flinkpy.core.generated import Failure, compile_function, failure_in, forget_source

__all__ = ["Failure", "compile_function", "failure_in", "forget_source"]
