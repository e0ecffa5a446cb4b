"""The python runtime's card."""

from __future__ import annotations

import platform

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.model import FileFormat
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.vocabulary import Belongs
from accelbench.runtimes.shared.names import CARDS_IN_ORDER
from accelbench.runtimes.shared.refusals import beyond_forward, no, not_listed

_OPTIONS = frozenset({"threads"})


class PythonRuntime:
    """Calls what an owner's code gives, as it is: nothing is converted, placed or narrowed."""

    info = RuntimeInfo(
        name="python",
        hardware=("cpu", "cuda"),
        package="accelbench",
        extra="",
        precisions=("fp32",),
        isolation="spawn",
        files=(FileFormat.CALLABLE,),
        environment=CARDS_IN_ORDER,
        generates=False,
        title="Python",
        packages=("numpy", "torch", "jax", "jaxlib", "triton"),
        dashes=(1, 5),
        place=90,
        reasons={"unfinished": Belongs.QUESTION, "not_a_callable": Belongs.QUESTION},
    )

    def probe(self) -> list[Device | Absent]:
        return [Device("cpu", platform.machine() or "cpu")]

    def supports(self, case: Case, device: Device) -> Support:
        name = self.info.name
        return (
            _called(case)
            or not_listed(name, case, self.info.precisions)
            or beyond_forward(name, case, _OPTIONS, "what is called decides the rest itself")
            or SUPPORTED
        )

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.python.session import PythonSession

        return PythonSession(job, self.clock())


def _called(case: Case) -> Support | None:
    if case.model.format is FileFormat.CALLABLE:
        return None
    return no(
        "not_a_callable",
        f"{case.model.id} is no callable of your own, which is what the python runtime times",
        "Leave out --framework, or name a function: accelbench run mine.py:function",
    )
