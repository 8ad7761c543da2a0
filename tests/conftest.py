"""Hypothesis profiles: few examples while working, many on the build server, never random."""

import os
import signal

from hypothesis import settings

settings.register_profile("dev", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# Where tests run in the background of a shell, Ctrl-C is ignored by them and by all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
