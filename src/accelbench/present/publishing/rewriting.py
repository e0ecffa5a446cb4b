"""A page of the dashboard as a page of a bundle: files of addresses, links within the bundle.
Pure.

What needs a server is left out: filters beside a page, what chooses rows, scripts. A link that
leads nowhere becomes text or goes. All other text stays as it is, so that what was escaped is
escaped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from html.parser import HTMLParser
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from accelbench.core.safe_text import visible
from accelbench.present.dashboard.page_query import exactly_named

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
    """An address within the dashboard."""

    path: str  # as it is, nothing escaped
    query: tuple[tuple[str, str], ...] = ()  # names and values in their order

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
    """What a link of a page leads to; None where that is no page of the dashboard."""
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
    if not _PLAIN.fullmatch(part):
        return f"x-{_digest(part)}"
    # Where capitals do not count, two names are two files all the same.
    return part if part == part.lower() else f"{part.lower()}-{_digest(part)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


#: Files of a bundle that no page of the dashboard is.
OWN = "/table/"
RESULTS_FILE = "results.parquet"


class Unled(Enum):
    """What becomes of a link that leads nowhere."""

    TEXT = "its words stay"
    GONE = "its words go with it"


@dataclass(frozen=True)
class BundleLinks:
    """The links of one bundle."""

    pages: Collection[Address]  # the addresses that have become files
    devices: Collection[str]  # names of devices by which the table is filtered
    platforms: Collection[str]  # the same of platforms

    def led(self, origin: Address, link: str) -> str | Unled:
        """Where a link of a page leads."""
        address = address_of(link, origin)
        if address is None:
            return link
        here, fragment = origin.file, urlsplit(link).fragment
        if address.path.startswith(OWN) or address.path == f"/{RESULTS_FILE}":
            return relative(here, address.path[1:])
        if not of_the_table(address) and address in self.pages:
            return relative(here, address.file) + (f"#{fragment}" if fragment else "")
        asked = self._asked(address)
        if asked is not None:
            return relative(here, Address(TABLE).file) + asked
        if address.family in ("model", "device", "run", "cell") or any(
            name == "sort" for name, _ in address.query
        ):
            return Unled.TEXT
        return Unled.GONE

    def _asked(self, address: Address) -> str | None:
        if of_the_table(address):
            return asked_of_the_table(address)
        name = visible(_name(address))  # as the table has it
        mode = [pair for pair in address.query if pair[0] == "mode"]
        if address.family == "cell" and name and not address.form:
            return f"?{urlencode([('key', name)])}"
        if address.family == "model" and name:
            return f"?{urlencode([('model', exactly_named(name)), *mode])}"
        if address.family == "device" and name in self.devices:
            return f"?{urlencode([('device', name)])}"
        if address.family == "device" and name in self.platforms:
            return f"?{urlencode([('hardware', name)])}"
        return None


def _name(address: Address) -> str:
    named = [value for name, value in address.query if name == "name"]
    return named[0] if named else address.path.partition("/")[2].partition("/")[2]


#: As the server's policy; a page has no say in who frames it.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'none'; base-uri 'none'"
)
#: A picture's dark and narrow looks are one address each: `srcset` has no list and no sizes here.
_LINKED = ("href", "src", "srcset")
_LINKS = re.compile(rf'(\s(?:{"|".join(_LINKED)})=")([^"]*)(")')
_VOID = frozenset(("input", "img", "br", "hr", "meta", "link", "col", "source", "wbr"))
#: What answers nobody without a server; what stands in them goes with them.
_DEAD = frozenset(("script", "button", "select", "textarea", "label", "fieldset", "datalist"))

_AROUND_TABLES = "/compare"

_TAG = re.compile(r"<[^>]+>")  # what stands between two is text
#: What a picture says of each of its marks to who hears it: half of its size.
_SAID_OF_MARKS = re.compile(
    r' (?:aria-(?:label|roledescription)="[^"]*"|role="graphics-[a-z]+"|aria-hidden="true")'
)
#: What becomes of a link: where it leads instead, or what of it stays.
Relink = Callable[[str], str | Unled]
#: Stands for a link that went, until what separates it from others has gone too; no page has it.
_GONE = "<gone>"
_BESIDE_GONE = tuple(
    (re.compile(pattern), "")
    for pattern in (
        rf"<(p|li|nav|figcaption)\b[^>]*>(?:\s|·|{_GONE})*{_GONE}(?:\s|·|{_GONE})*</\1>",
        rf"(?: · {_GONE})+(?= ·|\s*</|$)",
        rf"{_GONE}(?: · )?",
    )
)


def rewritten(page: str, relink: Relink, head: str = "", kept_scripts: tuple[str, ...] = ()) -> str:
    """The page, its links led to where they go in the bundle; `head` stands after its first
    element.
    """
    rewriter = _Rewriter(relink, kept_scripts, head=head)
    rewriter.feed(page)
    rewriter.close()
    text = "".join(rewriter.parts)
    for pattern, instead in _BESIDE_GONE:
        text = pattern.sub(instead, text)
    return text


def links_of(page: str) -> list[tuple[str, str]]:
    """The links of a page that stay in a bundle, each with its element's name."""
    links: list[tuple[str, str]] = []
    finder = _Rewriter(lambda link: link, (), links)
    finder.feed(page)
    finder.close()
    return links


def silent(picture: str) -> str:
    """An SVG without what it says of each mark, which nobody hears of a picture within a page.

    The page describes it, and has its figures as a table. That on light paper, which can be opened
    by itself, keeps it.
    """
    return _TAG.sub(lambda tag: _SAID_OF_MARKS.sub("", tag[0]), picture)


class _Rewriter(HTMLParser):
    def __init__(
        self,
        relink: Relink,
        kept_scripts: tuple[str, ...],
        links: list[tuple[str, str]] | None = None,
        head: str = "",
    ) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._relink, self._kept, self._links = relink, kept_scripts, links
        self._head = head
        self._left_out: list[str] = []  # elements that are open and left out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text = self.get_starttag_text() or ""
        if self._left_out:
            if tag == self._left_out[0] and tag not in _VOID:
                self._left_out.append(tag)
            return
        named = {name: value or "" for name, value in attrs}
        if self._leaves_out(tag, named):
            if tag not in _VOID:
                self._left_out.append(tag)
            return
        if tag in ("form", "input"):
            return
        led = self._led(text, tag, named)
        if led is None:
            self.parts.append(_GONE)
            if tag not in _VOID:
                self._left_out.append(tag)
            return
        text = led
        if tag == "div" and "sided" in named.get("class", "").split():
            text = text.replace(" sided", "")  # what stood beside is left out
        self.parts.append(text)
        if tag == "meta" and "charset" in named:
            self.parts.append(self._head)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._left_out:
            self.parts.append(self.get_starttag_text() or "")

    def _leaves_out(self, tag: str, named: dict[str, str]) -> bool:
        if tag == "script" and named.get("src", "").startswith(self._kept or ("\0",)):
            return False
        if tag == "form":  # around a table only what picks its rows goes
            return named.get("action") != _AROUND_TABLES
        return tag in _DEAD or (tag == "aside" and "side" in named.get("class", "").split())

    def _led(self, text: str, tag: str, named: dict[str, str]) -> str | None:
        led: str | None = text
        for name in _LINKED:
            if led is not None and name in named and (named[name] or tag == "a"):
                led = self._with(led, tag, name, named[name])
        return led

    def _with(self, text: str, tag: str, name: str, link: str) -> str | None:
        if self._links is not None:
            self._links.append((tag, link))
            return text
        if link.startswith("#"):
            return text
        target = self._relink(link)
        if target is Unled.GONE:
            return None
        if target is Unled.TEXT:
            return re.sub(rf'\s(?:{name}|download|rel)(?:="[^"]*")?(?=[\s>])', "", text)
        escaped = str(target).replace("&", "&amp;").replace('"', "&quot;")

        def replaced(match: re.Match[str]) -> str:
            return f"{match[1]}{escaped}{match[3]}"

        return _LINKS.sub(replaced, text, count=1)

    def handle_endtag(self, tag: str) -> None:
        if self._left_out:
            if tag == self._left_out[0]:
                self._left_out.pop()
            return
        if tag != "form":
            self.parts += ("</", tag, ">")

    def handle_data(self, data: str) -> None:
        self._pass_on(data)

    def handle_entityref(self, name: str) -> None:
        self._pass_on(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._pass_on(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        if not self._left_out:
            self.parts += ("<!", decl, ">")

    def handle_comment(self, data: str) -> None:
        """Comments say nothing to visitors."""

    def _pass_on(self, text: str) -> None:
        if not self._left_out:
            self.parts.append(text)
