"""``pyflink.version``, for programs that ask which PyFlink they run on: the newest whose names and
meaning flinkpy follows."""

__version__ = "2.3.0"
