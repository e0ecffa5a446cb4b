"""Names of configurations and figures in pictures, made harmless. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from accelbench.core.axes import AXES
from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.devices import device_count_text, engine_packages
from accelbench.core.formatting import format_count
from accelbench.core.rows import Row
from accelbench.core.safe_text import visible
from accelbench.core.vocabulary import SINGLE_STREAM, Provenance
from accelbench.judge.points import Point
from accelbench.judge.questions import DESCRIBING, SHAPES
from accelbench.judge.versions import software
from accelbench.present.texts import phrase

#: A name longer than this is cut in its middle: ends tell names apart.
_LONGEST = 42


def safe(text: object, longest: int = _LONGEST) -> str:
    """A name as a picture has room for it, with what is invisible or would act as its code point.

    A picture is text of somebody's in an XML file: a zero byte would break it, and U+202E would
    turn what stands beside it round.
    """
    plain = visible(str(text))
    if len(plain) <= longest:
        return plain
    head = longest // 2
    return f"{plain[:head]}…{plain[-(longest - head - 1) :]}"


def in_common(together: str) -> list[str]:
    """What all that is drawn has alike; nothing where that is nothing."""
    return [f"All: {together}."] if together else []


#: Where all that pictures leave out stands: no filter tells two devices of a platform apart.
_ALL = phrase("charts.see-report")


def left_out(number: int, noun: str, many: str = "", advice: str = _ALL) -> list[str]:
    """That there is more than is drawn, and how to see it; nothing where there is not."""
    count = format_count(number, f"more {noun}", f"more {many or f'{noun}s'}")
    return [f"{count} not drawn: {advice}."] if number > 0 else []


def emulated(number: int, because: str = phrase("charts.emulated-times")) -> list[str]:
    """That some were measured on a stand-in for their device, and are on no axis of times."""
    return [f"{format_count(number, 'emulated configuration')} not drawn: {because}."] * (
        number > 0
    )


#: Why a figure of memory of such a cell is not drawn.
OF_A_STAND_IN = phrase("charts.ran-on-stand-in")


def days(rows: Iterable[Row]) -> list[str]:
    """From which day to which they were measured; nothing where nobody knows."""
    known = sorted({str(row["started_at"])[:10] for row in rows if row.get("started_at")})
    if not known:
        return []
    return [known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"]


#: The platform, or the device where a platform has several: no column, but what people think of.
PLACE = "place"
#: What ran, where it is not the same of all: no column either.
SOFTWARE = "software"
#: How requests came: of figures that differ in it each says its own.
_SCENARIO = "scenario"
#: How many devices worked on a step, where the place does not say it.
DEVICES = "devices"
#: What is made of several columns, or of none.
_OF_NO_COLUMN = frozenset((PLACE, SOFTWARE, DEVICES, "machine"))
#: How something ran, which is what lines and bars differ in.
WAY = (PLACE, "runtime", "precision", "compiled", "threads", "options", SOFTWARE, "machine")
_ALONG = ("hardware", "device_name", "runtime", "precision", "compiled", "threads", "options")
#: What a panel's cells have in common, however they ran and in whichever batch: the same work.
ALIKE = tuple(name for name in CONFIGURATION_COLUMNS if name not in (*_ALONG, "batch_size"))
#: What was asked, in the order in which people think of it.
EVERYTHING = tuple(
    dict.fromkeys(
        (
            *("model", "mode", PLACE, DEVICES, "runtime", "precision", "batch_size"),
            *(
                name
                for name in CONFIGURATION_COLUMNS
                if name not in ("hardware", "device_name", "world_size")
            ),
            *(SOFTWARE, "machine"),
        )
    )
)
#: What people ask first, and what ran: where cells differ in it each says its own, even if told
#: apart without.
_FIRST = ("mode", _SCENARIO, PLACE, DEVICES, "runtime", "precision", "batch_size", SOFTWARE)
#: What a panel says of all that is in it; threads, seeds and the like are told where they differ.
COMMON = (*("mode", PLACE, DEVICES, "runtime", "precision", "batch_size"), *SHAPES)
_SHORT = {"batch_size": "batch", **{axis.column: axis.short for axis in AXES}}
_BARE = ("model", "mode", PLACE, DEVICES, "runtime", "precision", "scenario", SOFTWARE, "machine")
#: What a submission says of itself at length: names are told apart by it where nothing else does.
_WORDY = frozenset(("Accuracy", "Notes"))
_DEVICE = "device"
#: What all have in common is broken into lines, and cut only where somebody wrote a book.
_LONGEST_TOGETHER = 200
#: Versions that one name says.
_MOST_NAMED = 3
#: Of what several names begin with alike so much is kept where they are cut, and up to so much
#: more until a word begins: "…3 SP2" is of no name that anybody knows.
_KEPT = 2
_OF_A_WORD = 14

#: Of a device's name what its platform's colour and its number say already.
_NOISE = re.compile(
    r"\b(NVIDIA|GeForce|Tesla|Quadro|AMD|ATI|Radeon|Intel|Qualcomm|Apple|Google|Samsung|Graphics"
    r"|CPU|GPU|Generation|Processor|\d+-Core)\b|\((R|TM|C|Proxy)\)|[®™©]|@.*",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)  # asked for every mark of every picture, of a handful of devices
def short_device(name: str) -> str:
    """RTX 4090 for NVIDIA GeForce RTX 4090; the whole name where nothing else is left."""
    return " ".join(_NOISE.sub(" ", name).split()) or name


#: Of each platform the names of its devices.
Devices = Mapping[str, Collection[str]]


def devices_on(points: Iterable[Point]) -> Devices:
    """The devices that points are of, by platform."""
    devices: dict[str, set[str]] = {}
    for point in points:
        if point.row.get("device_name"):
            devices.setdefault(_platform(point), set()).add(str(point.row["device_name"]))
    return devices


@dataclass(frozen=True)
class PointNames:
    """Names of several cells."""

    apart: Sequence[str]  # of each what tells it from the others; alike where nothing does
    together: str  # what all have in common


def told(
    points: Sequence[Point],
    columns: Sequence[str] = EVERYTHING,
    always: Iterable[str] = (),
    longest: int = 44,
    among: Sequence[Point] = (),
    devices: Devices | None = None,
) -> PointNames:
    """Name points by what people ask first and they differ in, and by what else tells them apart.

    In a picture of several kinds, what was not measured says so in its name: a bar may be too short
    for its filling to be seen. A name that is too long leaves out the software, if the rest of the
    name is no other's. `among` are all points of the picture and `devices` all that the reader may
    think of: a platform that has several is named by the device.
    """
    whole = among or points
    rows = _named(points, whole, devices)
    differ = {name for name in _FIRST if len({str(row.get(name)) for row in rows}) > 1}
    needed = {*always, *differ}
    chosen: list[str] = []
    keys: list[tuple[str, ...]] = [()] * len(rows)
    for name in columns:
        finer = [(*key, str(row.get(name))) for key, row in zip(keys, rows, strict=True)]
        if len(set(finer)) > len(set(keys)) or name in needed:
            keys, chosen = finer, [*chosen, name]
    mixed = len({point.kind for point in whole}) > 1
    kinds = [
        f" ({point.kind})" if mixed and point.kind != Provenance.MEASURED else ""
        for point in points
    ]
    names = _cut(_fitting(rows, chosen, [longest - len(kind) for kind in kinds]), kinds, longest)
    apart = [
        f"{name}{kind}" if name or not mixed else point.kind
        for name, kind, point in zip(names, kinds, points, strict=True)
    ]
    common = [
        name
        for name in (*COMMON, _SCENARIO)
        if name not in chosen and len({str(row.get(name)) for row in rows}) == 1
    ]
    if rows[0].get(_SCENARIO) == SINGLE_STREAM:  # how requests came goes without saying there
        common = [name for name in common if name != _SCENARIO]
    return PointNames(apart, safe(_joined(rows[0], common), _LONGEST_TOGETHER))


def cells(rows: Sequence[Row]) -> list[str]:
    """A name for each of several results: its model, and what tells it apart."""
    points = [Point([row], "") for row in rows]
    return [*told(points, EVERYTHING, ("model",), 64).apart] if points else []


def varied(points: Sequence[Point], columns: Iterable[str]) -> list[str]:
    """Those columns that not all cells have in common."""
    return _differing(_named(points, points, None), columns)


def vary(points: Sequence[Point], columns: Sequence[str]) -> bool:
    """Whether not all cells have all of these in common.

    What rows say themselves comes first: of hundreds of groups that nearly always tells it.
    """
    own = [name for name in columns if name not in _OF_NO_COLUMN]
    if _differing([point.row for point in points], own):
        return True
    return bool(varied(points, [name for name in columns if name in _OF_NO_COLUMN]))


def _differing(rows: Sequence[Row], columns: Iterable[str]) -> list[str]:
    return [name for name in columns if len({str(row.get(name)) for row in rows}) > 1]


def unique(names: Sequence[str]) -> list[str]:
    """The same, those that are alike with a number: marks of one name would lie on each other."""
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return labels


def _fitting(rows: Sequence[Row], chosen: Sequence[str], rooms: Sequence[int]) -> list[str]:
    whole = [_joined(row, chosen) for row in rows]
    short = [_joined(row, [name for name in chosen if name != SOFTWARE]) for row in rows]
    seen = Counter(short)
    return [
        rest if len(name) > room and seen[rest] == 1 else name
        for name, rest, room in zip(whole, short, rooms, strict=True)
    ]


def _cut(names: Sequence[str], kinds: Sequence[str], longest: int) -> list[str]:
    cuts = [safe(n, longest - len(kind)) for n, kind in zip(names, kinds, strict=True)]
    alike: dict[str, set[str]] = {}
    for short, name in zip(cuts, names, strict=True):
        alike.setdefault(short, set()).add(name)
    return [
        safe(_from_where_they_differ(name, alike[short]), longest - len(kind))
        for short, name, kind in zip(cuts, names, kinds, strict=True)
    ]


def _from_where_they_differ(name: str, alike: Iterable[str]) -> str:
    several = set(alike)
    if len(several) == 1:
        return name
    # Whatever the first and the last begin with, all between them do.
    pairs = zip(min(several), max(several), strict=False)
    begin = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) - _KEPT
    word = name.rfind(" ", max(0, begin - _OF_A_WORD), max(0, begin)) + 1
    begin = word or begin
    return f"…{name[begin:]}" if begin > 1 else name


def _named(points: Sequence[Point], among: Sequence[Point], devices: Devices | None) -> list[Row]:
    by_platform = devices_on(among) if devices is None else devices
    several = {
        platform: Counter(map(short_device, names))
        for platform, names in by_platform.items()
        if len(names) > 1
    }
    alone = len({_platform(point) for point in among}) == 1
    versions = _versions(among)
    places = [
        _place(point, several, alone) if _platform(point) in several else _platform(point)
        for point in points
    ]
    return [
        {
            **point.row,
            SOFTWARE: _software(point, versions),
            PLACE: place,
            DEVICES: device_count_text(point.row, place),
            "machine": point.machine.split(" (")[0],
        }
        for point, place in zip(points, places, strict=True)
    ]


def _versions(among: Sequence[Point]) -> list[str]:
    """Return as few names of software as tell apart what ran; engines before libraries."""
    ran = {(point.row.get("device_name"), software(point.row)) for point in among}
    every = [{_DEVICE: device, **dict(versions)} for device, versions in ran]
    names = sorted({name for environment in every for name in environment} - {_DEVICE})
    engines = {*engine_packages(), "accelbench"}  # their versions say most
    ours = sorted(
        (name for name in names if name not in DESCRIBING),
        key=lambda name: name.rpartition(".")[2] not in engines,
    )
    theirs = sorted((name for name in names if name in DESCRIBING), key=_WORDY.__contains__)
    return [
        *(own_names := _telling(every, ours, ())),
        *_telling(every, theirs, (_DEVICE, *own_names)),
    ]


def _telling(every: Sequence[Row], names: Iterable[str], known: Sequence[str]) -> list[str]:
    def apart(by: Iterable[str]) -> int:
        chosen = tuple(by)
        return len({tuple(environment.get(name) for name in chosen) for environment in every})

    chosen: list[str] = []
    count = apart(known)
    for name in names:
        now = apart((*known, *chosen, name))
        if now > count:
            chosen, count = [*chosen, name], now
    return chosen


def _software(point: Point, names: Sequence[str]) -> str:
    ran = dict(software(point.row))
    versions = [f"{name.rpartition('.')[2]} {ran[name]}" for name in names if name in ran]
    return ", ".join(versions[:_MOST_NAMED])


def _place(point: Point, several: Mapping[str, Mapping[str, int]], alone: bool) -> str:
    name = str(point.row.get("device_name") or _platform(point))
    short = short_device(name)
    if several[_platform(point)].get(short, 0) > 1:
        short = name
    return short if alone else f"{_platform(point)} {short}"


def _platform(point: Point) -> str:
    return str(point.row.get("hardware"))


def _joined(row: Row, names: Iterable[str]) -> str:
    """Join the words, each once: "openvino", not "openvino · openvino"."""
    words = (_word(name, row.get(name)) for name in names)
    return " · ".join(dict.fromkeys(word for word in words if word))


def _word(name: str, value: object) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return _SHORT.get(name, name) if value else f"not {name}"
    if isinstance(value, Mapping):
        return " ".join(f"{key.rpartition('.')[2]} {setting}" for key, setting in value.items())
    if name in _BARE:
        return str(value)
    return f"{_SHORT.get(name, name.replace('_', ' '))} {value}"
