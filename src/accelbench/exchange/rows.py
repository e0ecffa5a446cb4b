"""Results as rows: every column of the registry, in order, None where absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.store.fit import fit


def row_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """A result fact's body as the row that the store will show for it, in plain JSON values."""
    return fit(body).row


def entry_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its samples and what each of them covers, so that it stands alone in a file."""
    fitted = fit(body)
    entry = dict(fitted.row)
    if fitted.samples:
        entry["samples"] = {sample.phase: sample.ns for sample in fitted.samples}
        entry["sampling"] = {
            sample.phase: sample.sampling for sample in fitted.samples if sample.sampling
        }
    return entry
