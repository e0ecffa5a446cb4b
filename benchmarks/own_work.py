"""What `own_code.py` measures: a torch module, and a function that needs none.

python benchmarks/own_work.py    the module by torch.utils.benchmark; its median, in ms
"""

from __future__ import annotations

import hashlib
from typing import Any

_DATA = bytes(range(256)) * 1024


def digest() -> str:
    """A function that does the same work each time: SHA-256 of 256 KiB."""
    return hashlib.sha256(_DATA).hexdigest()


digest.example_inputs = ()  # type: ignore[attr-defined]


def network(width: int = 256) -> Any:
    """Four layers, and what they are fed: a step of some 0.15 ms."""
    import torch

    layers = [torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)]
    return torch.nn.Sequential(*layers, torch.nn.LayerNorm(width)), (torch.randn(1, width),)


def wide_network() -> Any:
    """The same four layers, sixteen times as large: a step of one to two milliseconds."""
    return network(1024)


def main() -> None:
    import torch
    from torch.utils.benchmark import Timer

    torch.set_num_threads(1)
    module, example = network()
    module.eval()
    with torch.inference_mode():
        timer = Timer("module(*example)", globals={"module": module, "example": example})
        timer.timeit(200)
        print(timer.blocked_autorange(min_run_time=1.0).median * 1e3)


if __name__ == "__main__":
    main()
