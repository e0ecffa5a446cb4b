"""A drawn chart, as a notebook shows it and a file takes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelbench.report.charts.chart import Picture


@dataclass(frozen=True)
class DrawnChart:
    """A drawn chart: a notebook shows it, and a file takes it."""

    picture: Picture

    def _repr_svg_(self) -> str:
        from accelbench.report.charts.draw import svg

        return svg(self.picture.spec)

    def save(self, path: str) -> None:
        """Write it, as PNG or SVG by the path's suffix."""
        from accelbench.report.charts.draw import png

        if path.lower().endswith(".png"):
            Path(path).write_bytes(png(self.picture.spec))
        else:
            Path(path).write_text(self._repr_svg_(), encoding="utf-8")
