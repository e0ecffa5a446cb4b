"""What a bundle does not tell: host names, commands, branches, where files of a machine lie.

A store is copied and the copy is told without them, so that no page, picture or file made of it
has them. Host names become numbered machines; a path keeps its last part.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.visible import without_homes
from accelbench.store.database import Database
from accelbench.store.duck import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Keys of what a run recorded whose values are of nobody's business.
_LEFT_OUT = frozenset(
    (
        *("command", "git_branch", "branch", "remote", "python_executable", "executable", "cwd"),
        *("user", "username", "address", "node_ip", "hostname", "host"),
    )
)
#: What every machine has alike is no secret.
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/lib/", "/bin/")
#: A path from the root or a home folder, of two parts or more, or of Windows; not of an address.
_PATH = re.compile(
    r"(?<![\w/:.~+@-])(?:~|/[\w.+@~-]+)(?:/[\w.+@~ -]*[\w.+@~-])+/?"
    r"|(?<!\w)(?:[A-Za-z]:|\\)\\(?:[^\\\s\"'<>|:]+\\)*[^\\\s\"'<>|:]*"
)
#: The same, roughly: which texts are looked at.
_PATH_SQL = r"(/[\w.+@~-]+/)|(~/)|([A-Za-z]:\\)|(\\\\\w)"


@dataclass(frozen=True)
class PublishedStore(Database):
    """A store's copy under the name that its pages have."""

    title: str = field(kw_only=True)

    @property
    def name(self) -> str:
        return self.title


@dataclass(frozen=True)
class PrivateFacts:
    """What is not told.

    Attributes:
        hosts: of each host name, what stands for it.
    """

    hosts: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """A text without paths and host names."""
        shortened = _PATH.sub(_last_part, without_homes(text))
        for host, name in self.hosts.items():
            if host in shortened:
                shortened = re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", name, shortened)
        return shortened

    def value(self, value: Any) -> Any:
        """A JSON value, whatever it has in it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._of_key(str(key), member)
                for key, member in value.items()
                if key not in _LEFT_OUT
            }
        if isinstance(value, list):
            return [self.value(member) for member in value]
        return value

    def _of_key(self, key: str, member: Any) -> Any:
        if key == "machine" and isinstance(member, str):
            return self.hosts.get(member, member)
        return self.value(member)


def copied(database: Database, folder: Path, title: str, *, as_recorded: bool) -> PublishedStore:
    """A copy of a store to make a bundle of.

    Args:
        database: which; nothing of it is changed.
        folder: where the copy lies.
        title: its name on all pages.
        as_recorded: whether nothing is left out.
    """
    path = folder / "published.duckdb"
    with database.asking():
        for suffix in ("", ".wal"):
            source = database.path.with_name(database.path.name + suffix)
            if source.is_file():
                shutil.copyfile(source, path.with_name(path.name + suffix))
    copy = PublishedStore(path, title=title)
    copy.ensure()
    if not as_recorded:
        with connect(path, write=True, apart=True) as con:
            _leave_out(con)
    return copy


def hosts_in(database: Database) -> list[str]:
    """The host names that a store's runs recorded, the oldest run's first."""
    _, rows = database.query(
        "SELECT environment->>'machine' AS host FROM benchmark_runs"
        " WHERE environment->>'source' IS NULL GROUP BY 1"
        " HAVING host IS NOT NULL ORDER BY min(started_at) NULLS LAST, 1"
    )
    return [str(host) for (host,) in rows]


def _leave_out(con: DuckDBPyConnection) -> None:
    told = {
        str(word)
        for (word,) in con.execute(
            "SELECT DISTINCT unnest([hardware, runtime, precision, mode, model]) FROM fact_result"
        ).fetchall()
        if word
    }
    found = con.execute(
        "SELECT environment->>'machine' AS host FROM benchmark_runs GROUP BY 1"
        " HAVING host IS NOT NULL ORDER BY min(started_at) NULLS LAST, 1"
    ).fetchall()
    hosts = {str(host): f"machine {n}" for n, (host,) in enumerate(found, 1)}
    # In free text a host that is named as a platform or a model is that.
    in_text = {host: name for host, name in hosts.items() if host not in told and len(host) > 1}
    facts = PrivateFacts(in_text)
    of_runs = PrivateFacts(hosts)
    rows = con.execute("SELECT rowid, body::VARCHAR FROM fact").fetchall()
    bodies = [(row, _body(str(body), facts, of_runs)) for row, body in rows]
    _replace(con, "fact", "body = new", "fact.rowid", bodies)
    for column, kind in con.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_name = 'fact_result' AND data_type IN ('VARCHAR', 'JSON', 'VARCHAR[]')"
    ).fetchall():
        _texts(con, str(column), str(kind), facts, list(in_text))


def _body(body: str, facts: PrivateFacts, of_runs: PrivateFacts) -> str:
    """What a fact says: host names of its surroundings are names, elsewhere they are text."""
    known = json.loads(body)
    clean = facts.value(known)
    for name in ("environment", "machine"):
        if isinstance(known, dict) and name in known:
            clean[name] = of_runs._of_key(name, known[name])
    return json.dumps(clean)


def _texts(
    con: DuckDBPyConnection, column: str, kind: str, facts: PrivateFacts, hosts: Sequence[str]
) -> None:
    """A column of results, where a path or a host name is in it."""
    where = f'regexp_matches("{column}"::VARCHAR, ?)'
    where += "".join(f' OR contains("{column}"::VARCHAR, ?)' for _ in hosts)
    as_text = f'"{column}"::VARCHAR' if kind != "VARCHAR[]" else f'to_json("{column}")::VARCHAR'
    rows = con.execute(
        f"SELECT DISTINCT {as_text} FROM fact_result WHERE {where}",  # noqa: S608 — our columns
        [_PATH_SQL, *hosts],
    ).fetchall()
    is_text = kind == "VARCHAR"
    changed = []
    for (value,) in rows:
        old = str(value)
        new = facts.text(old) if is_text else json.dumps(facts.value(json.loads(old)))
        changed.append((old, new))
    new_value = "new" if kind != "VARCHAR[]" else "from_json(new, '[\"VARCHAR\"]')"
    _replace(con, "fact_result", f'"{column}" = {new_value}', as_text, changed)


def _replace(
    con: DuckDBPyConnection, table: str, change: str, key: str, pairs: Sequence[tuple[Any, str]]
) -> None:
    """Set what is found under a key, all pairs in one pass."""
    if not pairs:
        return
    olds, news = zip(*pairs, strict=True)
    con.execute(
        "CREATE OR REPLACE TEMP TABLE swapped AS SELECT unnest(?) AS old, unnest(?) AS new",
        [list(olds), list(news)],
    )
    con.execute(f"UPDATE {table} SET {change} FROM swapped WHERE {key} = old")  # noqa: S608


def _last_part(match: re.Match[str]) -> str:
    path = match[0]
    if path.startswith(_SYSTEM):
        return path
    last = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return f"…/{last}" if last and last != "~" else "…"
