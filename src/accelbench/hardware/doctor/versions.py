"""Requirements as package metadata spells them, and whether a version meets them. Pure.

Enough of PEP 440 and 508 for what packages of this project's extras say; whatever
is spelled otherwise is not judged, so that no clash is invented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?$")
_EXTRA = re.compile(r"^extra\s*==\s*['\"]([^'\"]+)['\"]$")
_CLAUSE = re.compile(r"^(===|==|!=|>=|<=|~=|>|<)\s*([0-9][\w.+!-]*?)(\.\*)?$")
_RELEASE = re.compile(r"^v?(\d+(?:\.\d+)*)((?:[._-]?(?:a|b|c|rc|alpha|beta|dev|pre)[\d.]*)?)")


@dataclass(frozen=True)
class Requirement:
    """A package, the versions of it that will do, and when it is wanted."""

    name: str
    spec: str
    extra: str = ""  # the extra that asks for it
    conditional: bool = False  # another marker stands before it, which is not judged


def parse(text: str) -> Requirement | None:
    """A line of Requires-Dist; None where it cannot be read."""
    match = _NAME.match(text)
    if match is None:
        return None
    name, spec, marker = match.group(1), match.group(2).strip(), (match.group(3) or "").strip()
    extra = _EXTRA.match(marker)
    named = normal(name)
    return Requirement(named, spec, extra.group(1) if extra else "", bool(marker) and not extra)


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def meets(version: str, spec: str) -> bool | None:
    """Whether a version is among those asked for; None where that cannot be judged."""
    have = _key(version)
    if have is None:
        return None
    answers = [_meets(have, clause.strip()) for clause in spec.split(",") if clause.strip()]
    if False in answers:
        return False
    return None if None in answers else True


Key = tuple[tuple[int, ...], bool]


def _key(version: str) -> Key | None:
    """The release and whether it is a final one: 2.0rc1 comes before 2.0. Local parts are out."""
    match = _RELEASE.match(version.strip())
    if match is None or "!" in version:
        return None
    parts = tuple(int(part) for part in match.group(1).split("."))
    while len(parts) > 1 and parts[-1] == 0:
        parts = parts[:-1]
    return parts, not match.group(2)


def _meets(have: Key, clause: str) -> bool | None:
    match = _CLAUSE.match(clause)
    want = _key(match.group(2)) if match else None
    if match is None or want is None:
        return None
    sign = match.group(1)
    if sign == "~=" or (match.group(3) and sign in ("==", "!=")):
        return _family(have, match.group(2), sign)
    if match.group(3) or sign == "===":
        return None
    return {
        "==": have == want,
        "!=": have != want,
        ">=": have >= want,
        "<=": have <= want,
        ">": have > want,
        "<": have < want and have[0] != want[0],  # 2.0rc1 is not below 2.0 for an index
    }[sign]


def _family(have: Key, text: str, sign: str) -> bool:
    """==1.2.* and ~=1.2.3, which is >=1.2.3, ==1.2.*"""
    stated = [int(part) for part in re.findall(r"\d+", text)]
    head = tuple(stated[:-1] if sign == "~=" else stated)
    padded = (*have[0], *([0] * len(head)))[: len(head)]
    same = padded == head
    if sign == "~=":
        want = _key(text)
        return same and want is not None and have >= want
    return same if sign == "==" else not same
