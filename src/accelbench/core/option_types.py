"""Options of one engine: declared on its card, set by name (--option openvino.hint=latency)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench.core.case import Option
from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

_WRITTEN = re.compile(r"(?P<runtime>[\w-]+)\.(?P<name>[\w-]+)=(?P<value>.*)", re.DOTALL)
#: A comma separates settings only if a setting follows; others belong to the value.
_BETWEEN = re.compile(r",(?=[\w-]+\.[\w-]+=)")
_TRUTH = {
    **dict.fromkeys(("yes", "true", "on", "1"), True),
    **dict.fromkeys(("no", "false", "off", "0"), False),
}


@dataclass(frozen=True)
class RuntimeOption:
    """Option of one engine, in addition to the options of all engines.

    If it is set to another value than its default, the options of a session's case contain it by
    name.
    """

    name: str
    about: str  # its effect, as the rest of a sentence
    kind: Literal["text", "number", "truth"] = "text"
    choices: tuple[str, ...] = ()  # of a text; empty for any
    default: Option | Mapping[str, Option] | None = None  # a mapping if platforms differ

    def default_on(self, hardware: str) -> Option | None:
        """Return the default on a platform."""
        return self.default.get(hardware) if isinstance(self.default, Mapping) else self.default

    @property
    def takes(self) -> str:
        if self.kind == "truth":
            return "yes or no"
        if self.kind == "number":
            return "a whole number"
        return " or ".join(self.choices) or "any text"

    def read(self, text: str) -> Option | None:
        """Return the value of a text; None if it is invalid."""
        if self.kind == "truth":
            return _TRUTH.get(text.lower())
        if self.kind == "number":
            return int(text) if text.lstrip("-").isdecimal() else None
        return text if not self.choices or text in self.choices else None


@dataclass(frozen=True)
class Setting:
    """Value of an option as the user wrote it."""

    runtime: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.runtime}.{self.name}={self.text}"


def parse_settings(values: Iterable[str] | None) -> list[Setting]:
    """Return the settings in texts such as "A.B=1,A.C=2"; raise UsageError for others."""
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


def resolve_setting(setting: Setting, declared: Sequence[RuntimeOption]) -> Option:
    """Return the value of a setting; raise UsageError if the engine does not accept it."""
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


def drop_defaults(
    values: Mapping[str, Option], declared: Sequence[RuntimeOption], hardware: str
) -> dict[str, Option]:
    """Return the values that differ from their defaults, so that a case has one identity."""
    defaults = {
        runtime_option.name: runtime_option.default_on(hardware) for runtime_option in declared
    }
    return {name: value for name, value in values.items() if value != defaults.get(name)}
