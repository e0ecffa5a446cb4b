"""Errors for users: one sentence, a sentence with the fix, and an exit code."""

from __future__ import annotations

EXIT_OK = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_INCONCLUSIVE = 4
#: Exit code of a program whose output pipe was closed: 128 plus the number of SIGPIPE.
EXIT_PIPE_CLOSED = 141


class AccelbenchError(Exception):
    """Error that the user can fix; `advice` has the fix."""

    exit_code = EXIT_ENVIRONMENT

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


class UsageError(AccelbenchError):
    """The command line or the arguments are wrong."""

    exit_code = EXIT_USAGE


class SurroundingsError(AccelbenchError):
    """The machine, a file or a package prevents the work."""

    exit_code = EXIT_ENVIRONMENT


def setup_command(extra: str) -> str:
    """Return the command that installs an extra, for any kind of installation."""
    return f"accelbench setup {extra}"


class MissingExtraError(SurroundingsError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed.",
            f"Install it with: {setup_command(extra)}",
        )
        self.package = package
        self.extra = extra


class StoreError(SurroundingsError):
    """The store cannot be read or written."""


#: Advice if an engine's report about its own work cannot be true.
ENGINE_FAULT_ADVICE = (
    "No result is kept. The fault is in the engine or its plugin: report it there, or measure with"
    " another engine (--framework)."
)


class CaseError(AccelbenchError):
    """A case cannot be measured; it becomes a result with a reason, without a traceback.

    Engines raise it inside a worker. `reason` is a short stable token for programs, and the message
    is a sentence for people.
    """

    status = "failed"

    def __init__(self, reason: str, message: str, advice: str = "") -> None:
        super().__init__(message, advice)
        self.reason = reason


class UnsupportedError(CaseError):
    """The target cannot run this combination."""

    status = "unsupported"


class OutOfMemoryError(CaseError):
    """The device or the host ran out of memory."""

    status = "out_of_memory"

    def __init__(self, message: str, advice: str = "", reason: str = "out_of_memory") -> None:
        super().__init__(reason, message, advice)
