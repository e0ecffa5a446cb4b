"""What an ExecuTorch program does, as its file has it: what is handed to whom. Pure.

Tables of flatbuffers are read by their offsets, none of which leads out of the file unnoticed.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

#: How XNNPACK's part of a program is marked, after four bytes.
_XNNPACK = b"XH00"
_HEADER = b"eh00"
_KERNEL, _DELEGATE = 1, 2
_QUANTISED_VALUE, _TENSOR = 2, 5
_MOST = 1_000_000


class MalformedProgramError(Exception):
    """Its tables lead nowhere."""


@dataclass(frozen=True)
class ProgramPlan:
    """What the method forward is made of."""

    delegated: dict[str, int]  # parts that were handed to a backend, by the backend's name
    inside: int  # operators within XNNPACK's parts
    kernels: dict[str, int]  # operators that are left to ExecuTorch's own, with their number
    weights: int  # constant values, in the parts and beside them
    quantised: bool  # whether XNNPACK's parts, or what is left, hold quantised values


class _Table:
    """One table of flatbuffers in some bytes."""

    def __init__(self, content: memoryview, place: int) -> None:
        self._content, self._place = content, place
        start = place - self._number("<i", place)
        size = self._number("<H", start)
        self._fields = [self._number("<H", start + at) for at in range(4, size, 2)]

    def number(self, field: int, form: str = "<i") -> int:
        """A number; 0 where the file leaves it out."""
        at = self._at(field)
        return self._number(form, at) if at else 0

    def text(self, field: int) -> str:
        """A string."""
        at = self._to(field)
        if not at:
            return ""
        size = self._number("<I", at)
        return bytes(self._content[at + 4 : at + 4 + size]).decode("utf-8", "replace")

    def table(self, field: int) -> _Table | None:
        """The table that a field leads to."""
        at = self._to(field)
        return _Table(self._content, at) if at else None

    def tables(self, field: int) -> Iterator[_Table]:
        """Those of a list."""
        at = self._to(field)
        for place in range(at + 4, at + 4 + 4 * self.length(field), 4):
            yield _Table(self._content, place + self._number("<I", place))

    def numbers(self, field: int) -> list[int]:
        """Those of a list, of four bytes each."""
        at = self._to(field) + 4
        return [self._number("<i", at + 4 * place) for place in range(self.length(field))]

    def length(self, field: int) -> int:
        """Entries of a list."""
        at = self._to(field)
        count = self._number("<I", at) if at else 0
        if count > _MOST:
            raise MalformedProgramError(f"a list of {count} entries")
        return count

    def content(self, field: int) -> memoryview:
        """The bytes of a list of them."""
        at = self._to(field)
        return self._content[at + 4 : at + 4 + self._number("<I", at)] if at else self._content[:0]

    def _at(self, field: int) -> int:
        offset = self._fields[field] if field < len(self._fields) else 0
        return self._place + offset if offset else 0

    def _to(self, field: int) -> int:
        at = self._at(field)
        return at + self._number("<I", at) if at else 0

    def _number(self, form: str, at: int) -> int:
        try:
            found: int = struct.unpack_from(form, self._content, at)[0]
        except struct.error as error:
            raise MalformedProgramError("an offset that leads out of it") from error
        return found


def plan_of(content: bytes) -> ProgramPlan:
    """Return what the first method of a program does, or raise MalformedProgramError."""
    whole = memoryview(content)
    root = _Table(whole, struct.unpack_from("<I", content)[0])
    plan = next(root.tables(1), None)
    if plan is None:
        raise MalformedProgramError("no method")
    names = [entry.text(0) for entry in plan.tables(6)]
    delegates = list(plan.tables(7))
    kernels: Counter[str] = Counter()
    delegated: Counter[str] = Counter()
    for chain in plan.tables(5):
        for instruction in chain.tables(2):
            kind, what = instruction.number(0, "<B"), instruction.table(1)
            place = what.number(0) if what is not None else 0
            if kind == _KERNEL and 0 <= place < len(names):
                kernels[names[place]] += 1
            elif kind == _DELEGATE and 0 <= place < len(delegates):
                delegated[delegates[place].text(0)] += 1
    parts = [_xnnpack(_payload(whole, root, delegate)) for delegate in delegates]
    return ProgramPlan(
        dict(delegated),
        inside=sum(part[0] for part in parts),
        kernels=dict(kernels),
        weights=_constants(plan) + sum(part[1] for part in parts),
        quantised=any(part[2] for part in parts) or any("quantize" in name for name in kernels),
    )


def _constants(plan: _Table) -> int:
    """Values of tensors that lie in the file, and not in the memory that a step uses."""
    tensors = (entry.table(1) for entry in plan.tables(2) if entry.number(0, "<B") == _TENSOR)
    return sum(
        math.prod(tensor.numbers(2))
        for tensor in tensors
        if tensor is not None and tensor.number(5, "<I") and tensor.table(6) is None
    )


def _payload(whole: memoryview, root: _Table, delegate: _Table) -> memoryview:
    """What a backend was given, in the file's tables or behind them."""
    place = delegate.table(1)
    if place is None:
        return whole[:0]
    within, index = place.number(0, "<b") == 0, place.number(1, "<I")
    entries = list(root.tables(3 if within else 4))
    if index >= len(entries):
        raise MalformedProgramError("a part that is not there")
    if within:
        return entries[index].content(0)
    if bytes(whole[8:12]) != _HEADER:
        raise MalformedProgramError("parts behind its tables, and no place of them")
    start = struct.unpack_from("<Q", whole, 24)[0] + entries[index].number(0, "<Q")
    return whole[start : start + entries[index].number(1, "<Q")]


def _xnnpack(part: memoryview) -> tuple[int, int, bool]:
    """Operators and weights of a part that is XNNPACK's, and whether any value is quantised."""
    if bytes(part[4:8]) != _XNNPACK:
        return 0, 0, False
    start = struct.unpack_from("<I", part, 10)[0]
    graph = _Table(part[start:], struct.unpack_from("<I", part, start)[0])
    weights, quantised = 0, False
    for entry in graph.tables(2):
        value = entry.table(1)
        if entry.number(0, "<B") == _QUANTISED_VALUE:
            quantised = True
            value = None if value is None else value.table(0)
        if value is not None and value.number(3, "<I"):
            weights += math.prod(value.numbers(2))
    return graph.length(1), weights, quantised
