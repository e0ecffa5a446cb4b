"""Apple's meters: macOS shows GPU power, clocks and energy to root alone (powermetrics).

What an ordinary user can have is the GPU's memory from the I/O registry.
"""

from __future__ import annotations

import re

from accelbench.hardware.common import Command, HardwareError, NotAvailable, run_command
from accelbench.hardware.telemetry.common import NullTelemetry, asked

_SECONDS = 5.0


class AppleTelemetry(NullTelemetry):
    """The GPU of an Apple chip."""

    source = "ioreg"

    def __init__(self, command: Command = run_command) -> None:
        super().__init__("macOS shows it to root alone, through powermetrics")
        self._command = command

    def device_memory_used(self) -> int | NotAvailable:
        text = asked(
            lambda: self._command(["ioreg", "-r", "-d", "1", "-c", "IOAccelerator"], _SECONDS),
            HardwareError,
            "ioreg",
        )
        if isinstance(text, NotAvailable):
            return text
        match = re.search(r'"In use system memory"=(\d+)', text)
        return int(match[1]) if match else NotAvailable("ioreg shows no GPU memory in use")
