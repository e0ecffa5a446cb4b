"""The text of an ncnn network: its layers and what joins them, read without the engine. Pure.

ncnn's own reader writes past its tables where the text says less than it holds, so that this one
looks first: counts that are true, names that are there, results that are made before they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.visible import in_quotes

MAGIC = "7767517"
#: How the same network begins without its names, as ncnn2mem writes it.
BINARY = int(MAGIC).to_bytes(4, "little")
_LONGEST_NAME = 255
_LARGEST = 2**31
_PARAMETERS = re.compile(r'(-?\d{1,9})=("[^"\n]*"|[^\s"]+)(?:\s+|$)')
_WHOLE = re.compile(r"-?\d{1,10}")
_KEYS, _ARRAYS = 32, -23300
#: Axes of a stack of planes: columns, rows, channels.
_PLANES = 3
#: Of a layer's parameters: the sizes of its results, which ncnn's reader takes without counting.
_HINTS = 30


@dataclass(frozen=True)
class NcnnLayer:
    """One layer: what it takes and makes by name, and its parameters as they are written."""

    type: str
    name: str
    takes: tuple[str, ...]
    makes: tuple[str, ...]
    parameters: Mapping[int, str]

    def number(self, key: int, default: int = 0) -> int:
        """A parameter that is a whole number."""
        text = self.parameters.get(key, "")
        return int(text) if _WHOLE.fullmatch(text) else default

    def numbers(self, key: int) -> tuple[int, ...]:
        """A parameter that is a list of whole numbers; empty of any other."""
        words = self.parameters.get(key, "").split(",")
        return tuple(map(int, words)) if all(map(_WHOLE.fullmatch, words)) else ()

    @property
    def hint(self) -> tuple[int, ...]:
        """Sizes of its first result as the file states them: channels, then rows, then columns."""
        hints, results = self.numbers(_HINTS), len(self.makes)
        if not hints:
            return ()
        axes, *sizes = hints[: len(hints) // results]
        if axes == _PLANES and len(sizes) > _PLANES:
            del sizes[_PLANES - 1]  # depth, which planes have not
        return tuple(reversed(sizes[:axes]))


def layers_of(content: bytes) -> tuple[NcnnLayer, ...]:
    """The layers of a network.

    Raises:
        FileRefusedError: it is none, or contradicts itself.
    """
    if content.startswith(BINARY):
        raise FileRefusedError(
            "It is an ncnn network in binary, whose inputs have no names.",
            "Name the .param in text that it was made of.",
        )
    try:
        texts = [line for line in content.decode("utf-8").split("\n") if line.strip()]
    except UnicodeDecodeError as error:
        raise FileRefusedError("It is no text, and no ncnn network.") from error
    head = [line.split() for line in texts[:2]]
    if not head or head[0] != [MAGIC]:
        raise FileRefusedError(f"It is no ncnn network: those begin with {MAGIC}.")
    if len(head) < 2 or len(head[1]) != 2 or not all(map(_is_count, head[1])):
        raise _broken("it does not say how many layers and results it has")
    layer_count, blob_count = map(int, head[1])
    # The engine reads as many as it says: networks are about that have a line more.
    lines = texts[2 : 2 + layer_count]
    if not layer_count or layer_count > len(lines):
        raise _broken(f"it says {layer_count} layers, and has {len(lines)}")
    layers = tuple(map(_layer, lines))
    made = _refuse_loose_ends(layers)
    if not made <= blob_count <= made + layer_count:
        raise _broken(f"it says {blob_count} results of layers, and has {made}")
    return layers


def _layer(text: str) -> NcnnLayer:
    kind, name, takes, makes, *rest = [*text.split(maxsplit=4), "", "", "", ""][:5]
    if not (_is_count(takes) and _is_count(makes)):
        raise _broken(f"{in_quotes(text[:60])} is no layer")
    names, tail = [], rest[0]
    for _ in range(int(takes) + int(makes)):
        word, *further = tail.split(maxsplit=1)[:2] or [""]
        if not word or "=" in word:
            raise _broken(f"layer {in_quotes(name)} names fewer results than it says")
        names.append(word)
        tail = further[0] if further else ""
    if any(len(word.encode()) > _LONGEST_NAME for word in (kind, name, *names)):
        raise _broken(f"a name in it is longer than {_LONGEST_NAME} bytes")
    split = int(takes)
    layer = NcnnLayer(
        kind, name, tuple(names[:split]), tuple(names[split:]), dict(_parameters(name, tail))
    )
    if _HINTS in layer.parameters:
        _refuse_hints(layer)
    return layer


def _parameters(name: str, text: str) -> Iterator[tuple[int, str]]:
    place = 0
    while place < len(text):
        found = _PARAMETERS.match(text, place)
        if found is None:
            raise _broken(f"what layer {in_quotes(name)} is set to is not of the form key=value")
        key, value, place = int(found[1]), found[2], found.end()
        if key <= _ARRAYS:
            key = _ARRAYS - key
            count, *entries = value.split(",")
            if not _is_count(count) or int(count) != len(entries):
                raise _broken(f"a list of layer {in_quotes(name)} is not as long as it says")
            value = ",".join(entries)
        if not 0 <= key < _KEYS:
            raise _broken(f"layer {in_quotes(name)} has a key {key}, which ncnn has not")
        yield key, value


def _refuse_hints(layer: NcnnLayer) -> None:
    """Refuse sizes of results that are fewer than ncnn's reader would take."""
    hints, results = layer.numbers(_HINTS), len(layer.makes)
    each = len(hints) // results if results else 0
    whole = each in (4, 5) and len(hints) == each * results
    if not whole or any(not 1 <= axes < each for axes in hints[::each]):
        raise _broken(f"the sizes that layer {in_quotes(layer.name)} states are not of its results")


def _refuse_loose_ends(layers: Sequence[NcnnLayer]) -> int:
    """How many results there are; each is made once, before it is used."""
    made: set[str] = set()
    for layer in layers:
        for name in layer.takes:
            if name not in made:
                raise _broken(
                    f"layer {in_quotes(layer.name)} takes {in_quotes(name)}, which no layer before"
                    " it makes"
                )
        for name in layer.makes:
            if name in made:
                raise _broken(f"{in_quotes(name)} is made twice")
            made.add(name)
    return len(made)


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 10 and int(word) < _LARGEST


def _broken(why: str) -> FileRefusedError:
    return FileRefusedError(
        f"Its text is not whole: {why}.", "Copy it and its .bin again, or convert it again."
    )
