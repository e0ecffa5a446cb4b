"""Parts run one after the other, each in a forked process with a share of the time.

The parent has imported PyTorch and never touches the device, so that a fork of it may: a part that
crashes or hangs takes nothing with it. Figures travel over a pipe as they are made, and the file
is written after every part.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from gpu_day.part import Day, NotHereError, Part, Recorder

#: A part is begun only where this much of its expected time is left.
ENOUGH = 0.5
#: Seconds for an ended part to stop its own processes.
GRACE = 3.0

Entry = dict[str, Any]


def run_day(
    parts: Sequence[Part], day: Day, seconds: float, out: Path, about: dict[str, Any]
) -> bool:
    """Run every part and keep all figures in one file; whether all is as it should be.

    A part's share is its expected time or its part of what is left, whichever is more, and some
    slack: time that one part leaves goes to those after it.
    """
    deadline = time.monotonic() + seconds
    entries = {part.name: _made("not_reached", "the day ended before it") for part in parts}
    write(out, {**about, "parts": entries, "reached": False})
    for number, part in enumerate(parts):
        left = deadline - time.monotonic()
        wanted = sum(one.seconds for one in parts[number:])
        share = part.slack * max(part.seconds, left * part.seconds / wanted)
        entries[part.name] = _entry(part, day, min(left, share))
        reached = all(map(is_good, entries.values()))
        write(out, {**about, "parts": entries, "reached": reached})
    return all(map(is_good, entries.values()))


def _entry(part: Part, day: Day, share: float) -> Entry:
    if share < ENOUGH * part.seconds:
        reason = f"{max(share, 0):.0f} s were left, and it takes about {part.seconds:g} s"
        print(f"== {part.name}: not reached, {reason}", flush=True)
        return _made("not_reached", reason=reason)
    print(f"== {part.name}", flush=True)
    started = time.monotonic()
    found = run_part(part, day, share)
    found["seconds"] = round(time.monotonic() - started, 2)
    reason = f", {found['reason']}" if found["reason"] else ""
    print(f"   {part.name}: {found['status']}{reason} ({found['seconds']:.1f} s)", flush=True)
    return found


def _made(status: str, reason: str | None = None) -> Entry:
    return {"status": status, "reason": reason, "seconds": 0.0, "figures": {}, "checks": []}


def run_part(part: Part, day: Day, seconds: float) -> Entry:
    """One part in a process group of its own, ended where its share of the time is over."""
    deadline = time.monotonic() + seconds
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_inside, args=(part, day, deadline, sender))
    process.start()
    sender.close()
    entry = _made("failed")
    in_time = False
    try:
        in_time = _listen(receiver, deadline, entry)
    finally:
        code = _ended(process, GRACE if in_time else 0.0)
        receiver.close()
    if not in_time:
        entry["reason"] = f"ended after its share of {seconds:.3g} s"
    elif entry["status"] == "failed" and entry["reason"] is None:
        entry["reason"] = f"its process ended without an answer, exit code {code}"
    return entry


def _listen(receiver: Connection, deadline: float, entry: Entry) -> bool:
    """Take in what the part sends; whether it came to an end of its own in time."""
    while receiver.poll(max(0.0, deadline - time.monotonic())):
        try:
            kind, name, value = receiver.recv()
        except EOFError:
            return True
        if kind == "figure":
            entry["figures"][name] = value
        elif kind == "check":
            entry["checks"].append(value)
        else:
            entry["status"], entry["reason"] = name, value
            return True
    return False


def _inside(part: Part, day: Day, deadline: float, sender: Connection) -> None:
    """The whole life of a part's process."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    recorder = Recorder(day, deadline, sender.send)
    try:
        part.measure(recorder)
    except NotHereError as absence:
        sender.send(("status", "not_here", str(absence)))
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        sender.send(("status", "failed", f"{type(error).__name__}: {error}"[:1000]))
    else:
        sender.send(("status", "ok", None))
    sender.close()


def _ended(process: BaseProcess, patience: float) -> int | None:
    """Its exit code, after it and everything that it started is gone."""
    assert process.pid is not None
    process.join(patience)
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
        process.join(GRACE)
    return process.exitcode


def is_good(entry: Entry) -> bool:
    """Whether a part was measured, or cannot be here, and none of its checks failed."""
    done = entry["status"] in ("ok", "not_here")
    return done and all(one["reached"] is not False for one in entry["checks"])


def write(path: Path, document: dict[str, Any]) -> None:
    """The whole file in one move, so that a cut-off leaves the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")
    draft.replace(path)
