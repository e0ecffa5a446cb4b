"""What becomes of profiles while a run makes them: files, where an output folder is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.exchange import profile_file
from accelbench.exchange.writing import inside


@dataclass
class ProfileFiles:
    """Writes each profile as it comes, and says where."""

    output_dir: Path
    written: list[tuple[str, Path]]

    def __call__(self, profile: Mapping[str, Any], record: Path | None) -> None:
        folder = inside(self.output_dir, profile_file.FOLDER)
        first, *beside = profile_file.write(folder, profile, record)
        self.written.append(("Profile", first))
        self.written += [("Profiler's record", path) for path in beside]
