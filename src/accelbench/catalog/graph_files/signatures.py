"""What an operation of a model takes: its class and its sizes."""

from __future__ import annotations

from typing import NamedTuple

from accelbench.core.errors import AccelbenchError


class UntracedError(AccelbenchError):
    """The operators of a model are not known."""


class OperatorSignature(NamedTuple):
    """Class and sizes of an operation, for a batch of one."""

    op_class: str
    macs: int
    input_elements: int
    weight_elements: int
    output_elements: int
    m: int
    n: int
    k: int
    groups: int
    kernel: int
    stride: int
