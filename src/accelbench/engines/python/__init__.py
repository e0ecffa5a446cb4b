"""The python runtime's card."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.protocols import Absent, Device, Job, RuntimeInfo, Session, Support
from accelbench.core.vocabulary import Belongs
from accelbench.engines.shared.engine import ForwardEngine
from accelbench.engines.shared.names import CARDS_IN_ORDER
from accelbench.engines.shared.refusals import not_listed, refuse


class PythonRuntime(ForwardEngine):
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

    remark = "what is called decides the rest itself"

    def probe(self) -> list[Device | Absent]:
        return [Device("cpu", platform.machine() or "cpu")]

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        if case.model.format is not FileFormat.CALLABLE:
            yield refuse("not_a_callable", model=case.model.id)
        yield not_listed(self.info.name, case, self.info.precisions)
        yield from super().refusals(case, device)

    def open(self, job: Job) -> Session:
        from accelbench.engines.python.session import PythonSession

        return PythonSession(job, self.clock())
