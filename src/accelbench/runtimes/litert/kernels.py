"""Who computes a TensorFlow Lite model, as --option litert.kernels names them."""

from __future__ import annotations

#: XNNPACK what it can and LiteRT's kernels the rest, those alone, or the plain ones in C++ that its
#: authors compare all others with.
KERNELS = ("xnnpack", "builtin", "reference")
