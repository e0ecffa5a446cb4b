"""Text that others chose, as a terminal, a table or a page may hold it: shown, never obeyed. Pure.

A model's name, a device's name or an engine's message can hold an escape sequence, a line break, a
character that turns the direction of what follows, or markup. Wherever text leaves the program it
passes through the function of its sink here. What is invisible or would act is written as its code
point, `<U+202E>`, in every sink alike, and `visible` leaves what it has written as it is.
JSON is left alone: it carries values to programs, and spells control characters itself.
"""

from __future__ import annotations

import re
import unicodedata

#: Control, format, surrogate, private, unassigned; ends of lines and of paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and marks that Unicode calls ignorable, and a Braille cell without a dot: they have no
#: glyph, and their categories do not tell.
_BLANK = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x180B, 0x1810)}
    | {*range(0xFE00, 0xFE10)}
    | {*range(0xE0100, 0xE01F0)}
)
#: Spaces that people type; the others are as wide as a hair, or as nothing.
_SPACES = frozenset(" \u00a0\u3000")
#: What belongs to a sign's picture: the selector of its plain or its coloured form (the marks of a
#: matrix have one), and the joiner between two that are drawn as one.
_SIGN = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_FORM = re.compile(f"(?<={_SIGN})<U\\+(FE0[EF])>")
_JOINT = re.compile(f"(?<=[\ufe0f\u2190-\u2bff\U0001f000-\U0001faff])<U\\+200D>(?={_SIGN})")

#: Excel, LibreOffice and Google Sheets calculate a cell that begins so; the wide forms are those
#: of East Asian keyboards. Marked text that begins with apostrophes gets one more, so that an
#: import knows which one was added.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

#: What Markdown takes for markup; an underscore between letters is none of it.
_MARKUP = re.compile(r"[\\`*{}\[\]|~$!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
#: Names of people, and numbers of issues: GitHub and GitLab look for them in the finished page,
#: where no backslash is left to stop them. An empty entity keeps the two apart.
_MENTION = re.compile(r"([@#])(?=[A-Za-z0-9])")
#: A heading, a list or a rule, which only the beginning of a line can be.
_OPENING = re.compile(r"([-+=#])|(\d+)([.)])")


class _Spelled(dict[int, str]):
    """Each code point as it is shown, found out once; the table of `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = shown = f"<U+{code:04X}>" if _is_unseen(chr(code)) else chr(code)
        return shown


def _is_unseen(sign: str) -> bool:
    kind = unicodedata.category(sign)
    return kind in _UNSEEN or ord(sign) in _BLANK or (kind == "Zs" and sign not in _SPACES)


_LINE = _Spelled()
_LINES = _Spelled({ord("\n"): "\n"})


def visible(text: str) -> str:
    """Text in one line: what is invisible or would act is its code point, `<U+001B>`."""
    if text.isascii() and text.isprintable():
        return text
    return _with_signs(text.translate(_LINE))


def visible_lines(text: str) -> str:
    """The same of a text whose line breaks are our own: a traceback, a whole document."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return _with_signs(text.translate(_LINES))


def _with_signs(text: str) -> str:
    return _JOINT.sub("\u200d", _FORM.sub(lambda match: chr(int(match[1], 16)), text))


#: Of a word that is wrong, what a sentence says: a file may hold one of a megabyte.
_BRIEF = 60


def brief(text: str) -> str:
    """A text from a file in quotes, its beginning where it is long."""
    return in_quotes(text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…")


def in_quotes(value: object) -> str:
    """What was typed or found, as an error quotes it: text between quotes, visible.

    What is no text is spelled as Python does, and what is in lists and dictionaries as here.
    """
    if isinstance(value, list):
        return f"[{', '.join(map(in_quotes, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{in_quotes(a)}: {in_quotes(b)}' for a, b in value.items())}}}"
    if not isinstance(value, str):
        return visible(repr(value))
    mark = '"' if "'" in value and '"' not in value else "'"
    return f"{mark}{visible(str(value))}{mark}"


def csv_cell(text: str) -> str:
    """Text that a spreadsheet shows and never calculates.

    Text that is a plain number stays one: -3.5.
    """
    shown = visible(text)
    if _FORMULA.match(shown) and not _NUMBER.fullmatch(shown):
        return f"'{shown}"
    return shown


def from_csv_cell(cell: str) -> str:
    """The text of a cell that `csv_cell` marked."""
    marked = cell.startswith("'") and _FORMULA.match(cell)
    return cell[1:] if marked else cell


def markdown(text: str, *, begins: bool = False) -> str:
    """Return a line or a table's cell that no reader of Markdown takes for markup.

    Addresses stay as they are: what a reader makes a link of them leads where it says. A dash that
    begins a line would be a list.
    """
    shown = _MARKUP.sub(r"\\\g<0>", visible(text).strip())
    if begins and (match := _OPENING.match(shown)):
        sign, number, dot = match.groups()
        opening = f"\\{sign}" if sign else f"{number}\\{dot}"
        shown = opening + shown[match.end() :]
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTION.sub(r"\1&#8203;", shown)


#: A person's folder on Linux, macOS and Windows, with their name.
_HOME = re.compile(r"(?:/home|/Users|\b[A-Za-z]:\\Users)[/\\][^/\\\s'\"]+|/root(?=/|\b)")


def without_homes(text: str) -> str:
    """Text for others to read, in which a home folder is `~`: its path has the name of a person."""
    return _HOME.sub("~", text)
