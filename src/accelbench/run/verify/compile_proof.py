"""Check that a case that was to be compiled was compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.case import Case
from accelbench.core.errors import CaseError

#: A detail of the evidence: how many graphs were compiled since the session was opened.
COMPILED_GRAPHS = "compiled_graphs"

_NOT_PROVEN = (
    "Compilation not proven: the engine reports neither compiled graphs nor a time of compilation."
)


def refuse_uncompiled(case: Case, details: Mapping[str, Any], compile_ms: Any) -> tuple[str, ...]:
    """Raise CaseError if nothing was compiled although that was asked for.

    Args:
        case: what was measured.
        details: of the evidence.
        compile_ms: the reported time of compilation; None if there is none.

    Returns:
        A warning if nothing shows that the case was compiled.
    """
    if not case.compiled:
        return ()
    graphs = details.get(COMPILED_GRAPHS)
    if graphs == 0:
        raise CaseError(
            "compile_failed",
            "nothing was compiled: the steps ran eagerly",
            "Unset TORCHDYNAMO_DISABLE and TORCH_COMPILE_DISABLE, look for functions that disable"
            " compilation, or leave out --compile.",
        )
    return () if graphs or compile_ms is not None else (_NOT_PROVEN,)
