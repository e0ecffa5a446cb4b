"""Names of models as people spell them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def plain_name(name: str) -> str:
    """A model's name without its owner, and without what people spell in several ways."""
    return "".join(filter(str.isalnum, name.rpartition("/")[2].lower()))


def stored_name(
    names: Sequence[str], models: Mapping[str, object], named: Mapping[str, str]
) -> str:
    """Which stored model is meant: one of these names, else one that is spelled a little apart.

    Args:
        names: what the model is called.
        models: by the names they are stored under.
        named: those names, by what `plain_name` leaves of them.
    """
    exact = (name for name in names if name in models)
    near = (named[plain] for plain in map(plain_name, names) if plain in named)
    return next(exact, "") or next(near, "")
