"""Documented limits of devices, found by the names that drivers, tables and people use.

`devices.toml` is the only table of devices: detection, plausibility, simulations, predictions,
prices and imports read it here. One rule holds for products of 16 bits. Calculations take the rate
with sums in fp32, as PyTorch, ONNX Runtime and JAX keep sums in fp32, and the share of it that the
board's power limit leaves. GeForce cards double the rate with sums in fp16. The check of whether a
time is possible uses `highest_rate`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from accelbench.core.errors import UsageError
from accelbench.core.formatting import format_digits
from accelbench.core.precision import PRECISIONS
from accelbench.core.safe_text import in_quotes

#: Types of 16 bits, of which sums may be kept in 16 bits too.
_HALF = ("fp16", "bf16")
_AUTOCAST = "amp-"
_CPU_KINDS = ("desktop CPU", "server CPU")


@dataclass(frozen=True)
class DeviceFacts:
    """The limits of a device, from its vendor's documents.

    Attributes:
        name: as its driver has it.
        teraops: 1e12 operations a second by precision, dense, sums in fp32.
        bandwidth: 1e9 bytes a second; 0 if no document gives it.
        short: the name of `--hardware PLATFORM:NAME`.
        kind: server GPU, desktop CPU, board and the like.
        fp16_sums: the rate of fp16 with sums in fp16; None if no faster.
        tf32: fp32 inputs rounded to TF32; None without such matrix units.
        sustained: the rate of 16-bit types that the board's power limit leaves; None if it leaves
            the documented one.
    """

    name: str
    teraops: Mapping[str, float]
    bandwidth: float
    source: str
    short: str = ""
    kind: str = ""
    platforms: tuple[str, ...] = ()
    memory_gib: float | None = None
    watts: float | None = None
    fp16_sums: float | None = None
    tf32: float | None = None
    sustained: float | None = None

    def __post_init__(self) -> None:
        rates = (*self.teraops.values(), self.memory_gib, self.watts, self.fp16_sums, self.tf32)
        rates = (*rates, self.sustained)
        is_whole = self.name and self.source and self.teraops and self.bandwidth >= 0
        is_known = set(self.teraops) <= set(PRECISIONS)
        if not is_whole or not is_known or any(r is not None and r <= 0 for r in rates):
            raise ValueError(f"the facts of {self.name or 'a device'} are not whole")

    @property
    def half_rate(self) -> float | None:
        """The documented rate of 16-bit types, sums in fp32."""
        return max((self.teraops[name] for name in _HALF if name in self.teraops), default=None)

    @property
    def highest_rate(self) -> float:
        """The rate that no product of 16 bits or more exceeds."""
        wide = [rate for name, rate in self.teraops.items() if name != "int8"]
        return max(*(wide or self.teraops.values()), self.fp16_sums or 0.0)

    def documented_rate(self, precision: str) -> float | None:
        """Return the rate to calculate with in a precision; None if no document gives one."""
        rate = self.teraops.get(precision)
        return self.sustained if self.sustained and rate and precision in _HALF else rate

    def peak(self, precision: str) -> float:
        """Return the rate to calculate with in a precision, or in the next that is documented."""
        half = self.half_rate and (self.sustained or self.half_rate)
        exact = self.documented_rate(precision.removeprefix(_AUTOCAST))
        if precision in ("fp32", "float32", "fp64"):
            return exact or self.teraops.get("fp32") or half or max(self.teraops.values())
        return exact or half or self.teraops.get("fp32") or max(self.teraops.values())

    def operations_per_second(self, precision: str) -> float | None:
        """Return the rate to calculate with in a precision; None if no document gives one."""
        teraops = self.documented_rate(precision)
        return None if teraops is None else teraops * 1e12

    @property
    def bytes_per_second(self) -> float:
        return self.bandwidth * 1e9

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory_gib is None else int(self.memory_gib * 2**30)

    def is_on(self, platform: str) -> bool:
        """Return whether results of a platform can be of this device."""
        if not platform or platform in self.platforms:
            return True
        unit = _unit_of(platform)
        return self.kind != "board" and unit in ("", *self.kind.split()[-1:])


#: The platforms of each kind of unit; other platforms have several or unknown kinds.
_UNITS = {
    "CPU": r"cpu|wasm|.*-cpu",
    "GPU": r"cuda|rocm|mps|directml|webgpu|vulkan|.*-gpu",
    "NPU": r"qnn|hailo|.*-npu",
    "TPU": "tpu",
}


def _unit_of(platform: str) -> str:
    return next((unit for unit, names in _UNITS.items() if re.fullmatch(names, platform)), "")


@lru_cache(maxsize=4096)
def kind_of(platform: str, name: str) -> str:
    """Return the kind of a device, documented or inferred from its platform and its name."""
    facts = facts_of(name, platform)
    if facts is not None:
        return facts.kind
    unit = _unit_of(platform)
    if unit in ("NPU", "TPU"):
        return unit
    text = _normalise_name(name)
    for kind, words in _table()["kinds"]:
        fits = not unit or kind.split()[-1] in (unit, "board", "phone")
        if fits and re.search(rf"\b({words})\b", text):
            return str(kind)
    is_mobile = platform.startswith(("qualcomm", "mobile"))
    return "phone" if is_mobile else f"desktop {unit or 'GPU'}"


# -- the table


@cache
def known_devices() -> tuple[DeviceFacts, ...]:
    """Return every documented device; the first of several variants is the usual one."""
    return tuple(entry.facts for entry in _entries())


def devices_on(platform: str) -> tuple[DeviceFacts, ...]:
    """Return every documented device that engines of a platform can run on."""
    return tuple(facts for facts in known_devices() if platform in facts.platforms)


@cache
def _table() -> dict[str, Any]:
    import tomllib

    text = Path(__file__).with_name("devices.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _facts(group: Mapping[str, Any], row: Mapping[str, Any]) -> DeviceFacts:
    half, memory = row.get("half", 0.0), row.get("memory")
    times = {name: half * group.get(name, 0) for name in ("int8", "tf32", "fp16_sums")}
    rates = {name: row[name] for name in PRECISIONS if row.get(name)}
    if "cores" in row:
        clocks, small = row["cores"] * row["ghz"], row.get("small_cores", 0)
        hybrid = 0.8 * (clocks * 32 + small * row.get("small_ghz", 0) * 16)
        rates["fp32"] = (hybrid if small else clocks * row["operations"]) / 1e3
        if row.get("amx"):
            rates["bf16"] = clocks * row["amx"] / 1e3
    rates = {"int8": times["int8"], **dict.fromkeys(group.get("types", ()), half), **rates}
    sustained, why = _table()["sustained"].get(row["short"], (None, ""))
    return DeviceFacts(
        row["name"],
        {name: float(rates[name]) for name in PRECISIONS if rates.get(name)},
        float(row["bandwidth"]),
        f"{group['source']}; {sustained} in 16 bits at {why}" if why else group["source"],
        row["short"],
        group["kind"],
        tuple(group["platforms"]),
        (memory[0] if isinstance(memory, list) else memory) or None,
        row.get("watts") or None,
        times["fp16_sums"] or None,
        times["tf32"] or None,
        sustained,
    )


# -- names

_NOISE = re.compile(
    r"\b(nvidia|geforce|tesla|amd|radeon|instinct|intel|google|qualcomm|hexagon|graphics|with|gpu"
    r"|dgpu|igpu|cpu|core|processor|edition|generation|gen|data|center|platinum|of|the"
    r"|g?ddr\w+|hbm\w*|blackwell|superchip|grace|hopper|module|card|tensor|desktop)\b"
)
#: Words that distinguish a device from another with the same number.
_OTHER = frozenset((
    *("laptop", "mobile", "notebook", "maxq", "ti", "super", "d", "mig", "ada", "pro", "max"),
    *("ultra", "quadro", "gre", "xt", "xtx", "grid", "sff", "embedded"),
))  # fmt: skip
_SIZES = re.compile(r"\b(\d{1,3})(?: ?gi?b|g)\b")
_FORMS = frozenset({"sxm", "pcie", "nvl", "server", "workstation", "maxq"})
_SPELLINGS = (
    (r"\((r|tm|c|dgpu|igpu)\)|[®™©]", " "),
    (r"[\d.]+ ?[gm]hz( ?[x*×] ?\d+)?", " "),
    (r"[^a-z0-9.+]+|(?<!\d)\.|\.(?!\d)", " "),
    (r"\b\d+ core\b|\b\d+(st|nd|rd|th) gen\b", " "),
    (r"\bmacbook( pro| air)?\b", "apple"),
    (r"\bmax q\b", "maxq"),
    (r"\bpi (?=\d)", "pi"),
    (r"\bryzen (\d )?(?=threadripper)|(?<=\bryzen) \d(?= )", ""),
    (r"\b(rtx|gtx|rx|ryzen|epyc|xeon)(?=a?\d)|\btitan(?=[a-z])", r"\g<0> "),
    (r"(?<=\d{4})(ti|super|d|xtx|xt)\b", r" \1"),
    (r"\bsxm\d\b", "sxm"),
)


def _normalise_name(name: str) -> str:
    text = name.lower()
    for pattern, spelling in _SPELLINGS:
        text = re.sub(pattern, spelling, text)
    return " ".join(text.split())


class _Words(NamedTuple):
    """Words of a name that distinguish devices."""

    words: frozenset[str]
    forms: frozenset[str]
    memory: frozenset[int]
    makers: frozenset[str]


@lru_cache(maxsize=4096)
def _words_of(name: str) -> _Words:
    text = _normalise_name(name)
    memory = frozenset(int(size) for size in _SIZES.findall(text))
    makers = {_table()["makers"].get(word) for word in text.split()} - {None}
    words = frozenset(_NOISE.sub(" ", _SIZES.sub(" ", text)).split())
    # A profile of a virtual GPU, as of "A10-24Q", is a part of a card.
    words |= {"grid"} if any(re.fullmatch(r"\d+[abcq]", word) for word in words) else frozenset()
    return _Words(words - _FORMS, words & _FORMS, memory, frozenset(makers))


@dataclass(frozen=True)
class _Entry:
    """Device, with the names and sizes by which it is found."""

    facts: DeviceFacts
    names: tuple[str, ...]
    memory: tuple[float, ...]

    @cached_property
    def spelt(self) -> tuple[_Words, ...]:
        return tuple(map(_words_of, self.names))

    @cached_property
    def forms(self) -> frozenset[str]:
        return frozenset().union(*(name.forms for name in self.spelt))

    def identity_in(self, asked: _Words) -> frozenset[str] | None:
        """Return the device's own words that a name has, all of one of its names; else None."""
        makers = self.spelt[0].makers
        if makers and asked.makers and not makers & asked.makers:
            return None
        found = [n.words for n in self.spelt if n.words and n.words <= asked.words]
        best = max(found, key=len, default=None)
        others = (asked.words | asked.forms) & _OTHER
        return best if best is not None and others <= best | self.forms else None

    def has_memory(self, sizes: Iterable[int]) -> bool:
        """Return whether a name's size is this device's: 192 GB and 180 GB are the same B200."""
        wanted = list(sizes)
        if not wanted or not self.memory or self.facts.kind == "Apple GPU":
            return True
        return any(abs(size / known - 1) < 0.1 for size in wanted for known in self.memory)


@cache
def _entries() -> tuple[_Entry, ...]:
    also, entries = _table()["also"], []
    for group in _table()["groups"]:
        for cells in group["rows"]:
            row = dict(zip(group["columns"], cells, strict=False))
            memory = row.get("memory") or []
            sizes = tuple(memory if isinstance(memory, list) else [memory])
            names = (row["name"], *also.get(row["short"], ()))
            entries.append(_Entry(_facts(group, row), names, sizes))
    return tuple(entries)


class DeviceMatch(NamedTuple):
    """Device that a name refers to.

    `is_assumed` is whether the name leaves open which of several variants is meant.
    """

    facts: DeviceFacts
    is_assumed: bool


@lru_cache(maxsize=4096)
def match_device(name: str, platform: str = "") -> DeviceMatch | None:
    """Return the device of a driver's or a table's name; None if it is unknown or ambiguous."""
    single = re.sub(r"^1 ?x ", "", name.strip(), flags=re.IGNORECASE)
    if not single or re.match(r"\d+ ?x ", single, re.IGNORECASE):
        return None
    asked = _words_of(single)
    entries = [entry for entry in _entries() if entry.facts.is_on(platform)]
    own = [(identity, e) for e in entries if (identity := e.identity_in(asked)) is not None]
    best = [pair for pair in own if not any(pair[0] < other for other, _ in own)]
    if len({identity for identity, _ in best}) != 1:
        return None
    shared_forms = frozenset().union(*(entry.forms for _, entry in best)) & asked.forms
    fitting = [e for _, e in best if shared_forms <= e.forms and e.has_memory(asked.memory)]
    # Boards have units of several platforms under one name.
    if not fitting or len({e.facts.platforms for e in fitting}) > 1:
        return None
    exact = [e for e in fitting if any(asked[:3] == name[:3] for name in e.spelt)] or [
        e for e in fitting if e.forms == shared_forms and shared_forms
    ]
    return DeviceMatch((exact or fitting)[0].facts, len(fitting) > 1 and len(exact) != 1)


def facts_of(name: str, platform: str = "") -> DeviceFacts | None:
    """Return the facts of a device by the name that a driver or a table gives it."""
    match = match_device(name, platform)
    return None if match is None else match.facts


def find_devices(word: str, platform: str = "") -> list[DeviceFacts]:
    """Return the devices that a person may mean by a word: one, or every candidate.

    A word is a name, a short name, or some words of a name. A number below 100 is an ordinal.
    """
    if re.fullmatch(r"\d{1,2}", word):
        return []
    entries = [e for e in _entries() if not platform or platform in e.facts.platforms]
    match = match_device(word, platform)
    if match is not None and any(e.facts is match.facts for e in entries):
        return [match.facts]
    joined = _normalise_name(word).replace(" ", "")
    exact = [e.facts for e in entries if _normalise_name(e.facts.short).replace(" ", "") == joined]
    asked = _words_of(word)
    # "RTX 3080 12GB" is not short for RTX 3080 Ti, though the plain card has 10 GB.
    is_whole = any(asked.words == name.words for e in entries for name in e.spelt)
    wanted = frozenset() if is_whole else asked.words | asked.forms
    return exact or [
        e.facts for e in entries
        if wanted and e.has_memory(asked.memory)
        and any(wanted <= name.words | e.forms for name in e.spelt)
    ]  # fmt: skip


def find_documented_device(word: str) -> str | None:
    """Return the documented device of a name as PLATFORM:NAME; None if there is none.

    Raises:
        UsageError: several devices may be meant; they are named.
    """
    devices = find_devices(word)
    if len(devices) > 1:
        refuse_several(word, devices)
    return _qualified_name(devices[0]) if devices else None


def refuse_several(word: str, devices: Iterable[DeviceFacts]) -> NoReturn:
    """Raise UsageError for a name that may mean any of several devices, and list them."""
    raise UsageError(
        f"Several documented devices are called {in_quotes(word)}.",
        f"Name one: {', '.join(map(_qualified_name, devices))}.",
    )


def _qualified_name(facts: DeviceFacts) -> str:
    return f"{facts.platforms[0]}:{facts.short}"


def typical_device(platform: str, unit: str = "") -> DeviceFacts | None:
    """Return the usual device of a platform, or of a kind of its units."""
    short = _table()["typical"].get(f"{platform}:{unit}".rstrip(":"))
    return next((facts for facts in devices_on(platform) if facts.short == short), None)


# -- implausible rates

#: An imported result is implausible if its rate exceeds the documented peak by this factor. Boost
#: clocks exceed base clocks by up to 1.6, and sparsity doubles the rate of matrix units.
MAX_SHARE_OF_PEAK = 3.0
#: Bits of a precision with an unknown name: the narrowest type has the highest peak.
_UNKNOWN_BITS = 4
#: Keys of `implausible_rate`, in the order of the calculation.
OPERATIONS, MILLISECONDS, RATE, PEAK = (
    *("operations", "milliseconds"),
    *("operations_per_second", "documented_peak"),
)


@lru_cache(maxsize=4096)
def documented_peak(
    device_name: str, hardware: str, precision: str, device_count: int = 1
) -> float | None:
    """Return the highest documented operations per second of devices; None without a document.

    "2x NAME" is two devices. An unknown precision counts as the narrowest type.
    """
    count, times, single = device_name.partition("x ")
    several = bool(times) and count.isdecimal()
    units = max(device_count, int(count) if several else 1)
    facts = facts_of(single if several else device_name, hardware)
    return None if facts is None else _highest_in(facts, bits_of(precision)) * units * 1e12


def bits_of(precision: str) -> int:
    """Return the number of bits of the narrowest type in the name of a precision."""
    found = [int(bits) for bits in re.findall(r"\d+", precision)]
    known = [bits for bits in found if bits in (4, 8, 16, 32, 64)]
    return min(32, *known) if known else _UNKNOWN_BITS


def describe_rate(rate: Mapping[str, float] | None) -> str:
    """Return the calculation of an implausible rate; empty if there is none."""
    if not rate or not all(rate.get(name) for name in (OPERATIONS, MILLISECONDS, RATE, PEAK)):
        return ""
    return (
        f"{format_digits(rate[OPERATIONS] / 1e9)} GFLOP in {format_digits(rate[MILLISECONDS])}"
        " ms are"
        f" {format_digits(rate[RATE] / 1e12)} TFLOP/s,"
        f" {format_digits(rate[RATE] / rate[PEAK])} times the documented peak of"
        f" {format_digits(rate[PEAK] / 1e12)} TFLOP/s"
    )


def _highest_in(facts: DeviceFacts, bits: int) -> float:
    """Return the highest rate of types of a width; halved bits double the next documented rate."""
    rates = {32: max(facts.teraops.get("fp32", 0.0), facts.tf32 or 0.0)}
    rates[8] = facts.teraops.get("int8", 0.0)
    if facts.kind not in ("board", "NPU"):
        # AVX-512 VNNI multiplies 8 bits at four times the rate of fp32, matrix units at twice 16.
        rates[16] = facts.highest_rate
        rates[8] = max(
            2.0 * facts.highest_rate, 4.0 * rates[32] if facts.kind in _CPU_KINDS else 0.0
        )
    elif facts.half_rate:
        rates[16] = facts.half_rate
    known = {width: rate for width, rate in rates.items() if rate}
    if bits in known:
        return known[bits]
    wider = [width for width in known if width > bits]
    if wider:
        return known[min(wider)] * min(wider) / bits
    return max(known.values())  # a wider type is not faster
