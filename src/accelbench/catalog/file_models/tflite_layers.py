"""TensorFlow Lite's operators that multiply by weights. Pure."""

from __future__ import annotations

PRODUCTS = frozenset(
    {
        "FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D",
        "BATCH_MATMUL", "UNIDIRECTIONAL_SEQUENCE_LSTM",
    }
)  # fmt: skip
