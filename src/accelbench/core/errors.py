"""Errors that reach a person: one sentence, what to do next, and an exit code."""

from __future__ import annotations

EXIT_OK = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_CANNOT_TELL = 4
#: What a shell reports for a program whose reader went away: 128 and the number of SIGPIPE.
EXIT_PIPE_CLOSED = 141


class AccelbenchError(Exception):
    """Something the user can act on. `advice` says how."""

    exit_code = EXIT_ENVIRONMENT

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


class UsageError(AccelbenchError):
    """The command's words are off."""

    exit_code = EXIT_USAGE


class SurroundingsError(AccelbenchError):
    """The machine, a file or a package stands in the way."""

    exit_code = EXIT_ENVIRONMENT


def setting_up(extra: str) -> str:
    """The command that installs an extra, wherever accelbench itself was installed from."""
    return f"accelbench setup {extra}"


class MissingExtraError(SurroundingsError):
    """An optional package is absent; names the install that brings it."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed.",
            f"Install it with: {setting_up(extra)}",
        )
        self.package = package
        self.extra = extra


class StoreError(SurroundingsError):
    """The store cannot be read or written."""


#: The advice where what a runtime says of its own work cannot be true.
RUNTIMES_FAULT = (
    "No figure is kept. The fault is in the runtime or its plugin: report it there, or measure with"
    " another (--framework)."
)


class CaseError(AccelbenchError):
    """A case cannot be measured; becomes a result with a reason, never a traceback.

    Raised by runtimes inside a worker. `reason` is a short stable token that
    machines can match; the message is the sentence people read.
    """

    status = "failed"

    def __init__(self, reason: str, message: str, advice: str = "") -> None:
        super().__init__(message, advice)
        self.reason = reason


class UnsupportedError(CaseError):
    """This combination is not possible on this target."""

    status = "unsupported"


class OutOfMemoryError(CaseError):
    """The device or the host ran out of memory."""

    status = "out_of_memory"

    def __init__(self, message: str, advice: str = "", reason: str = "out_of_memory") -> None:
        super().__init__(reason, message, advice)
