"""How property tests draw their examples: the same ones in every run, so that a run says something about the change and not about luck.

``HYPOTHESIS_PROFILE=explore pytest`` draws new ones (``make explore``); what that finds becomes an ``@example`` of the test.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Begun by a shell in the background, pytest ignores Ctrl-C, and so would every process the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
