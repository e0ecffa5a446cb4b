"""The options of one engine: declared on its card, set by name (--option openvino.hint=latency)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench.core.case import Option
from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

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
    """Return settings as people write them, with commas between several, or raise UsageError."""
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
    """Return the value of a setting; raise UsageError if the runtime does not know it."""
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
