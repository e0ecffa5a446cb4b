"""An ncnn network of a convolution and a product, written as text and bytes: no converter here."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

TEXT = """7767517
5 5
Input         in0     0 1 in0 {sizes}
Convolution   conv    1 1 in0 1 0=8 1=3 4=1 5=1 6=216{quantised}
ReLU          relu    1 1 1 2
Pooling       pool    1 1 2 3 0=1 4=1
InnerProduct  product 1 1 3 out0 0=4 1=1 2=32
"""
#: How weights begin that are stored in 16 bits, in 8, and as they are.
_HALF, _WHOLE, _FLOATS = 0x01306B47, 0x000D4B38, 0


def write(
    path: Path, sizes: str = "", seed: int = 0, half: bool = False, quantised: bool = False
) -> Path:
    """Write the network with its weights beside it; `sizes` are said in its input's line."""
    random = np.random.default_rng(seed)
    convolution = random.standard_normal((8, 3, 3, 3)).astype(np.float32)
    product = random.standard_normal((4, 8)).astype(np.float32)
    parts = [_stored(convolution, half, quantised), _plain(random.standard_normal(8))]
    if quantised:
        parts += [_plain(np.full(8, 40.0)), _plain(np.full(1, 30.0))]
    parts += [_stored(product, half, quantised), _plain(random.standard_normal(4))]
    text = TEXT.format(sizes=sizes, quantised=" 8=1" if quantised else "")
    if quantised:
        text = text.replace("2=32", "2=32 8=1")
        parts += [_plain(np.full(4, 40.0)), _plain(np.full(1, 30.0))]
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".bin").write_bytes(b"".join(parts))
    return path


def _stored(weights: np.ndarray, half: bool, quantised: bool) -> bytes:
    if quantised:
        values = np.clip(np.round(weights * 40), -127, 127).astype(np.int8)
        return np.uint32(_WHOLE).tobytes() + values.tobytes()
    if half:
        return np.uint32(_HALF).tobytes() + weights.astype(np.float16).tobytes()
    return np.uint32(_FLOATS).tobytes() + weights.tobytes()


def _plain(values: np.ndarray) -> bytes:
    return values.astype(np.float32).tobytes()


def kept() -> Path:
    """The network where every process of the tests finds it."""
    folder = Path(tempfile.gettempdir()) / f"accelbench-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "layers.param"
    if not path.exists():
        made = write(folder / f"{os.getpid()}.param", "0=24 1=24 2=3")
        made.with_suffix(".bin").replace(path.with_suffix(".bin"))
        made.replace(path)
    return path
