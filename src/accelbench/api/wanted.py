"""What a call of the benchmark runner asks for: checked before anything is detected."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from accelbench.api.config import check_count, check_counts
from accelbench.catalog.find import find
from accelbench.catalog.selection import choose
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.precision import PRECISIONS, parse_precision
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import FAMILIES, Mode
from accelbench.hardware.names import platform_named, refuse_unknown_platform
from accelbench.run.plan.request import AUTO, AUTO_STRATEGY, STRATEGIES, Distribution, Request
from accelbench.run.plan.run_settings import RunSettings
from accelbench.runtimes.shared.names import runtime_named
from accelbench.select.query import validation

#: What drawing numbers takes.
_LARGEST_SEED = 2**63 - 1
_VERIFY = ("auto", "require", "off")


@dataclass(frozen=True)
class BenchmarkRequest:
    """How models are to be measured.

    Attributes:
        hardware: A platform, such as 'cuda' or 'cuda:1'; None or 'auto' takes the selector's.
        batch_sizes: Items in one step; None takes 1, 8, 32 and 128, as memory allows.
        mode: 'inference' or 'training'.
        precision: 'fp32', 'fp16', 'bf16', 'int8', or as the guides spell them.
        framework: The runtime, such as 'pytorch'; None takes the platform's own, or what a
            choice rests on.
        available_hardware: Platforms that may be chosen; None: all that are here.
        sequence_length: Tokens in one item; None takes the model's own.
        iterations: Exactly so many samples; None samples until the figure is known.
        warmup: Exactly so many steps before; None until they are steady.
        launches: Fresh processes for each batch size; verdicts need five or more.
        seed: Of weights and inputs.
        verify: 'auto', 'require' or 'off': outputs against PyTorch in fp32 on the CPU.
        budget: Seconds for the whole run.
        energy: Whether energy and power are measured as well, where there is a meter.
        processes: That make each step together, each on a device of its own, on a CPU on a share
            of its cores; 1 for one process. One process is measured as well.
        strategy: How they share it: 'ddp', 'fsdp2' or 'tp'; 'auto' takes the first that fits.
        label: A name for the run.
    """

    hardware: str | None = None
    batch_sizes: Sequence[int] | None = None
    mode: str = Mode.INFERENCE.value
    precision: str = "fp32"
    framework: str | None = None
    available_hardware: Sequence[str] | None = None
    sequence_length: int | None = None
    iterations: int | None = None
    warmup: int | None = None
    launches: int = 1
    seed: int = 0
    verify: str = "auto"
    budget: float | None = None
    energy: bool = False
    processes: int = 1
    strategy: str = AUTO_STRATEGY
    label: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            UsageError: one sentence, and what to use instead.
        """
        self._check_places()
        self._check_words()
        self._check_amounts()

    def _check_places(self) -> None:
        names = [] if self.chosen else [str(self.hardware)]
        allowed = validation.names("available_hardware", self.available_hardware)
        if allowed == []:
            raise UsageError("available_hardware is empty.", "Name at least one, or leave it out.")
        for name in (*names, *(allowed or ())):
            refuse_unknown_platform(name)

    def _check_words(self) -> None:
        if self.mode not in tuple(Mode):
            raise UsageError(
                f"There is no mode {in_quotes(self.mode)}.", f"Modes: {', '.join(Mode)}."
            )
        parse_precision(validation.word("precision", self.precision, PRECISIONS))
        if self.framework is not None:
            runtime_named(str(self.framework), "framework")
        if self.verify not in _VERIFY:
            raise UsageError(f"verify takes {', '.join(_VERIFY)}, not {in_quotes(self.verify)}.")
        if not isinstance(self.energy, bool):
            raise UsageError(f"energy takes True or False, not {in_quotes(self.energy)}.")
        known = (AUTO_STRATEGY, *STRATEGIES)
        if self.strategy not in known:
            raise UsageError(
                f"There is no strategy {in_quotes(self.strategy)}.",
                f"Strategies: {', '.join(known)}.",
            )
        if self.label is not None:
            label = validation.word("label", self.label, advice="Use one line of text.")
            if not label.isprintable():
                raise UsageError(
                    f"The label {in_quotes(label)} has characters that cannot be shown.",
                    "Use one line of text.",
                )

    def _check_amounts(self) -> None:
        if self.batch_sizes is not None:
            check_counts("batch_sizes", self.batch_sizes, least=1)
        for parameter, value, least in (
            ("sequence_length", self.sequence_length, 1),
            ("iterations", self.iterations, 1),
            ("warmup", self.warmup, 0),
            ("launches", self.launches, 1),
            ("processes", self.processes, 1),
            ("seed", self.seed, 0),
        ):
            if value is not None or parameter in ("launches", "processes", "seed"):
                check_count(parameter, value, least)
        if self.seed > _LARGEST_SEED:
            raise UsageError(f"seed takes a whole number below 2**63, not {self.seed}.")
        if self.budget is not None:
            validation.amount("budget", self.budget, "Use seconds, such as 600.")

    @property
    def chosen(self) -> bool:
        """Whether the selector names the hardware."""
        return self.hardware is None or str(self.hardware).lower() == AUTO

    def request(self, models: Sequence[ModelSpec]) -> Request:
        """The same, as plans are made of it."""
        return Request(
            models=tuple(models),
            hardware=(AUTO if self.chosen else platform_named(str(self.hardware)),),
            runtimes=(runtime_named(str(self.framework)),) if self.framework else (),
            batch_sizes=tuple(self.batch_sizes or ()),
            sequence_lengths=(self.sequence_length,) if self.sequence_length else (),
            precisions=(parse_precision(self.precision),),
            modes=(Mode(self.mode),),
            distribution=self.distribution,
        )

    @property
    def distribution(self) -> Distribution | None:
        """How several processes share a step; None where one makes it."""
        return Distribution(self.processes, self.strategy) if self.processes > 1 else None

    def settings(self, run_id: str) -> RunSettings:
        """The part that the conductor needs."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        known = {name: values[name] for name in RunSettings.names() if name in values}
        return RunSettings.from_dict({**known, "run_id": run_id})


def wanted(**parameters: Any) -> BenchmarkRequest:
    """How models are to be measured, by what a call says.

    Raises:
        UsageError: there is no such parameter, or it is not what is meant.
    """
    known = [field.name for field in fields(BenchmarkRequest)]
    for name in parameters:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"There is no parameter {in_quotes(name)}.", hint)
    return BenchmarkRequest(**parameters)


def model_named(name: str, family: str | None) -> ModelSpec:
    """The catalogue's model, seen to be of the family that is said.

    Raises:
        UsageError: it is not, or there is no such model or family.
    """
    spec = find(
        validation.word("model_name", name, advice="List the models with: accelbench models")
    )
    if family is None:
        return spec
    if validation.word("model_family", family, FAMILIES).replace("-", "_").lower() not in FAMILIES:
        raise UsageError(
            f"There is no model family {in_quotes(family)}.",
            f"Known families: {', '.join(FAMILIES)}.",
        )
    try:
        choose([name], categories=[family])
    except UsageError as error:
        raise UsageError(
            f"{name} is not of the family {family}: it is of {spec.family.value}.",
            "Leave model_family out: it is known from the model.",
        ) from error
    return spec
