"""A page of the dashboard as a page of a bundle: links that stay within it, nothing that asks.

What needs a server is left out: filters beside a page, what chooses rows, scripts. The text stays
as it is to the letter, so that what was escaped is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

from accelbench.report.publishing.links import Unled

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
    """The page, its links led to where they go in the bundle.

    Args:
        page: as the application gave it.
        relink: where a link leads instead.
        head: stands after the page's first element of its own.
        kept_scripts: beginnings of the addresses of scripts that stay.
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
    """Passes everything through as it is written, but links and what is left out."""

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
        """The element with its links led; None where it goes with one of them."""
        led: str | None = text
        for name in _LINKED:
            if led is not None and name in named and (named[name] or tag == "a"):
                led = self._with(led, tag, name, named[name])
        return led

    def _with(self, text: str, tag: str, name: str, link: str) -> str | None:
        """The element with the link led; None where it goes."""
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
