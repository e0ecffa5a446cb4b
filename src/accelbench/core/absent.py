"""The words for what is not there: the same on every surface, for people. Pure.

Three things are told apart. A value that could be known and is not is `no data`. Where there can be
none, as of the times of an emulated device, it is `n/a`: not applicable. Of a thing that has a name
which nobody said, the word says which thing. Files for programs have null, or nothing.
"""

from __future__ import annotations

#: A value that could be known, and is not.
NO_DATA = "no data"
#: There can be no value: the question does not apply.
NOT_APPLICABLE = "n/a"
#: What is shown instead of an interval that is too wide to be one.
NOT_KNOWN = "not known"
UNKNOWN_DEVICE = "unknown device"
UNKNOWN_ENGINE = "unknown engine"
UNKNOWN_HARDWARE = "unknown hardware"
UNKNOWN_MACHINE = "unknown machine"
UNKNOWN_MODEL = "unknown model"
UNKNOWN_BATCH = "unknown batch"


def batch_text(batch: object) -> str:
    """The size of a batch; one that nobody says is no batch of one."""
    return f"batch {batch}" if batch else UNKNOWN_BATCH
