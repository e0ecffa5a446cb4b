"""How ncnn computes a network, as --option ncnn.kernels names it."""

from __future__ import annotations

#: As ncnn would by itself, or without what makes it fast: packed layouts, Winograd's and GEMM's
#: convolutions, types of 16 bits, threads, and batches: each item is computed alone.
KERNELS = ("optimized", "plain")
