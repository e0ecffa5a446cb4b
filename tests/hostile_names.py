"""Names that somebody chose with bad intent: the one list, for every place that text goes to."""

from __future__ import annotations

#: What a terminal obeys, what breaks a line, what turns text round, what nobody sees.
ACTING = (
    "forged\nbert-base cpu: p50 0.01 ms\r\x0b\x0c\x85\u2028\u2029",
    "esc\x1b[2J\x1b]0;title\x07\x9b31m\x7f\x08 [red]rich[/red] :smile:",
    "\u202egnp.live\u2066\u2067\u2068\u2069\u202a\u202b\u202c\u202d\u200e\u200f\u061c",
    "zero\u200bwidth\u200c\u200d\u2060\ufeff\u00adshy\u3164\u115f\u2800\ufe0f\U000e0041\ue000",
    "tab\tand\x07bell",
    "\t=1+1",
)
#: What a spreadsheet calculates, what a page takes for an element, a reader of Markdown for markup.
MARKUP = (
    '=HYPERLINK("http://example.org")',
    "@octocat +1 #12 | `code` **bold** __b__ <b>x</b> [link](javascript:alert(1)) ![i](x) &lt;",
    "+1+cmd|'/C calc'!A0",
    "-2+3",
    "<script>alert('model')</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE cell; --",
    "../../../etc/passwd",
    "{{ 7 * 7 }}{% raise %}",
    "per%cent%2f..%5c",
)
#: What is only unusual, and stays as it is.
HONEST = ("rocket-🚀-é", "東京 ベンチ")

NAMES = (*ACTING, *MARKUP, *HONEST)
#: One of each kind, where every name costs a visit of a browser.
FEW = (*ACTING[2::2], MARKUP[0], *MARKUP[4:], HONEST[0])
