"""The worker's threads while steps are measured.

waiting   if other processes had the CPUs for longer than the threads ran, the times are mostly
          those of other work: the quality is unusable
threads   if more threads ran than the result names, its number of threads is absent
idle      if the processor is the device and the threads hardly ran, something else does the work
pages     if each step touches memory anew because the allocator returned it to the system
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.core.abilities import OutOfProcess, RankExchange
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.protocols import Job, Session
from accelbench.core.vocabulary import Quality
from accelbench.core.worth import MOST_WAITING
from accelbench.hardware.common import NotAvailable, is_processor
from accelbench.hardware.hostmemory import PageUse, read_page_use
from accelbench.hardware.thread_times import (
    ThreadTimes,
    ThreadUse,
    compare,
    descendants,
    read_thread_times,
)
from accelbench.measure.loop import Measurement
from accelbench.run.verify.plausibility import KnownFacts, remove_implausible

ReadTimes = Callable[[Iterable[int]], ThreadTimes | NotAvailable]

#: Threads that wait for a device have little to do. What they wait for a CPU then does not matter,
#: if it is less of the measured time than an interval of ±25 % is of a value.
_LEAST_OF_WALL = 0.25
#: Engines that were asked for one thread kept at most 1.1 busy (JAX, whose main thread hands over).
_MOST_TIMES, _MOST_MORE = 1.3, 0.2
#: Engines on a CPU kept at least one thread busy.
_LEAST_ACTIVE = 0.25
#: A shorter steady state can be the moment in which a helper thread works.
_LEAST_NS = 100_000_000
#: bert-tiny at batch 8 touched 1,000 to 1,500 pages a step, which took 25 to 33 % of its CPU time:
#: 9 to 14 ms a step. With kept memory it was 7.4 ms ±3 %, at fewer than 15 pages a step.
_LEAST_FAULTS, _LEAST_SYSTEM_SHARE = 200, 0.15
#: Settings of glibc with which freed memory stays with the process.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}


@dataclass(frozen=True)
class LoadReport:
    """Findings about a measurement from the times of its threads."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)  # of columns that are absent
    warnings: tuple[str, ...] = ()
    unusable: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)  # of the evidence

    def applied_to(self, measurement: Measurement) -> Measurement:
        evidence = measurement.evidence
        return replace(
            measurement,
            evidence=replace(evidence, details={**evidence.details, **self.details}),
            metrics={**measurement.metrics, **self.columns},
            warnings=[*measurement.warnings, *self.warnings],
            quality=Quality.UNUSABLE if self.unusable else measurement.quality,
        )


class SideChecks:
    """Checks one opened model's values other than the time of its steps."""

    def __init__(
        self,
        session: Session,
        job: Job,
        wall: Clock | None,
        read_times: ReadTimes = read_thread_times,
        read_pages: Callable[[], PageUse | None] = read_page_use,
    ) -> None:
        """Check nothing yet. `wall` is a clock that the session does not own; None if time is a
        script's."""
        self._session, self._job, self._wall = session, job, wall
        self._in_process = not isinstance(session, OutOfProcess)
        self._is_alone = self._in_process and not isinstance(session, RankExchange)
        self._read_times = read_times
        self._before: ThreadTimes | NotAvailable = NotAvailable("nothing was measured")
        self._after: ThreadTimes | NotAvailable = self._before
        self._read_pages = read_pages if self._is_alone and wall else lambda: None
        self._pages_before: PageUse | None = None
        self._pages_after: PageUse | None = None

    def judge_opening(self, opening_ns: int) -> dict[str, str]:
        """Return why build or load cannot have taken what the session reports."""
        told = {f"{what}_ms": ns / 1e6 for what, ns in self._session.timings.items()}
        return self._kept(told, self._known(self._job.case, opening_ns=opening_ns))[1]

    def begin_steady_state(self) -> None:
        self._before = self.read_threads()
        self._pages_before = self._read_pages()

    def end_steady_state(self) -> None:
        self._pages_after = self._read_pages()
        self._after = self.read_threads()

    def judge_load(self, case: Case, measured: Measurement) -> LoadReport:
        """Judge how the threads were used in the steady state."""
        for reading in (self._before, self._after):
            if isinstance(reading, NotAvailable):
                return LoadReport(reasons={"cpu_wait_share": reading.reason})
        assert isinstance(self._before, ThreadTimes)
        assert isinstance(self._after, ThreadTimes)
        told = measured.evidence.details.get("threads", self._job.settings.threads)
        computes = self._is_alone and is_processor(self._job.device) and case.world_size == 1
        threads = told if computes and isinstance(told, int) else None
        return judge(compare(self._before, self._after), threads, computes)

    def judge_pages(self, measured: Measurement) -> LoadReport:
        """Judge how much memory the steady state touched anew."""
        if self._pages_before is None or self._pages_after is None:
            return LoadReport()
        samples = measured.samples["step"]
        steps = sum(measured.sampling["step"].get("steps") or [1] * len(samples))
        return judge_pages(self._pages_before, self._pages_after, steps, os.environ)

    def keep_plausible(
        self, case: Case, measured: Measurement, columns: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Replace values that cannot be by None; return the columns and the reasons."""
        known = self._known(
            case, compiling_ns=measured.compiling_ns, fastest_ns=measured.fastest_ns
        )
        return self._kept(columns, known)

    def _kept(
        self, columns: Mapping[str, Any], facts: KnownFacts
    ) -> tuple[dict[str, Any], dict[str, str]]:
        if self._wall is None:
            return dict(columns), {}
        return remove_implausible(columns, facts)

    def _known(self, case: Case, **times: Any) -> KnownFacts:
        return KnownFacts(case, self._job.device, self._in_process, **times)

    def read_threads(self) -> ThreadTimes | NotAvailable:
        if self._wall is None:
            return NotAvailable("the time is a script's")
        return self._read_times(() if self._is_alone else descendants(os.getpid()))


def judge(use: ThreadUse, threads: int | None, computes: bool = False) -> LoadReport:
    """Judge what the threads did in the steady state.

    `threads` is the engine's own number, `computes` whether these threads have to do a step's work.
    """
    # The conductor warns of the waiting, because it knows what else ran on the machine.
    warnings, reasons = [], {}
    active = (use.ran_ns + use.waited_ns) / use.wall_ns
    if computes and use.wall_ns >= _LEAST_NS and active < _LEAST_ACTIVE:
        warnings.append(
            f"The worker's threads had work for {active:.0%} of the time: a step waits, or another"
            " process or device computes it."
        )
    share: float | None = use.wait_share
    unusable = use.wait_share > MOST_WAITING
    if unusable and use.waited_ns <= _LEAST_OF_WALL * use.wall_ns:
        share, unusable = None, False
        reasons["cpu_wait_share"] = "its threads had too little work for a share to mean anything"
    limit = None if threads is None else _MOST_TIMES * threads + _MOST_MORE
    if limit is not None and use.wall_ns >= _LEAST_NS and use.busy_threads > limit:
        why = f"{use.busy_threads:.1f} threads were busy at once, where the engine names {threads}"
        reasons["threads"] = why
        warnings.append(f"{why[0].upper()}{why[1:]}: the number of threads is not known.")
    return LoadReport({"cpu_wait_share": share}, reasons, tuple(warnings), unusable)


def judge_pages(
    before: PageUse, after: PageUse, steps: int, variables: Mapping[str, str]
) -> LoadReport:
    """Judge how much memory the steps touched anew, and what the system's part of it cost."""
    system_s = after.system_s - before.system_s
    used_s = system_s + after.user_s - before.user_s
    faults = (after.faults - before.faults) / max(1, steps)
    share = system_s / used_s if used_s > 0 else 0.0
    details = {"page_faults_per_step": round(faults, 1), "system_time_share": round(share, 3)}
    if faults < _LEAST_FAULTS or share < _LEAST_SYSTEM_SHARE:
        return LoadReport(details=details)
    warning = (
        f"Each step touched {faults:,.0f} memory pages anew. The system took {100 * share:.0f} % of"
        " the CPU time, mostly for this."
    )
    if not KEEP_MEMORY.keys() & variables.keys():
        settings = " ".join(f"{name}={value}" for name, value in KEEP_MEMORY.items())
        warning += (
            " The allocator returns freed memory to the system after each step. To keep it, set"
            f" {settings}."
        )
    return LoadReport(warnings=(warning,), details=details)
