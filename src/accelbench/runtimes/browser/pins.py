"""What is fetched for the browser runtime: which packages, which versions, and what of them.

Both come from the npm registry, or what stands for it in the user's npm settings. What comes is
compared with these sums before anything of it is unpacked.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Package:
    """One package of the registry.

    Attributes:
        integrity: its archive's SHA-512, as npm writes it.
        files: what is taken: where it lies in the archive, and its name here.
        licence: of what is taken.
        command: what fetches it, for who is told that it could not be fetched.
    """

    name: str
    version: str
    integrity: str
    files: Mapping[str, str]
    licence: str
    command: str = "accelbench setup browser"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def _same(folder: str, *names: str) -> Mapping[str, str]:
    return MappingProxyType({f"package/{folder}/{name}": name for name in names})


ENGINE = Package(
    "onnxruntime-web",
    "1.30.0",
    "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
    _same(
        "dist",
        "ort.wasm.min.mjs",
        "ort-wasm-simd-threaded.mjs",
        "ort-wasm-simd-threaded.wasm",
        "ort.webgpu.min.mjs",
        "ort-wasm-simd-threaded.asyncify.mjs",
        "ort-wasm-simd-threaded.asyncify.wasm",
    ),
    "MIT",
)

#: A headless Chromium with WebGPU in software and a WebNN that computes on the CPU. It is here
#: for machines without a browser of their own; a newer or an older one is not the same: 147
#: crashed on BERT's mask in WebNN. The second and third are archives, unpacked beside the first.
CHROMIUM = Package(
    "@sparticuz/chromium",
    "153.0.0",
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
    _same("bin", "chromium.br", "swiftshader.tar.br", "al2023.tar.br"),
    "MIT; Chromium: BSD-3 and others",
)


def chromium_runs_here(system: str = sys.platform, machine: str | None = None) -> bool:
    """Whether the packaged browser is for this machine: Linux on x86-64 alone."""
    return system == "linux" and (machine or platform.machine()).lower() in ("x86_64", "amd64")
