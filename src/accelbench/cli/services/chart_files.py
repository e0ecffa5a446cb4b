"""Charts as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.exchange.writing import refuse_taken, write_exactly, write_over

if TYPE_CHECKING:
    from accelbench.report.charts.chart import Chart, Picture, Subject


FORMATS = ("png", "svg", "html")


def refuse_undrawable_file(path: Path | None, option: str) -> None:
    """Say before anything is calculated that a picture cannot be written to a file.

    Raises:
        UsageError: its name ends in no format, or is taken.
        MissingExtraError: nothing here draws.
    """
    from accelbench.report.charts.draw import refuse_undrawable

    if path is None:
        return
    if _form(path) not in FORMATS:
        raise UsageError(
            f"{path} is no name of a picture.",
            f"End it with {', '.join(f'.{f}' for f in FORMATS)}.",
        )
    refuse_taken(path)
    refuse_undrawable(option)


def write_picture(path: Path, picture: Picture) -> None:
    """Write a picture in the format that its file's name ends in."""
    data = _drawn(picture, _form(path))
    write_exactly(path.expanduser(), partial(_put, data))


def _form(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def drawn_into(
    folder: Path,
    subject: Subject,
    charts: Mapping[str, Chart],
    forms: Sequence[str] = ("png",),
    name_of_file: str | None = None,
) -> tuple[list[Path], list[str]]:
    """Draw each chart that has anything to show.

    Args:
        folder: where.
        subject: of what.
        charts: which, by name.
        forms: in which formats.
        name_of_file: of the only one; it is new. Others are made anew each time.

    Returns:
        The files, and the names of charts that have nothing to show.
    """
    from accelbench.report.charts.chart import picture

    written, empty = [], []
    for name, chart in charts.items():
        drawing = picture(chart, subject)
        if drawing is None:
            empty.append(name)
            continue
        for form in forms:
            path, data = folder / (name_of_file or f"{name}.{form}"), _drawn(drawing, form)
            if name_of_file is None:
                write_over(path, data)
            else:
                write_exactly(path, partial(_put, data))
            written.append(path)
    return written, empty


def _put(data: bytes, place: Path) -> None:
    place.write_bytes(data)


def _drawn(picture: Picture, form: str) -> bytes:
    from accelbench.report.charts import draw

    if form == "png":
        return draw.png(picture.spec)
    return (draw.svg(picture.spec) if form == "svg" else draw.page(picture)).encode()
