"""One operator under a debugger, for ``flinkpy debug``."""
