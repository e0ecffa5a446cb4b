"""What outputs are held against, in words: of whose models that is PyTorch, and of whose it is not.

A file is its own reference, as it is; a callable has one of its owner's, or its first answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TORCH_CPU = "PyTorch in fp32 on the CPU"
_OF_FILES = "each file as it is on the CPU, nothing of it rewritten"
_OF_CALLABLES = "each callable's own reference"
_ORDER = (_TORCH_CPU, _OF_FILES, _OF_CALLABLES)
_REFERENCES = {"file": _OF_FILES}
#: The runtime of callables.
_CALLS = "python"


def reference_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """What outputs are held against: of files, the graph as it is; of callables, their owner's."""
    kinds = {
        _OF_CALLABLES
        if row.get("runtime") == _CALLS
        else _REFERENCES.get(str(row.get("weights")), _TORCH_CPU)
        for row in rows
    }
    return " and ".join(words for words in _ORDER if words in kinds)
