"""Templates, filled: what they print is text, shown and never obeyed.

Pages to be passed on are one file: their style is copied into them. The dashboard serves the
same one. Jinja2 is imported with the first page: commands that make none start without it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.safe_text import visible

if TYPE_CHECKING:
    import jinja2

HERE = Path(__file__).parent
STYLES = HERE / "styles"


def environment(*folders: Path) -> jinja2.Environment:
    """Templates of these folders, and the shared ones."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, HERE / "templates", STYLES]),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A specification's keys stay in their order.
    made.policies["json.dumps_kwargs"] = {}
    return made


def rendered(template: str, **context: object) -> str:
    """A shared template, filled."""
    return _shared().get_template(template).render(context)


@cache
def _shared() -> jinja2.Environment:
    return environment()


class Drawn(str):
    """Markup that a library of ours made, pictures and scripts: it goes into a page as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def _shown(value: object) -> object:
    """Return what a template prints: text is made visible, markup of ours stands as it is."""
    return value if hasattr(value, "__html__") else visible(str(value))
