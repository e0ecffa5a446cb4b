"""Addresses of the dashboard as files of a bundle, and links from one file to another. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from accelbench.core.visible import visible

#: What the table of results in the browser understands; it asks nobody else.
TABLE = "/results"
_OVERVIEW = "/"
#: What a filter of the table is called in an address, and what else its script understands.
TABLE_NAMES = frozenset(
    (
        *("model", "family", "hardware", "device", "runtime", "precision", "mode", "machine"),
        *("provenance", "status", "from", "to", "key", "cell"),
    )
)
COMPARISON = "/compare"
#: Forms to fill in.
_NEVER = frozenset((COMPARISON, "/runs/compare", "/recommend", "/predict"))
#: Lists whose later pages are pages of a bundle too.
LISTS = frozenset(("/models", "/devices", "/engines"))
#: What only orders or turns a page, or picks rows for one that is not in the bundle.
_OF_A_VISIT = frozenset(("sort", "page", "cell", "key", "download"))
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_FORMS = frozenset(("svg", "png", "html", "csv", "json", "css", "js", "mjs", "ico"))
#: Pages under a name that somebody gave, which may end like a file.
_NAMES = frozenset(("model", "device", "run"))


@dataclass(frozen=True)
class Address:
    """An address within the dashboard.

    Attributes:
        path: as it is, nothing escaped.
        query: names and values in their order.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()

    @property
    def family(self) -> str:
        """What kind of page it is: the first part of its path."""
        return self.path.split("/")[1]

    @property
    def form(self) -> str:
        """The ending of its last part; a page of the dashboard has none."""
        stem, _, ending = self.path.rpartition("/")[2].rpartition(".")
        return ending if stem and ending in _FORMS and self.family not in _NAMES else ""

    @property
    def of_a_visit(self) -> bool:
        """Whether it is one of endless many: an order, a page of a table, a choice of rows."""
        names = [name for name, _ in self.query]
        of_one = self.path.startswith("/chart/") and names == ["cell"]
        return not of_one and not self.of_a_list and any(name in _OF_A_VISIT for name in names)

    @property
    def of_a_list(self) -> bool:
        """Whether it is a later page of a list of everything."""
        return self.path in LISTS and [name for name, _ in self.query] == ["page"]

    @property
    def of_a_look(self) -> bool:
        """Whether it is a picture as a page shows it on dark paper or on a phone, and no link."""
        return self.form == "svg" and any(name in ("theme", "narrow") for name, _ in self.query)

    @property
    def target(self) -> str:
        """As a request has it."""
        query = f"?{urlencode(self.query)}" if self.query else ""
        return quote(self.path) + query

    @property
    def file(self) -> str:
        """The file that it becomes: letters and digits alone, whatever a name has in it."""
        if self.path == _OVERVIEW:
            stem = "index"
        else:
            stem = "/".join(_named(part) for part in self.path.strip("/").split("/"))
        ending = self.form
        stem = stem.removesuffix(f".{ending}") if ending else stem
        if self.query:
            stem += f"-{_digest(urlencode(self.query))}"
        return f"{stem}.{ending or 'html'}"


def address_of(link: str, origin: Address | None = None) -> Address | None:
    """What a link of a page leads to; None where that is no page of the dashboard.

    Args:
        link: as the page has it.
        origin: the page, of which a link may have the query alone.
    """
    parts = urlsplit(link)
    path = unquote(parts.path) or (origin.path if origin else "")
    if parts.scheme or parts.netloc or not path.startswith("/"):
        return None
    return Address(path, tuple(pair for pair in parse_qsl(parts.query) if pair[0] != "download"))


def published(address: Address) -> bool:
    """Whether a bundle may have a page or a picture of it."""
    if address.path in _NEVER or address.form in ("png", "html", "csv"):
        return False
    return not address.of_a_visit


def of_the_table(address: Address) -> bool:
    """Whether the table in the browser answers it."""
    return address.path in (TABLE, COMPARISON)


def asked_of_the_table(address: Address) -> str | None:
    """The query of a link to the table; None where its script does not understand it."""
    if any(name not in TABLE_NAMES for name, _ in address.query):
        return None
    compare = [("compare", "yes")] if address.path == COMPARISON and address.query else []
    asked = [(name, visible(value)) for name, value in address.query]  # as the table has them
    return f"?{urlencode([*asked, *compare])}" if asked else ""


def relative(origin: str, file: str) -> str:
    """The link from one file of the bundle to another, which holds wherever both lie."""
    up = "../" * origin.count("/")
    return up + quote(file)


def _named(part: str) -> str:
    """A part of a path as part of a file's name."""
    if not _PLAIN.fullmatch(part):
        return f"x-{_digest(part)}"
    # Where capitals do not count, two names are two files all the same.
    return part if part == part.lower() else f"{part.lower()}-{_digest(part)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
