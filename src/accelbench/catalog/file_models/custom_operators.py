"""Operators of an ONNX graph that neither ONNX nor ONNX Runtime defines.

Imports onnx, and ONNX Runtime only where a graph has operators that are not ONNX's: import this
module only in the process that looks at a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx

#: Domains of operators that ONNX Runtime brings beside ONNX's own.
_OF_ONNX_RUNTIME = "com.microsoft"
_DEFAULT = "ai.onnx"
#: So many are named.
_MOST = 20


def custom_operators(model: Any, nodes: Iterable[Any]) -> list[str]:
    """Operators that their owner's code would have to bring, as domain:name, each once.

    Args:
        model: of onnx.
        nodes: all of its graph.
    """
    own = {(function.domain, function.name) for function in model.functions}
    inner = (node for function in model.functions for node in function.node)
    found: dict[str, None] = {}
    for node in (*nodes, *inner):
        key = (node.domain, node.op_type)
        if key not in own and not _defined(*key):
            found[f"{node.domain or _DEFAULT}:{node.op_type}"] = None
    return sorted(found)[:_MOST]


def _defined(domain: str, name: str) -> bool:
    domain = "" if domain == _DEFAULT else domain
    if onnx.defs.has(name, domain):
        return True
    known = _of_onnx_runtime()
    # Where ONNX Runtime is not here, nobody says what it defines.
    return domain.startswith(_OF_ONNX_RUNTIME) if known is None else (domain, name) in known


def _of_onnx_runtime() -> set[tuple[str, str]] | None:
    """What ONNX Runtime defines, by domain and name; None where it is not installed."""
    if not _schemas:
        try:
            from onnxruntime.capi import onnxruntime_pybind11_state as state

            _schemas.append({(s.domain, s.name) for s in state.get_all_operator_schema()})
        except (ImportError, AttributeError):
            _schemas.append(None)
    return _schemas[0]


#: Asked once: there are some hundreds of them.
_schemas: list[set[tuple[str, str]] | None] = []
