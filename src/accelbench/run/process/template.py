"""The warm template: a process that has imported an engine and forks workers from it.

    python -m accelbench.run.process.template NAME RUNTIME fork|spawn

`fork` answers {"do": "fork", "name", "log"} with {"pid"} and {"do": "reap", "pid"} with {"pid",
"status"}. `spawn` becomes the one worker itself, for systems and engines that cannot be forked. It
only imports: one 64×64 product, `is_available` or `jax.devices` would start the engine's threads,
and a forked child would wait for them for ever.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Any

from accelbench.core import processes
from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.run.process import process_control, wire


def find_runtime(name: str) -> Any:
    """Return the registered engine of that name."""
    return load(find_entry_points(ENGINES)[name])


def preload(runtime: Any) -> None:
    """Import what the engine names, and what every worker needs."""
    # The collector is off meanwhile, and never sees what was imported: looking through it again and
    # again took a quarter of the 3.8 s of PyTorch and transformers, and in a forked child it would
    # copy every page.
    gc.disable()
    for module in (*runtime.info.preload, "accelbench.run.worker.worker"):
        import_module(module)
    gc.freeze()
    gc.enable()


def worker_in_child(runtime: Any, name: str, log: str) -> None:
    """Be a forked worker until it ends; never return."""
    from accelbench.run.worker.worker import serve

    code = 1
    try:
        process_control.own_process_group()
        process_control.offer_to_oom_killer()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        redirect(log)
        serve(wire.call(name), runtime)
        code = 0
    except wire.ClosedError:
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Not sys.exit: engines' exit handlers belong to the template.
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def redirect(log: str) -> None:
    """Send what the engine prints to a file that a crash report can quote."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


def reap(pid: int) -> int:
    """Wait for a child that is ending; return its status as os.waitstatus_to_exitcode gives it."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status)


def run_template(runtime: Any, channel: wire.Channel) -> None:
    """Fork and reap on request until the conductor hangs up."""
    preload(runtime)
    channel.send({"event": "ready"})
    while True:
        request = channel.receive()
        if request["do"] == "reap":
            channel.send({"pid": request["pid"], "status": reap(request["pid"])})
            continue
        pid = processes.fork()
        if pid == 0:
            channel.close()
            worker_in_child(runtime, request["name"], request["log"])
        channel.send({"pid": pid})


def main(arguments: list[str]) -> None:
    """Become a template or a spawned worker."""
    name, runtime_name, manner = arguments
    # Ctrl-C reaches the whole terminal; only the conductor decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = 1
    try:
        runtime = find_runtime(runtime_name)
        channel = wire.call(name)
        if manner == "fork":
            run_template(runtime, channel)
        else:
            from accelbench.run.worker.worker import serve

            process_control.own_process_group()
            process_control.offer_to_oom_killer()
            preload(runtime)
            channel.send({"event": "ready"})
            serve(channel, runtime)
        code = 0
    except wire.ClosedError:
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
