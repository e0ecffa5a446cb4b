"""What a bundle does not tell: host names, commands, branches, where files of a machine lie.

A store is copied and the copy is told without them, so that no page, picture or file made of it
has them. Host names become numbered machines, also within the ids of what a fleet's nodes measured;
a path keeps its last part. What is secret wherever it stands goes too: passwords, tokens, addresses
of people and of machines, serial numbers.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.facts import utc_now
from accelbench.core.safe_text import hide_homes
from accelbench.store.database import Database
from accelbench.store.duck import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Keys of what a run recorded whose values are of nobody's business, however they are written.
_LEFT_OUT = frozenset(
    (
        *("command", "git_branch", "branch", "remote", "python_executable", "executable", "cwd"),
        *("user", "username", "address", "node_ip", "hostname", "host", "email", "mac", "ip"),
        *("password", "token", "secret", "uuid", "serial", "serial_number", "unique_id"),
        *("ip_address", "mig_instance_of"),
    )
)
#: What every machine has alike is no secret.
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/lib/", "/bin/")
#: A path from the root or a home folder, of two parts or more, or of Windows; not of an address.
_PATH = re.compile(
    r"(?<![\w/:.~+@-])(?:~|/[\w.+@~-]+)(?:/[\w.+@~ -]*[\w.+@~-])+/?"
    r"|(?<!\w)(?:[A-Za-z]:|\\)\\(?:[^\\\s\"'<>|:]+\\)*[^\\\s\"'<>|:]*"
)
#: What stands before a password or the like: token=…
_BEFORE_ONE = r"(?:[\w-]*(?:token|secret|passw(?:or)?d)|api[_-]?key|sig|x-amz-signature)"
#: How tokens of well-known services begin.
_TOKENS = "hf_|gh[opsur]_|github_pat_|glpat-|sk-|xox[abp]-|AKIA"
#: Networks that are nobody's outside, beside 10.
_WITHIN = r"192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])"
#: What goes wherever it stands, each with what stays of it. A version may have four numbers: only
#: such as no network outside has, or has a port, are the address of a machine.
_SECRETS = tuple(
    (re.compile(pattern), kept)
    for pattern, kept in (
        (r"(?<=://)[^/\s@'\"]+(?=@)", "…"),
        (rf"(?i)\b({_BEFORE_ONE}=)[^\s&'\";]+", r"\1…"),
        (rf"\b(?:{_TOKENS})[\w-]{{12,}}", "…"),
        (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b", "…"),
        (r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?=:\d)", "…"),
        (r"(?<![\w.])10(?:\.\d{1,3}){3}(?![\w.])", "…"),
        (rf"(?<![\w.])(?:{_WITHIN})(?:\.\d{{1,3}}){{2}}(?![\w.])", "…"),
        (r"(?i)(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])", "…"),
        (r"(?i)(?<![\w:])f[de][0-9a-f]{2}:[0-9a-f:]*", "…"),
        (r"(?i)\b(?:GPU|MIG)-[0-9a-f][0-9a-f/-]{7,}", "…"),
    )
)
#: A version, or whatever else is dots and numbers alone.
_NUMBERS = re.compile(r"[\d.]*")
#: What a text has that is looked at: the same, roughly.
_LOOKED_AT_SQL = (
    r"(/[\w.+@~-]+/)|(~/)|([A-Za-z]:\\)|(\\\\\w)|(\w@)|((\d\.\d+){3})|(([0-9A-Fa-f]{1,4}:){4})"
    rf"|(?i:{_BEFORE_ONE}=|{_TOKENS}|(gpu|mig)-[0-9a-f]|f[de][0-9a-f]{{2}}:"
    rf"|\"({'|'.join(sorted(_LEFT_OUT))})\"\s*:)"
)
#: Behind a machine's name in that of a fleet's node (`run.fleet.fleet_nodes.node_name`).
_OF_A_NODE = r"(?=-[0-9a-z]{6}(?!\w))"
#: As much of a machine's name as a node's has.
_LONGEST_NODE = 32


@dataclass(frozen=True)
class PublishedStore(Database):
    """A store's copy under the name that its pages have."""

    title: str = field(kw_only=True)

    @property
    def name(self) -> str:
        return self.title


@dataclass(frozen=True)
class PrivateFacts:
    """What is not told."""

    #: of each host name, what stands for it in a text
    hosts: Mapping[str, str] = field(default_factory=dict)
    #: the same of those whose names are in those of a fleet's nodes
    nodes: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """A text without paths, host names and secrets."""
        if _NUMBERS.fullmatch(text):
            return text
        shortened = text
        for pattern, kept in _SECRETS:
            shortened = pattern.sub(kept, shortened)
        shortened = _PATH.sub(_last_part, hide_homes(shortened))
        folded = shortened.lower()
        for word, (pattern, name) in self._words.items():
            if word in folded:
                shortened = pattern.sub(name, shortened)
        return shortened

    @property
    def words(self) -> list[str]:
        """What a text has in it that names a machine, in small letters."""
        return list(self._words)

    @cached_property
    def _words(self) -> dict[str, tuple[re.Pattern[str], str]]:
        """Return the patterns, the longest first: a short name begins a long one."""
        words = {
            word: (re.compile(rf"(?i)(?<![\w-])(?:[\w.+-]+@)?{re.escape(word)}(?![\w-])"), name)
            for word, name in self.hosts.items()
        }
        for host, name in self.nodes.items():
            node = "".join(c if c.isalnum() or c in "-_" else "-" for c in host)[:_LONGEST_NODE]
            of_node = re.compile(rf"(?i)(?<![\w-]){re.escape(node)}{_OF_A_NODE}")
            # A name without dots is both: its pattern as a node's comes behind a blank.
            words[node if node not in words else f"{node}-"] = (of_node, name.replace(" ", "-"))
        folded = {word.lower(): pair for word, pair in words.items()}
        return dict(sorted(folded.items(), key=lambda pair: -len(pair[0])))

    def value(self, value: Any) -> Any:
        """A JSON value, whatever it has in it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._of_key(str(key), member)
                for key, member in value.items()
                if str(key).lower().replace("-", "_") not in _LEFT_OUT
            }
        if isinstance(value, list):
            return [self.value(member) for member in value]
        return value

    def _of_key(self, key: str, member: Any) -> Any:
        if key == "machine" and isinstance(member, str):
            return self.hosts.get(member, member)
        return self.value(member)


def copied(database: Database, folder: Path, title: str, *, as_recorded: bool) -> PublishedStore:
    """A copy of a store to make a bundle of."""
    path = folder / "published.duckdb"
    with database.keep_open():
        for suffix in ("", ".wal"):
            source = database.path.with_name(database.path.name + suffix)
            if source.is_file():
                shutil.copyfile(source, path.with_name(path.name + suffix))
    copy = PublishedStore(path, title=title)
    copy.ensure()
    if not as_recorded:
        with connect(path, write=True, separate=True) as con:
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


def recorded_until(database: Database) -> str:
    """When the newest of a store was recorded: of two bundles of one store it is the same moment.

    Of a store without runs it is now.
    """
    _, ((moment,),) = database.query(
        "SELECT max(greatest(started_at, finished_at)) FROM benchmark_runs"
    )
    if not isinstance(moment, datetime):
        return utc_now()
    return f"{moment.isoformat(timespec='microseconds')}Z"


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
    in_text = {word: name for word, name in _named(hosts).items() if word not in told}
    facts = PrivateFacts(in_text, hosts)
    of_runs = PrivateFacts(hosts, hosts)
    rows = con.execute("SELECT rowid, body::VARCHAR FROM fact").fetchall()
    bodies = [(row, _body(str(body), facts, of_runs)) for row, body in rows]
    _replace(con, "fact", "body = new", "fact.rowid", bodies)
    for column, kind in con.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_name = 'fact_result' AND data_type IN ('VARCHAR', 'JSON', 'VARCHAR[]')"
    ).fetchall():
        _texts(con, "fact_result", str(column), str(kind), facts)
    runs = con.execute("SELECT DISTINCT run_id FROM fact WHERE run_id IS NOT NULL").fetchall()
    if all(facts.text(str(run)) == run for (run,) in runs):
        return
    # Ids have the names of a fleet's nodes in them.
    for table, column in (
        *(("fact", "run_id"), ("fact", "id")),
        *(("fact_samples", "run_id"), ("fact_samples", "result_id"), ("journal_state", "name")),
    ):
        _texts(con, table, column, "VARCHAR", facts)


def _named(hosts: Mapping[str, str]) -> dict[str, str]:
    named = {host.partition(".")[0]: name for host, name in hosts.items()}
    return {word: name for word, name in (named | dict(hosts)).items() if len(word) > 1}


def _body(body: str, facts: PrivateFacts, of_runs: PrivateFacts) -> str:
    known = json.loads(body)
    clean = facts.value(known)
    for name in ("environment", "machine"):
        if isinstance(known, dict) and name in known:
            clean[name] = of_runs._of_key(name, known[name])
    return json.dumps(clean)


def _texts(
    con: DuckDBPyConnection, table: str, column: str, kind: str, facts: PrivateFacts
) -> None:
    where = f'regexp_matches("{column}"::VARCHAR, ?)'
    where += "".join(f' OR contains(lower("{column}"::VARCHAR), ?)' for _ in facts.words)
    as_text = f'"{column}"::VARCHAR' if kind != "VARCHAR[]" else f'to_json("{column}")::VARCHAR'
    rows = con.execute(
        f"SELECT DISTINCT {as_text} FROM {table} WHERE {where}",  # noqa: S608 — our columns
        [_LOOKED_AT_SQL, *facts.words],
    ).fetchall()
    is_text = kind == "VARCHAR"
    changed = []
    for (value,) in rows:
        old = str(value)
        new = facts.text(old) if is_text else json.dumps(facts.value(json.loads(old)))
        if new != old:
            changed.append((old, new))
    new_value = "new" if kind != "VARCHAR[]" else "from_json(new, '[\"VARCHAR\"]')"
    _replace(con, table, f'"{column}" = {new_value}', as_text, changed)


def _replace(
    con: DuckDBPyConnection, table: str, change: str, key: str, pairs: Sequence[tuple[Any, str]]
) -> None:
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
