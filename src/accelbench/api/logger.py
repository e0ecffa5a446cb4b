"""`BenchmarkLogger`: the guide's CSV, written and read back."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.visible import from_csv_cell, in_quotes
from accelbench.exchange import guide_csv
from accelbench.exchange.writing import write_new
from accelbench.store.files import REAL_FILES, explained

if TYPE_CHECKING:
    import pandas as pd


class BenchmarkLogger:
    """One CSV of results in a folder.

    Args:
        output_dir: The folder; made when something is written.
        filename: The file in it: read, or added to. Without one, the first result begins
            a new file, benchmark_results_<YYYYMMDD_HHMMSS>.csv.
    """

    def __init__(
        self, output_dir: str | os.PathLike[str] = "results/raw", filename: str | None = None
    ) -> None:
        self.output_dir = Path(output_dir)
        if filename is not None and Path(filename).name != filename:
            raise UsageError(
                f"{in_quotes(filename)} is not a plain file name.",
                "Put its folder into output_dir.",
            )
        self._filename = filename

    @property
    def path(self) -> Path | None:
        """The file; None as long as nothing has begun it."""
        return None if self._filename is None else self.output_dir / self._filename

    def log_result(self, result: Mapping[str, Any]) -> None:
        """Add one result."""
        self.log_results([result])

    def log_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Add results. A new file appears whole or not at all; one that is there is added to."""
        path = self.path
        if path is not None and path.exists():
            self._add_to(path, results)
            return
        name = self._filename or guide_csv.csv_name(datetime.fromtimestamp(time.time(), UTC))
        written = write_new(self.output_dir, name, guide_csv.encode(results, header=True))
        self._filename = written.name

    def _add_to(self, path: Path, results: Sequence[Mapping[str, Any]]) -> None:
        with explained("Writing the file", path):
            with path.open(encoding="utf-8", newline="") as stream:
                first = stream.readline()
            if guide_csv.header_of(first) != guide_csv.COLUMNS:
                raise UsageError(
                    f"{path} has other columns than these results.", "Choose another file name."
                )
            fd = REAL_FILES.open_append(path)
            try:
                REAL_FILES.write(fd, guide_csv.encode(results, header=False))
                REAL_FILES.sync(fd)
            finally:
                REAL_FILES.close(fd)

    def read_results(self) -> pd.DataFrame:
        """Every result of the file, a row each; what is not known is NaN."""
        path = self.path
        if path is None:
            raise UsageError(
                "This logger has written nothing yet.", "Name the file to read with filename."
            )
        if not path.is_file():
            files = sorted(p.name for p in self.output_dir.glob("*.csv"))[-3:]
            raise UsageError(
                f"There is no file {path}.",
                f"In that folder: {', '.join(files)}." if files else "That folder has no CSV.",
            )
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise MissingExtraError("pandas", "frames", "Reading results as a DataFrame") from error
        frame = pd.read_csv(path)
        for name in frame.select_dtypes(include=("object", "string")):
            frame[name] = frame[name].map(_as_written)
        if "input_shape" in frame:
            frame["input_shape"] = frame["input_shape"].map(_shape, na_action="ignore")
        return frame


def _as_written(cell: Any) -> Any:
    """A cell as it was before it was made harmless; a column may hold no text at all."""
    return from_csv_cell(cell) if isinstance(cell, str) else cell


def _shape(text: str) -> Any:
    """(1, 3, 224, 224) as a tuple again; what is not one stays as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
