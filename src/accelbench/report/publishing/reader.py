"""What reads Parquet in the browser: fetched once from the npm registry, compared with its sum.

DuckDB's own build for browsers (`@duckdb/duckdb-wasm`) was tried first. Since 1.29 it loads its
Parquet reader from extensions.duckdb.org when a page asks for one, which a bundle that must work
anywhere cannot; 1.28, which has it built in, is 18 MB before the first row. This one is 0.2 MB.
"""

from __future__ import annotations

from accelbench.runtimes.browser.pins import Package

_MODULES = (
    *("alp", "assemble", "bloom", "column", "constants", "convert", "datapage", "delta"),
    *("encoding", "filter", "geoparquet", "indexes", "metadata", "plain", "plan", "read"),
    *("rowgroup", "scan", "schema", "snappy", "thrift", "utils", "variant", "wkb", "xxhash"),
)

PARQUET_READER = Package(
    "hyparquet",
    "1.33.0",
    "sha512-8EKLe73vRIMEKVEOe5y+kIzFxo6AvbLvd5ukd7P+yv3RvG0+TZM4qO8imbqxU6zds5pV+OeWRTMwy95mhHUheg==",
    {
        **{f"package/src/{name}.js": f"{name}.js" for name in _MODULES},
        "package/LICENSE": "LICENSE.txt",
    },
    "MIT",
    command="accelbench publish",
)
