"""What a word of a command line names: an attribute of a file of Python, or of a module.

Pure but for whether a file or a module is there: nothing is imported.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

#: Of files that are run as Python.
SUFFIX = ".py"
#: The file that is written to make a live object again: no file of its owner's.
LIVE_OBJECT = "live_object.py"
_ATTRIBUTE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")
_NAME = re.compile(r"^[^=/\\:]+$")


@dataclass(frozen=True)
class CodeWord:
    """Where an attribute is.

    Attributes:
        name: what its owner calls it; "" where they call it nothing.
        place: a file's path or the name of a module, as it was written.
        attribute: of it; "" where none is named.
    """

    name: str
    place: str
    attribute: str

    @property
    def is_file(self) -> bool:
        """Whether the place is a file, and not a module that is imported by its name."""
        return self.place.lower().endswith(SUFFIX)

    @property
    def path(self) -> Path:
        """Of the file."""
        return Path(self.place).expanduser()

    def __str__(self) -> str:
        return f"{self.place}:{self.attribute}" if self.attribute else self.place


def code_word(word: str) -> CodeWord | None:
    """What a word names that is no model's name; None where it names no code.

    A module counts where it can be found, from here as `python -m` finds it; a word with a colon
    that is neither is left to whoever knows another meaning of it.
    """
    name, given, rest = word.partition("=")
    if not given or not _NAME.match(name) or not rest:
        name, rest = "", word
    place, _, attribute = rest.rpartition(":")
    if rest.lower().endswith(SUFFIX):
        return CodeWord(name.strip(), rest, "")
    if not place or not _ATTRIBUTE.match(attribute):
        return None
    found = CodeWord(name.strip(), place, attribute)
    return found if found.is_file or _is_module(place) else None


def _is_module(name: str) -> bool:
    """Whether the first package of a dotted name is there; nothing of it is imported."""
    if not _ATTRIBUTE.match(name):
        return False
    top = name.partition(".")[0]
    try:
        return PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is not None
    except (ImportError, ValueError):
        return False
