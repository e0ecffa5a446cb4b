"""Settings of a run: how it goes about its cases, and what each of its jobs is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from accelbench.core.case import Case
from accelbench.core.job_settings import JobSettings

DEFAULT_TIMEOUT = 600.0


@dataclass(frozen=True)
class RunSettings:
    """How a run goes about its cases."""

    run_id: str = ""  # given when the run starts
    job: JobSettings = field(default_factory=JobSettings)  # what workers are told
    launches: int = 1
    iterations: int | None = None
    warmup: int | None = None
    timeout: float = DEFAULT_TIMEOUT  # for opening a model, and for each case
    budget: float | None = None  # seconds for the whole run
    verify: str = "auto"  # auto · require · only · off
    fix: bool = True  # try workarounds
    profile: bool = False  # say afterwards where each case's time goes

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON as journals have it: those of a job in one row with the others."""
        body: dict[str, Any] = {}
        for setting in fields(self):
            value = getattr(self, setting.name)
            body |= value.to_dict() if isinstance(value, JobSettings) else {setting.name: value}
        return body

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What `to_dict` has."""
        return tuple(cls().to_dict())

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> RunSettings:
        """The inverse of `to_dict`; what is not said has its default.

        Raises:
            ValueError: a setting is said that this version does not know.
        """
        own = {setting.name for setting in fields(cls)} - {"job"}
        return cls(
            job=JobSettings.from_dict({k: v for k, v in body.items() if k not in own}),
            **{name: value for name, value in body.items() if name in own},
        )

    def with_job(self, **changed: Any) -> RunSettings:
        """The same but for what jobs are given."""
        return replace(self, job=replace(self.job, **changed))

    def of(self, case: Case) -> RunSettings:
        """The same for one case, whose options may set what its job is given."""
        return replace(self, job=self.job.of(case.options))
