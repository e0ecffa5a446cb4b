"""Settings of a job: what a worker needs of a case beside the case itself.

A further one is a field here, an option of the command, and whatever runtime heeds it: between
them it travels as `JobSettings`, over the wire and in journals by its fields' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class JobSettings:
    """How a model is opened, whatever the case; the defaults are what nobody asked for."""

    seed: int = 0  # of weights and inputs
    weights: str = "random"  # random · hub · a local path
    data: str | None = None  # a folder of real inputs; None: synthetic ones
    accuracy: str = "auto"  # what accuracy is measured as on labelled data; auto; off
    accuracy_samples: int | None = None  # of that data at most so many; None: all
    preprocessing: str | None = None  # of labelled samples: a recipe's name, or its path
    trust_remote_code: bool = False
    threads: int | None = None  # of the engine; None: its own default
    energy: bool = False  # measure it too, in a pass of its own
    nodes: int = 1  # machines whose processes make a step together
    rendezvous: str | None = None  # host:port where they meet, at the first of them

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, by the fields' names."""
        return asdict(self)

    def of(self, options: Mapping[str, Any]) -> JobSettings:
        """The settings of one case: what its options set on purpose is of the case."""
        return replace(self, **{name: options[name] for name in self.names() if name in options})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields' names, in their order."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> JobSettings:
        """The inverse of `to_dict`; what is not said has its default.

        Raises:
            ValueError: a setting is said that this version does not know. To leave it out would be
                to run something else than was asked for.
        """
        unknown = [name for name in body if name not in cls.names()]
        if unknown:
            raise ValueError(f"this version does not know the setting {', '.join(unknown)}")
        return cls(**body)
