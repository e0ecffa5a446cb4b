"""Devices of one platform in shades of its colour, wherever a picture has several. Pure.

Up to six are told apart so. More are not: their names stand beside their marks, and colours that
begin again would say that two devices are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from accelbench.core.rows import Row
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import Spec
from accelbench.report.charts.palette import MOST_SHADES, shades

#: A platform and a device of it → its colour.
DeviceColours = Mapping[tuple[str, str], str]
_PAINTED = ("colour", "paint")


def device_colours(records: Iterable[Row]) -> DeviceColours:
    """The colours of those devices whose platform has others beside them."""
    devices: dict[str, set[str]] = {}
    for datum in records:
        if datum.get("hardware") and datum.get("device"):
            devices.setdefault(str(datum["hardware"]), set()).add(str(datum["device"]))
    return {
        (platform, device): shade
        for platform, names in devices.items()
        if 1 < len(names) <= MOST_SHADES
        for device, shade in zip(sorted(names), shades(colour_of(platform)), strict=False)
    }


def by_device(body: Spec) -> Spec:
    """The body of a picture with each of its devices in its own shade, lines of them as well."""
    colours = device_colours(_records(body))
    if not colours:
        return body
    lines = {
        str(datum["line"]): shade
        for datum in _records(body)
        if "line" in datum and (shade := colours.get(_device(datum)))
    }
    changed = _recoloured(body, colours, lines)
    assert isinstance(changed, dict)
    return changed


def _device(datum: Row) -> tuple[str, str]:
    return str(datum.get("hardware")), str(datum.get("device"))


def _records(value: object) -> Iterator[Row]:
    if isinstance(value, Mapping):
        if isinstance(data := value.get("data"), Mapping):
            yield from data.get("values", ())
        for name, member in value.items():
            if name != "data":
                yield from _records(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _records(member)


def _recoloured(value: object, colours: DeviceColours, lines: Mapping[str, str]) -> object:
    if isinstance(value, list | tuple):
        return [_recoloured(member, colours, lines) for member in value]
    if not isinstance(value, Mapping):
        return value
    made: dict[str, Any] = {}
    for name, member in value.items():
        if name == "data" and isinstance(member, Mapping) and "values" in member:
            made[name] = {**member, "values": _painted(member["values"], colours)}
        elif name == "color" and isinstance(member, Mapping) and member.get("field") == "line":
            made[name] = _scaled(member, lines)
        else:
            made[name] = _recoloured(member, colours, lines)
    return made


def _painted(records: Sequence[Row], colours: DeviceColours) -> list[Row]:
    return [
        {name: _in_shade(name, member, datum, colours) for name, member in datum.items()}
        for datum in records
    ]


def _in_shade(name: str, value: object, datum: Row, colours: DeviceColours) -> object:
    shade = colours.get(_device(datum)) if name in _PAINTED else None
    if shade is None or not isinstance(value, str):
        return value
    # Of a hatching the colour is a part of the pattern's name.
    return value.replace(colour_of(str(datum["hardware"]))[1:], shade[1:])


def _scaled(channel: Mapping[str, Any], lines: Mapping[str, str]) -> Spec:
    scale = channel.get("scale")
    if not isinstance(scale, Mapping) or "range" not in scale:
        return dict(channel)
    pairs = zip(scale["domain"], scale["range"], strict=True)
    return {**channel, "scale": {**scale, "range": [lines.get(n, c) for n, c in pairs]}}
