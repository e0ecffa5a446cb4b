"""Names of models as people spell them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def plain_name(name: str) -> str:
    """A model's name without its owner, and without what people spell in several ways."""
    return "".join(filter(str.isalnum, name.rpartition("/")[2].lower()))


def stored_names(
    names: Sequence[str], models: Mapping[str, object], named: Mapping[str, str]
) -> tuple[str, ...]:
    """Which stored models are meant: those of these names, and what is spelled a little apart.

    What somebody else calls resnet50 stays known when resnet-50 has been measured as well. Of
    another owner's model that is only so where none has one of the names.

    Args:
        names: what the model is called.
        models: by the names they are stored under.
        named: those names, by what `plain_name` leaves of them.
    """
    exact = [name for name in names if name in models]
    near = [named[plain] for plain in map(plain_name, names) if plain in named]
    if not exact:
        return tuple(near[:1])
    spelt = {_whole(name) for name in names}
    return tuple(dict.fromkeys([*exact, *(name for name in near if _whole(name) in spelt)]))


def _whole(name: str) -> str:
    """A name with its owner, whatever its spelling."""
    return "".join(char for char in name.lower() if char.isalnum() or char == "/")
