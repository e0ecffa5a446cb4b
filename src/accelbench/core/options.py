"""A runtime's own options: declared on its card, set by name, part of what is asked.

--option openvino.hint=throughput

Settings of a job: what a worker needs of a case beside the case itself.

A further one is a field here, an option of the command, and whatever runtime heeds it: between
them it travels as `JobSettings`, over the wire and in journals by its fields' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from accelbench.core.case import Option
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

_WRITTEN = re.compile(r"(?P<runtime>[\w-]+)\.(?P<name>[\w-]+)=(?P<value>.*)", re.DOTALL)
#: A comma within a value is the value's.
_BETWEEN = re.compile(r",(?=[\w-]+\.[\w-]+=)")
_TRUTH = {
    **dict.fromkeys(("yes", "true", "on", "1"), True),
    **dict.fromkeys(("no", "false", "off", "0"), False),
}


@dataclass(frozen=True)
class RuntimeOption:
    """One thing that a runtime can be told beside what is asked of all.

    A session finds it under its name in the options of its case, if it was set to
    something else than the default.
    """

    name: str
    about: str  # what it does, as the rest of a sentence
    kind: Literal["text", "number", "truth"] = "text"
    choices: tuple[str, ...] = ()  # of a text; empty: any
    default: Option | Mapping[str, Option] | None = None  # by platform, where they differ

    def default_on(self, hardware: str) -> Option | None:
        """What is meant on a platform where nothing is set."""
        return self.default.get(hardware) if isinstance(self.default, Mapping) else self.default

    @property
    def takes(self) -> str:
        """What may be said, in words."""
        if self.kind == "truth":
            return "yes or no"
        if self.kind == "number":
            return "a whole number"
        return " or ".join(self.choices) or "any text"

    def read(self, text: str) -> Option | None:
        """The value that a text means; None where it means none."""
        if self.kind == "truth":
            return _TRUTH.get(text.lower())
        if self.kind == "number":
            return int(text) if text.lstrip("-").isdecimal() else None
        return text if not self.choices or text in self.choices else None


@dataclass(frozen=True)
class Setting:
    """One option as it was written."""

    runtime: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.runtime}.{self.name}={self.text}"


def written(values: Iterable[str] | None) -> list[Setting]:
    """Settings as people write them, with commas between several.

    Raises:
        UsageError: what is written is none, or sets the same twice.
    """
    settings: dict[tuple[str, str], Setting] = {}
    for word in (word for value in values or () for word in _BETWEEN.split(value)):
        match = _WRITTEN.fullmatch(word.strip())
        if match is None:
            raise UsageError(
                f"--option takes RUNTIME.NAME=VALUE, not {in_quotes(word)}.",
                "For example: --option openvino.hint=throughput",
            )
        setting = Setting(match["runtime"], match["name"], match["value"])
        if (setting.runtime, setting.name) in settings:
            raise UsageError(
                f"{setting.runtime}.{setting.name} is set twice.",
                "A run has one value of each option.",
            )
        settings[setting.runtime, setting.name] = setting
    return list(settings.values())


def meant(setting: Setting, declared: Sequence[RuntimeOption]) -> Option:
    """The value of a setting, seen to be one that the runtime knows.

    Raises:
        UsageError: with what it knows.
    """
    option = next(
        (runtime_option for runtime_option in declared if runtime_option.name == setting.name), None
    )
    if option is None:
        known = "; ".join(
            f"{runtime_option.name} ({runtime_option.takes})" for runtime_option in declared
        )
        raise UsageError(
            f"The runtime {setting.runtime} has no option {in_quotes(setting.name)}.",
            f"It has: {known}." if known else "It has none of its own.",
        )
    value = option.read(setting.text)
    if value is None:
        raise UsageError(
            f"{setting.runtime}.{setting.name} takes {option.takes}, not {in_quotes(setting.text)}."
        )
    return value


def on_purpose(
    values: Mapping[str, Option], declared: Sequence[RuntimeOption], hardware: str
) -> dict[str, Option]:
    """Without those that say what is meant anyway: they would name one question twice."""
    defaults = {
        runtime_option.name: runtime_option.default_on(hardware) for runtime_option in declared
    }
    return {name: value for name, value in values.items() if value != defaults.get(name)}


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
