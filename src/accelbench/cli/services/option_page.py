"""The reference page of the options of `run`.

`python -m accelbench.cli.services.option_page > docs/run-options.md` writes it.
"""

from __future__ import annotations

from accelbench.core.run_options import GROUPS, PlanSection, RunField, run_fields
from accelbench.present.terminal.terminal import deliver


def reference_page() -> str:
    """Return the page docs/run-options.md: every option of `run` by group."""
    lines = [
        "# Options of `accelbench run`",
        "",
        (
            "Each option has a key of the same meaning in [plan files](plans.md), unless its key is"
            " empty. `accelbench.toml` takes the same keys at its top."
        ),
    ]
    for group in GROUPS:
        lines += ["", f"## {group}", "", "| option | key | default | example |  |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for field in run_fields():
            if field.group == group:
                lines.append(f"| {' | '.join(_cells(field))} |")
    return "\n".join(lines) + "\n"


def _cells(field: RunField) -> list[str]:
    names = ", ".join(f"`{name}`" for name in field.names) or f"`{field.metavar}`"
    key = f"`{field.key}`" if field.section is not PlanSection.NONE else ""
    default = f"`{field.default}`" if field.default not in (None, False, "") else ""
    example = f"`{' '.join(filter(None, (field.option, field.example)))}`" if field.example else ""
    return [names, key, default, example, field.about.replace("|", "\\|")]


if __name__ == "__main__":
    deliver(reference_page(), None)
