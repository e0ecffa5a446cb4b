"""docs/from-the-guides.md as it is written: its lines, what they name, and its commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "from-the-guides.md"

WORKS = "works"
#: The state of a line whose hardware an ordinary machine lacks: what shows that it is kept. Its
#: commands are refused here.
LACKING = {
    "cuda": "refuses rightly here: proved by `make test-cuda` on an NVIDIA GPU",
    "rocm": "refuses rightly here: an AMD GPU would prove it, none has yet",
    "mps": "refuses rightly here: an Apple chip would prove it, none has yet",
}


@dataclass(frozen=True)
class Line:
    """One line of the map."""

    document: str
    says: str
    form: str
    state: str

    @property
    def works(self) -> bool:
        return self.state == WORKS

    @property
    def lacks(self) -> str | None:
        """The platform whose absence it shows here."""
        return next((name for name, state in LACKING.items() if state == self.state), None)

    @property
    def references(self) -> list[str]:
        """What the line names in backticks."""
        return re.findall(r"`([^`]+)`", self.form)

    @property
    def commands(self) -> list[str]:
        return [r for r in self.references if r.startswith("accelbench ")]


def read_map() -> list[Line]:
    """Every table line below a document's heading."""
    lines, document = [], ""
    for text in MAP.read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            document = text[3:].strip()
        elif document and text.startswith("| ") and not text.startswith(("| what the", "| ---")):
            cells = re.split(r"(?<!\\)\|", text)[1:-1]
            assert len(cells) == 3, text
            lines.append(Line(document, *(c.strip().replace("\\|", "|") for c in cells)))
    return lines


LINES = read_map()
COMMANDS = sorted({c for line in LINES if line.works for c in line.commands})
#: What ends with a refusal here, and the platform that it is for.
REFUSED = {c: line.lacks for line in LINES if line.lacks for c in line.commands}


def lines_with(command: str, kind: str) -> list[str]:
    """What the lines of a command that is run say it `writes` or `prints`."""
    return [
        reference.partition(" ")[2]
        for line in LINES
        if (line.works or line.lacks)
        and command in line.form  # looked for first: taking lines apart is slow
        if command in line.commands
        for reference in line.references
        if reference.startswith(f"{kind} ")
    ]
