"""What holds for every test: Ctrl-C is heard, and engines take one thread each."""

from __future__ import annotations

import os
import signal

# A shell gives the commands that it starts in the background SIGINT ignored, and every program
# that a test starts would inherit that: the tests of Ctrl-C would wait for an end that never comes.
# A handler, unlike SIG_IGN, does not survive exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two test processes share two cores. Engines with a thread a core each wait at every step for
# threads that do not run: four times the time was seen.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
