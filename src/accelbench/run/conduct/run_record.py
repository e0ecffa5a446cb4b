"""A run's first fact as JSON and back, and its log: a file for reports beside the journal.

Only the conducting process writes the log, before and after launches. It has no home folder, no
password of an address, and no value of a variable that is named like a secret. Nothing depends on
it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core.case import Case
from accelbench.core.device_facts import DeviceFacts
from accelbench.core.errors import StoreError
from accelbench.core.facts import RUN_FINISHED, RUN_RESUMED, RUN_STARTED, Fact, utc_now
from accelbench.core.formatting import NO_DATA
from accelbench.core.identity import digest, to_plain
from accelbench.core.protocols import Absent, Device
from accelbench.core.run_options import RunSettings
from accelbench.core.safe_text import hide_homes, visible_lines
from accelbench.core.serial import case_from_json, case_to_json, device_from_json, device_to_json
from accelbench.core.vocabulary import Status
from accelbench.models.file_models.unchanged import as_here
from accelbench.run.plan.request import Against, AgainstKind, OtherArm, Plan, Planned, Refusal
from accelbench.run.process.worker_client import Observer, Progress
from accelbench.store.journal import journal_path


def settled(run_id: str, begun: Mapping[str, Any]) -> tuple[RunSettings, Plan]:
    """Return the settings and the plan that a run began with."""
    try:
        plan = Plan(tuple(_planned_from_json(p) for p in begun["plan"]))
        return RunSettings.from_dict(begun["settings"]), plan
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"Run {run_id} was begun by accelbench {begun.get('accelbench')}, whose plan this"
            f" version ({__version__}) cannot read.",
            "Use that version, or start a new run.",
        ) from error


def arm_to_json(other: OtherArm) -> dict[str, Any]:
    """Return the arm that a run is compared with, as JSON."""
    against = other.against
    return {
        "kind": against.kind.value,
        "name": against.name,
        "word": against.word,
        "settings": other.settings.to_dict(),
        "plan": [planned_to_json(p) for p in other.plan.cases],
    }


def arm_settled(run_id: str, begun: Mapping[str, Any]) -> OtherArm | None:
    """Return that arm from JSON; None if the run has no arms."""
    named = begun.get("against")
    if named is None:
        return None
    settings, plan = settled(run_id, {**begun, **named})
    return OtherArm(
        Against(AgainstKind(named["kind"]), named["name"], named["word"]), plan, settings
    )


def resumed_fact(run_id: str, environment: Mapping[str, Any]) -> Fact:
    """Return the fact that a run is continued now."""
    moment = utc_now()
    body = {"run_id": run_id, "resumed_at": moment, "environment": dict(environment)}
    return Fact(RUN_RESUMED, digest([run_id, moment]), body)


def finished_fact(run_id: str, status: str, **more: Any) -> Fact:
    """Return the fact that a run ends now."""
    moment = utc_now()
    body = {"run_id": run_id, "finished_at": moment, "status": status, **more}
    return Fact(RUN_FINISHED, digest([run_id, moment]), body)


def last_status(facts: Iterable[Fact]) -> str | None:
    """Return the status that a run ended with; None while it is unfinished."""
    milestones = [f for f in facts if f.kind in (RUN_STARTED, RUN_RESUMED, RUN_FINISHED)]
    return milestones[-1].body.get("status") if milestones else None


def planned_to_json(planned: Planned) -> dict[str, Any]:
    """Return a case of a plan as JSON."""
    return {
        "case": case_to_json(planned.case),
        "device": device_to_json(planned.device) if planned.device else None,
        "refusal": asdict(planned.refusal) if planned.refusal else None,
        "roofline": to_plain(planned.roofline) if planned.roofline else None,
        "as_stored": planned.as_stored,
    }


def _here(case: Case) -> Case:
    """Return a case of another process or machine: a model's file may be a copy here."""
    file = case.model.file
    return case if file is None else replace(case, model=replace(case.model, file=as_here(file)))


def _planned_from_json(body: Mapping[str, Any]) -> Planned:
    refusal, roofline = body["refusal"], body.get("roofline")
    return Planned(
        case=_here(case_from_json(body["case"])),
        device=device_from_json(body["device"]) if body["device"] else None,
        refusal=Refusal(**{**refusal, "status": Status(refusal["status"])}) if refusal else None,
        roofline=DeviceFacts(**{**roofline, "platforms": tuple(roofline["platforms"])})
        if roofline
        else None,
        as_stored=body.get("as_stored", False),
    )


SUFFIX = ".log"
#: What a report's form still takes, and more than a run of thousands of cases says.
MOST_BYTES = 5_000_000
#: Logs that stay in a folder; whoever reports a run does so soon.
KEPT = 20
#: Of what a worker printed the end counts: that is where it failed.
_MOST_OF_ONE = 8_000
_RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH(?!OR)|COOKIE|(^|_)(API)?KEY(_|$)")
_SHORTEST_SECRET = 6  # a shorter value may be a word: every "true" would become a name
_IN_AN_ADDRESS = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")


@contextmanager
def recorded() -> Iterator[RunLog]:
    """Yield a log that receives this program's own loggers."""
    # It has no run yet: detection and planning belong to it as well.
    log = RunLog()
    logger, handler = logging.getLogger("accelbench"), _Records(log)
    level = logger.level
    # What workers print of a failure is told at INFO; --debug has set the root to DEBUG before.
    logger.setLevel(min(logging.INFO, logger.getEffectiveLevel()))
    logger.addHandler(handler)
    try:
        yield log
    except BaseException as error:
        log.say(f"the run was ended by {type(error).__name__}: {error}")
        log.say(traceback.format_exc())
        raise
    finally:
        counts = ", ".join(f"{n} {status}" for status, n in sorted(log.counts.items()))
        log.say(f"end of what was measured now: {counts or 'nothing'}")
        logger.removeHandler(handler)
        logger.setLevel(level)
        log.close()


class RunLog:
    """The file of a run's log. Lines wait until `flush`, and until the run's journal exists."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  # of results, by their status
        self._journal: Path | None = None
        self._secrets = _secrets(os.environ)
        self._waiting: list[str] = []
        self._fd: int | None = None
        self._left = MOST_BYTES
        self._over = False

    def of_run(
        self,
        folder: Path,
        run_id: str,
        observer: Observer,
        environment: Mapping[str, Any],
        command: str,
    ) -> Observer:
        self._journal = journal_path(folder, run_id)
        for line in _opening(run_id, environment, command):
            self.say(line)
        return LoggedObserver(observer, self)

    def say(self, text: str) -> None:
        """Add an event with its time; indent its further lines."""
        if self._over:
            return
        first, *more = self._cleared(text[-_MOST_OF_ONE:]).splitlines() or [""]
        self._waiting += [f"{utc_now()} {first}", *(f"    {line}" for line in more)]

    def flush(self) -> None:
        journal = self._journal
        if self._over or journal is None or not (self._waiting and journal.exists()):
            return
        data = "".join(f"{line}\n" for line in self._waiting).encode(errors="replace")
        try:
            if self._fd is None:
                self._fd = self._opened(journal.with_suffix(SUFFIX))
            self._write(self._fd, data)
        except OSError:
            self._over = True  # a full disk or a folder of somebody else's is no trouble of a run
        self._waiting.clear()

    def close(self) -> None:
        self.flush()
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd, self._over = None, True

    def _opened(self, path: Path) -> int:
        # A link that lies there may lead to another's file.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(path, flags, 0o644)
        self._left -= os.fstat(fd).st_size  # of a run that is resumed
        _prune(path.parent)
        return fd

    def _write(self, fd: int, data: bytes) -> None:
        if len(data) > self._left:
            data = data[: max(self._left, 0)] + b"\nThe log is full: what came later is left out.\n"
            self._over = True
        os.write(fd, data)
        self._left -= len(data)

    def _cleared(self, text: str) -> str:
        for value, name in self._secrets:
            text = text.replace(value, f"${name}")
        with contextlib.suppress(RuntimeError):  # nobody's home is known
            if len(home := str(Path.home())) > 1:
                text = re.sub(rf"{re.escape(home)}(?=[/\\\s:;'\"]|$)", "~", text)
        return visible_lines(hide_homes(_IN_AN_ADDRESS.sub("…", text)))


class LoggedObserver:
    """An observer that also writes a log, while nothing is being measured."""

    def __init__(self, observer: Observer, log: RunLog) -> None:
        self._observer = observer
        self._log = log
        self._began = time.monotonic()

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        for entry in entries:
            if isinstance(entry, Device):
                self._log.say(f"device {entry}: {entry.name}, driver {entry.driver or NO_DATA}")
            else:
                self._log.say(f"no {entry.hardware}: {entry.reason}")
        self._observer.devices(entries)

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        self._log.say(f"{launches} measurements are planned")
        self._observer.started(run_id, launches, estimate)

    def note(self, text: str) -> None:
        self._log.say(f"note: {text}")
        self._observer.note(text)

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        self._began = time.monotonic()
        self._log.say(f"[{number}/{total}] begins: {case}, launch {launch}, {case.case_id}")
        self._log.flush()
        self._observer.case_started(case, launch, number, total)

    def progress(self, progress: Progress) -> None:
        self._observer.progress(progress)

    def case_finished(self, row: Mapping[str, Any]) -> None:
        self._log.counts[str(row.get("status"))] += 1
        for line in _ending(row, time.monotonic() - self._began):
            self._log.say(line)
        self._log.flush()
        self._observer.case_finished(row)


class _Records(logging.Handler):
    """A handler that adds records of this program's loggers to the log."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._log.say(self.format(record))
        except Exception:  # as logging does: a record that cannot be told ends nothing
            self.handleError(record)
        # Logging prints warnings that no handler takes; this one must not keep them to itself.
        last = logging.lastResort
        if last is not None and not logging.getLogger().handlers and record.levelno >= last.level:
            last.handle(record)


def _opening(run_id: str, environment: Mapping[str, Any], command: str) -> Iterator[str]:
    yield f"run {run_id}, accelbench {__version__}"
    yield f"command: {command}"
    lookup = environment.get
    memory = int(lookup("effective_memory") or lookup("memory_total") or 0) / 2**30
    yield (
        f"machine: {lookup('cpu')}, {lookup('effective_cpus')} of {lookup('cpus_logical')} CPUs,"
        f" {memory:.1f} GiB; {lookup('os_release')}, {lookup('os')} {lookup('kernel')},"
        f" {platform.machine()}, {lookup('libc')}; Python {lookup('python')}"
    )
    packages = lookup("packages") or {}
    yield "packages: " + ", ".join(f"{name} {version}" for name, version in packages.items())
    variables = lookup("variables") or {}
    if variables:
        yield "variables: " + ", ".join(f"{name}={value}" for name, value in variables.items())


def _ending(row: Mapping[str, Any], seconds: float) -> Iterator[str]:
    reason = f" ({row['reason']})" if row.get("reason") else ""
    launch = f", launch {row.get('launch')}"
    p50, quality = row.get("latency_p50_ms"), row.get("quality")
    figure = f", p50 {p50:.6g} ms, {quality}" if p50 is not None else ""
    yield f"ends after {seconds:.2f} s: {row.get('status')}{reason}{figure}{launch}"
    for name in ("message", "advice"):
        if row.get(name):
            yield f"  {name}: {row[name]}"
    if row.get("workarounds"):
        yield f"  workarounds: {', '.join(row['workarounds'])}"
    for text in row.get("warnings") or ():
        yield f"  warning: {text}"


def _secrets(variables: Mapping[str, str]) -> list[tuple[str, str]]:
    secrets = [
        (value, name)
        for name, value in variables.items()
        if _SECRET.search(name.upper()) and len(value) >= _SHORTEST_SECRET
    ]
    return sorted(secrets, key=lambda secret: -len(secret[0]))


def _prune(folder: Path) -> None:
    logs = sorted(p for p in folder.glob(f"*{SUFFIX}") if _RUN.fullmatch(p.stem))
    for old in logs[:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()
