"""Safe display of text from outside, for terminals, tables, spreadsheets and pages.

A model's name, a device's name or an engine's message can contain an escape sequence, a line break,
a character that reverses the direction of text, or markup. Text that leaves the program passes
through the function for its destination here. Invisible and active characters appear as their code
point, `<U+202E>`, in every destination. `visible` keeps text that it has already converted. JSON is
not converted: it carries values to programs, and encodes control characters itself.
"""

from __future__ import annotations

import re
import unicodedata

#: Control, format, surrogate, private, unassigned; ends of lines and of paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and marks without a glyph, which their categories do not show: Unicode's ignorable ones,
#: and the Braille cell without dots.
_BLANK = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x180B, 0x1810)}
    | {*range(0xFE00, 0xFE10)}
    | {*range(0xE0100, 0xE01F0)}
)
#: Spaces that people type; others are too narrow to see.
_SPACES = frozenset(" \u00a0\u3000")
#: Parts of a pictogram: the selector of its plain or coloured form, which the marks of a matrix
#: have, and the joiner of two pictograms that appear as one.
_SIGN = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_FORM = re.compile(f"(?<={_SIGN})<U\\+(FE0[EF])>")
_JOINT = re.compile(f"(?<=[\ufe0f\u2190-\u2bff\U0001f000-\U0001faff])<U\\+200D>(?={_SIGN})")

#: Excel, LibreOffice and Google Sheets calculate a cell that begins with these; the wide forms are
#: those of East Asian keyboards. Text that begins with apostrophes before them gets one more, so
#: that an import can remove exactly the added one.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

#: Markup of Markdown; an underscore between letters is not markup.
_MARKUP = re.compile(r"[\\`*{}\[\]|~$!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
#: Mentions of people and issues: GitHub and GitLab search for them in the rendered page, where no
#: backslash is left to prevent them. An empty entity after the sign does.
_MENTION = re.compile(r"([@#])(?=[A-Za-z0-9])")
#: A heading, a list or a rule, at the beginning of a line.
_OPENING = re.compile(r"([-+=#])|(\d+)([.)])")


class _Spelled(dict[int, str]):
    """Displayed form of each code point, computed once; the table of `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = shown = f"<U+{code:04X}>" if _is_unseen(chr(code)) else chr(code)
        return shown


def _is_unseen(sign: str) -> bool:
    kind = unicodedata.category(sign)
    return kind in _UNSEEN or ord(sign) in _BLANK or (kind == "Zs" and sign not in _SPACES)


_LINE = _Spelled()
_LINES = _Spelled({ord("\n"): "\n"})


def visible(text: str) -> str:
    """Return text in one line, with invisible and active characters as code points: `<U+001B>`."""
    if text.isascii() and text.isprintable():
        return text
    return _with_signs(text.translate(_LINE))


def visible_lines(text: str) -> str:
    """Return visible text that keeps its line breaks, for a traceback or a whole document."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return _with_signs(text.translate(_LINES))


def _with_signs(text: str) -> str:
    return _JOINT.sub("\u200d", _FORM.sub(lambda match: chr(int(match[1], 16)), text))


#: Longest quoted part of a wrong word: a file may contain one of a megabyte.
_BRIEF = 60


def brief(text: str) -> str:
    """Return a quoted text from a file, shortened if it is long."""
    return in_quotes(text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…")


def in_quotes(value: object) -> str:
    """Return a value as an error message quotes it: visible text in quotation marks.

    Values other than text appear as Python spells them; lists and dictionaries are quoted item by
    item.
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
    """Return text that a spreadsheet shows and never calculates.

    Plain numbers such as -3.5 stay numbers.
    """
    shown = visible(text)
    if _FORMULA.match(shown) and not _NUMBER.fullmatch(shown):
        return f"'{shown}"
    return shown


def from_csv_cell(cell: str) -> str:
    """Return the text of a cell that `csv_cell` marked."""
    marked = cell.startswith("'") and _FORMULA.match(cell)
    return cell[1:] if marked else cell


def escape_markdown(text: str, *, begins_line: bool = False) -> str:
    """Return a line or a table's cell without Markdown's markup.

    Addresses stay unchanged: a link made from one leads to the visible address. A dash at the
    beginning of a line would be a list.
    """
    shown = _MARKUP.sub(r"\\\g<0>", visible(text).strip())
    if begins_line and (match := _OPENING.match(shown)):
        sign, number, dot = match.groups()
        opening = f"\\{sign}" if sign else f"{number}\\{dot}"
        shown = opening + shown[match.end() :]
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTION.sub(r"\1&#8203;", shown)


#: Home folder on Linux, macOS and Windows, which contains a person's name.
_HOME = re.compile(r"(?:/home|/Users|\b[A-Za-z]:\\Users)[/\\][^/\\\s'\"]+|/root(?=/|\b)")


def hide_homes(text: str) -> str:
    """Return text in which a home folder, which contains a person's name, is `~`."""
    return _HOME.sub("~", text)
