"""What outputs are compared with, in words: of whose models that is PyTorch, of whose not.

A file is its own reference, as it is; a callable has one of its owner's, or its first answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TORCH_CPU = "PyTorch in fp32 on the CPU"
_OF_FILES = "each file as it is on the CPU, nothing of it rewritten"
#: Where the evidence names what outputs were compared with, if not the model as it is.
HELD_AGAINST = "held_against"
_OF_CONVERTED = "graphs of old operators converted to opset 7 by onnx"
_OF_CALLABLES = "each callable's own reference"
_ORDER = (_TORCH_CPU, _OF_FILES, _OF_CONVERTED, _OF_CALLABLES)
_REFERENCES = {"file": _OF_FILES}
#: The runtime of callables.
_CALLS = "python"


def reference_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """What outputs are compared with: of files, the graph as it is; of callables, their owner's."""
    kinds = {
        _OF_CALLABLES
        if row.get("runtime") == _CALLS
        else _OF_CONVERTED
        if _names_another(row)
        else _REFERENCES.get(str(row.get("weights")), _TORCH_CPU)
        for row in rows
    }
    return " and ".join(words for words in _ORDER if words in kinds)


def naming(reference: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence that names what outputs were compared with."""
    details = {**(evidence.get("details") or {}), HELD_AGAINST: reference}
    return {**evidence, "details": details}


def _names_another(row: Mapping[str, Any]) -> bool:
    """Whether a row's evidence names a reference: as a mapping, or as the JSON of one."""
    evidence = row.get("evidence")
    if isinstance(evidence, str):
        return f'"{HELD_AGAINST}"' in evidence
    return HELD_AGAINST in ((evidence or {}).get("details") or {})
