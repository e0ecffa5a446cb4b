"""One word for what is missing, one for what does not apply, on every surface."""

import re
from pathlib import Path

import accelbench
from accelbench.core.formatting import NO_DATA, NOT_APPLICABLE, format_batch

SOURCE = Path(accelbench.__file__).parent
#: Where the guides' word says that a platform has no rating, and where others' texts are read.
_MAY = {
    "core/formatting.py",
    "judge/matrix.py",
    "core/result_statistics.py",
    "exchange/imports/records.py",
    "recommend/matrices.py",
    "present/dashboard/templates/matrix.html",
    "present/publishing/static/words.mjs",
    "present/pages/templates/table_tools.html",
}
_LOOSE = re.compile(r"""(?<![\w/])n/a(?![\w/])|["']not said["']|["'>]not known["'<]""")
#: Why a column is empty is a sentence that the store keeps, and no figure of a page.
_REASONS = {"run/conduct/results.py"}


def test_missing_values():
    # Nothing says for itself that a value is missing.
    found = [
        f"{name}:{at}"
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix in (".py", ".html", ".mjs", ".js")
        and (name := path.relative_to(SOURCE).as_posix()) not in _MAY | _REASONS
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _LOOSE.search(line)
    ]
    assert found == [], "say it by core/formatting.py"
    # The page of a bundle has the same words.
    script = (SOURCE / "present/publishing/static/words.mjs").read_text(encoding="utf-8")
    assert f'NO_DATA = "{NO_DATA}"' in script
    assert f'NOT_APPLICABLE = "{NOT_APPLICABLE}"' in script
    script = (SOURCE / "present/pages/templates/table_tools.html").read_text(encoding="utf-8")
    assert f'text !== "{NO_DATA}" && text !== "{NOT_APPLICABLE}"' in script
    assert [format_batch(batch) for batch in (1, 8, None)] == [
        "batch 1",
        "batch 8",
        "unknown batch",
    ]
