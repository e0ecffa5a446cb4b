"""The candidates of an answer, platforms and devices, and their unusable results. Pure."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real

from accelbench.core.device_facts import facts_of, find_devices, refuse_several
from accelbench.core.errors import UsageError
from accelbench.core.formatting import format_batch
from accelbench.core.formatting import format_count as so_many
from accelbench.core.rows import Json, number
from accelbench.core.safe_text import in_quotes
from accelbench.core.unusable_reasons import explain_unusable
from accelbench.core.vocabulary import HARDWARE
from accelbench.recommend import validation
from accelbench.recommend.config import BROWSERS, DEPLOYMENTS
from accelbench.recommend.evidence.cells import (
    EvidenceAttempt,
    EvidenceCell,
    is_imported,
    is_on,
    rounded,
)

#: Shown only if there are results of them, as in the matrix.
_RARE = ("wasm", "tpu")
#: A machine has one device of it, however many sockets.
_ALONE = "cpu"


@dataclass(frozen=True)
class Candidate:
    """A platform, or one device of it."""

    platform: str
    device: str = ""
    but: tuple[str, ...] = ()  # devices of the platform that are candidates of their own

    @property
    def name(self) -> str:
        return f"{self.platform}:{self.device}" if self.device else self.platform

    def has(self, attempt: EvidenceAttempt) -> bool:
        is_match = attempt.hardware == self.platform and is_on(attempt, self.device)
        return is_match and not any(is_on(attempt, device) for device in self.but)


def candidates(
    words: Sequence[str] | None, measured: Mapping[str, Sequence[str]], others: Iterable[str] = ()
) -> list[Candidate]:
    """Return the named candidates, each once; without names every platform but browsers.

    Args:
        words: platforms, "platform:device", "platform:=its whole name", a part of the name of one
            measured device, or the name of a documented one.
        measured: the devices with results of each platform.
        others: platforms of the configuration or a matrix.
    """
    known = list(dict.fromkeys((*HARDWARE, *measured, *others)))
    words = validation.names("available_hardware", words)
    if words is None:
        return [Candidate(name) for name in every(measured, others) if name not in BROWSERS]
    choices = [_named(word, known, measured) for word in words if word.strip()]
    if not choices:
        raise UsageError("No hardware is named.", f"Name some of {', '.join(known)}.")
    return _apart(dict.fromkeys(choices), measured)


def _apart(named: Iterable[Candidate], measured: Mapping[str, Sequence[str]]) -> list[Candidate]:
    """Let a platform next to devices of it stand for its other devices, if it has any."""
    every = list(named)
    choices = []
    for candidate in every:
        devices = tuple(o.device for o in every if o.platform == candidate.platform and o.device)
        if candidate.device or not devices:
            choices.append(candidate)
        elif set(measured.get(candidate.platform, ("",))) - set(devices):
            choices.append(replace(candidate, but=devices))
    return choices


def every(measured: Mapping[str, Sequence[str]], others: Iterable[str] = ()) -> list[str]:
    """Return every platform; rare ones only if something mentions them."""
    mentions = {*measured, *others}
    known = dict.fromkeys((*HARDWARE, *measured, *others))
    return [name for name in known if name not in _RARE or name in mentions]


def deployed(choices: Sequence[Candidate], where: str, *, all_asked: bool) -> list[Candidate]:
    """Return the candidates of a deployment, one of `DEPLOYMENTS`.

    If all are asked for, these are its platforms. Refuse other deployments.
    """
    if validation.word("deployment", where, DEPLOYMENTS) not in DEPLOYMENTS:
        raise UsageError(
            f"There is no deployment {in_quotes(where)}.", f"There are: {', '.join(DEPLOYMENTS)}."
        )
    platforms = DEPLOYMENTS[where]
    if all_asked:
        return [Candidate(name) for name in platforms]
    return [candidate for candidate in choices if candidate.platform in platforms]


def order_in(where: str) -> Callable[[str], float]:
    """Return the order of equals in a deployment."""
    platforms = DEPLOYMENTS[where]
    return lambda name: float(platforms.index(name))


def placed(encode: Callable[[str], object]) -> Callable[[str], float]:
    """Return the order of equals by an encoding that may be overridden; refuse non-numbers."""

    def order(name: str) -> float:
        place = encode(name)
        if not isinstance(place, Real) or math.isnan(place):
            raise UsageError(
                f"_encode_hardware_type gave {in_quotes(place)} for {name}.",
                "It gives a number: the lower, the earlier among equals.",
            )
        return float(place)

    return order


def _named(word: str, known: Sequence[str], measured: Mapping[str, Sequence[str]]) -> Candidate:
    text = word.strip()
    spelt = {name.lower(): name for name in reversed(known)}
    if text.lower() in spelt:
        return Candidate(text if text in known else spelt[text.lower()])
    platform, colon, device = (part.strip() for part in text.partition(":"))
    if colon and platform.lower() in spelt:
        if not device.removeprefix("="):
            raise UsageError(
                f"{in_quotes(word)} names no device.", f"Leave the colon out, or use {platform}:0."
            )
        return _device(spelt[platform.lower()], device, measured)
    every = [Candidate(name, device) for name, devices in measured.items() for device in devices]
    exact = [candidate for candidate in every if text.lower() == candidate.device.lower()]
    documented = [] if exact else find_devices(text)
    # No import changes which device a name means: that a part of other names is the same is chance.
    if len(documented) == 1:
        on = [c.platform for c in every if facts_of(c.device, c.platform) is documented[0]]
        return _device((on or documented[0].platforms)[0], documented[0].short, measured)
    holding = exact or [
        candidate for candidate in every if text.lower() in candidate.device.lower()
    ]
    if len(holding) == 1:
        return holding[0]
    if holding:
        raise UsageError(
            f"{in_quotes(word)} is a part of {len(holding)} names of devices.",
            f"There are: {', '.join(sorted(candidate.name for candidate in holding))}.",
        )
    if documented:
        refuse_several(word, documented)
    near = difflib.get_close_matches(text.lower(), known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
    raise UsageError(
        f"There is no hardware {in_quotes(word)}.",
        f"{hint} The configuration can bring hardware of your own.",
    )


def _device(platform: str, device: str, measured: Mapping[str, Sequence[str]]) -> Candidate:
    """Return a device by its whole name, by a part that only one has, or as it is given.

    After "=" comes its whole name, whether or not it has results: the device here must not be
    mistaken for one that others have measured.
    """
    if device.startswith("="):
        return Candidate(platform, device[1:])
    if platform == _ALONE and device.isdecimal():
        if int(device):
            raise UsageError(f"There is one device of {platform}.", f"Use {platform}.")
        return Candidate(platform)
    known = measured.get(platform, ())
    exact = [name for name in known if name.lower() == device.lower()]
    documented = [] if exact else find_devices(device, platform)
    if len(documented) == 1:
        same = [name for name in known if facts_of(name, platform) is documented[0]]
        own = documented[0].name
        return Candidate(platform, own if own in same or not same else same[0])
    names = exact or [name for name in known if device.lower() in name.lower()]
    if len(exact or names) == 1:
        return Candidate(platform, (exact or names)[0])
    if names and not device.isdecimal():
        raise UsageError(
            f"{platform}:{device} could be {len(names)} devices.", f"There are: {', '.join(names)}."
        )
    return Candidate(platform, device)


def set_aside(
    candidates: Iterable[Candidate], cells: Sequence[EvidenceCell]
) -> list[dict[str, object]]:
    """Return the unusable results of each candidate, for JSON."""
    return [
        _told(candidate.name, cell)
        for candidate in candidates
        for cell in sorted(cells, key=lambda cell: (cell.row.get("batch_size") or 0, cell.order))
        if candidate.has(cell)
    ]


def sentences_of(
    cases: Sequence[Json], most: int | None = None, memory_mb: float | None = None
) -> Iterator[str]:
    """Yield notes on unusable results, each with its memory relative to a limit."""
    for case in cases[:most]:
        whose = f" by others ({case.get('source') or 'imported'})" if is_imported(case) else ""
        room = _room(case, memory_mb)
        yield f"Measured{whose}, and set aside: {case['text']}: {case['reason']}{room}."
    if most is not None and len(cases) > most:
        yield f"{len(cases) - most} more set aside: --explain."


def _told(name: str, cell: EvidenceCell) -> dict[str, object]:
    row = cell.row
    device = "" if not cell.device or cell.device in name else f" ({cell.device})"
    way = " ".join(str(part) for part in (row.get("runtime"), cell.precision) if part)
    batch = row.get("batch_size")
    return {
        "hardware": name,
        **cell.facts(),
        "launches": cell.launches,
        "memory_mb": row.get("memory_peak_mb"),
        "reason": f"its times are not usable, {explain_unusable(row)}",
        "text": f"{name}{device} {way}, {format_batch(batch)}"
        f" ({so_many(cell.launches, 'launch', 'launches')})",
    }


def _room(case: Json, limit: float | None) -> str:
    took = number(case, "memory_mb")
    if limit is None or took is None:
        return ""
    return f"; its {rounded(took)} MB are {'above' if took > limit else 'within'} {limit:g}"
