"""What a result is of, in a line that stays the same: the name that dashboards know a series by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.absent import UNKNOWN_DEVICE, UNKNOWN_ENGINE, UNKNOWN_MODEL
from accelbench.core.axes import AS_TOLD, axes_of
from accelbench.core.devices import sharing
from accelbench.core.visible import visible
from accelbench.core.vocabulary import SINGLE_STREAM, Mode

#: Sizes beside the batch.
_SIZES = axes_of(*AS_TOLD)


def title(row: Mapping[str, Any]) -> str:
    """Everything that was asked and where, and nothing that a later run would change.

    Pages of others show it, which may take what is in it for more than text.
    """
    unit = row.get("device") or row.get("hardware") or UNKNOWN_DEVICE
    words = [
        str(row.get("model") or UNKNOWN_MODEL),
        f"{row.get('runtime') or UNKNOWN_ENGINE}/{unit}",
        str(row.get("precision") or ""),
        f"batch {row['batch_size']}" if row.get("batch_size") else "",
    ]
    words += [axis.label.format(row[axis.column]) for axis in _SIZES if row.get(axis.column)]
    if row.get("mode") == Mode.TRAINING:
        words.append("training")
    if row.get("scenario") not in (None, SINGLE_STREAM):
        words.append(str(row["scenario"]))
    if (row.get("world_size") or 1) > 1:
        words.append(f"{row['world_size']} {sharing(row)}")
    options = row.get("options") or {}
    words += [f"{name}={options[name]}" for name in sorted(options)]
    return visible(" ".join(word for word in words if word))
