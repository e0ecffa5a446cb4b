"""A lake in a bucket: an S3-compatible server on loopback, many machines that write at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bodies import finished, result, started
from test_lake import ids, measured

from accelbench.core.errors import StoreError
from accelbench.store.lake import Lake
from accelbench.store.places import RemotePlace

BUCKET = "lab"
WRITERS = 4

WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from bodies import result, started
from test_lake import measured
from accelbench.store.lake import Lake
from accelbench.store.places import RemotePlace
lake = Lake(Path(sys.argv[2]) / "m.duckdb", place=RemotePlace(sys.argv[1]))
for number in range(3):
    run = f"{Path(sys.argv[2]).name}-{number}"
    measured(lake, run, started(run), *(result(n, run) for n in range(5)))
"""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket's URL; its server and credentials are in the environment, as a user has them."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FSSPEC_S3_ENDPOINT_URL", f"http://{host}:{port}")
        patched.setenv("AWS_ACCESS_KEY_ID", "x")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "y")
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import fsspec

        # fsspec read its variables when it was imported, perhaps long ago.
        patched.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://{host}:{port}"})
        fsspec.filesystem("s3").mkdir(BUCKET)
        yield f"s3://{BUCKET}"
    server.stop()


def test_several_that_write_into_a_bucket_lose_and_double_nothing(bucket, tmp_path):
    """Fewer than in `test_lake`: most of what each takes are the imports of a bucket's client."""
    place = RemotePlace(f"{bucket}/runs")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, place.name, tmp_path / f"m{number}",
             Path(__file__).parent],
            env=os.environ,
        )
        for number in range(WRITERS)
    ]  # fmt: skip
    assert [process.wait(timeout=300) for process in writers] == [0] * WRITERS
    one = Lake(tmp_path / "late" / "m.duckdb", place=place)
    found = ids(one)
    assert len(found) == len(set(found)) == WRITERS * 15
    files = len(place.names("results"))
    assert one.compact() == (files, 0)
    assert one.compact() == (0, files)
    assert ids(Lake(tmp_path / "later" / "m.duckdb", place=place)) == found


def test_samples_and_runs_come_back_from_a_bucket(bucket, tmp_path):
    place = RemotePlace(f"{bucket}/another")
    one, other = (Lake(tmp_path / n / "m.duckdb", place=place) for n in ("one", "other"))
    assert not other.exists
    measured(one, "r", started(), result(0), finished())
    assert other.exists
    assert ids(other) == ids(one)
    assert other.results(samples=True) == one.results(samples=True)
    assert other.results(samples=True)[0]["samples"]


def test_a_bucket_that_is_not_there_is_said(bucket, tmp_path):
    place = RemotePlace(bucket.replace(BUCKET, "nosuch"))
    with pytest.raises(StoreError, match="s3://nosuch"):
        Lake(tmp_path / "m.duckdb", place=place).ensure()
    import fsspec

    assert not fsspec.filesystem("s3").exists("nosuch")
