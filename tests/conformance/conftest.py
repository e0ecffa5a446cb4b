"""The checks are rewritten as tests are, and some of a browser's are left to `make test-full`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance_subject import Subject
from suite import BROWSER, SUBJECTS

pytest.register_assert_rewrite("card_checks", "session_checks")

from session_checks import Opener  # noqa: E402 - once its checks are to be rewritten

_SEEDS = "test_the_same_seed_gives_the_same_outputs_and_another_others"
#: Seeds are asked about with three openings, which take longest in a browser. One model of each
#: kind of step says as much for an engine as all; and WebGPU in software compiles shaders for ten
#: seconds at each opening.
_FIRST = {
    (s.card, s.hardware, s.mode, bool(s.new_tokens)): s for s in reversed([*SUBJECTS, *BROWSER])
}
_SEEDED_AT_LENGTH = [
    s
    for s in (*SUBJECTS, *BROWSER)
    if s not in _FIRST.values() or s.hardware == "webgpu" or s.model == "rag-tiny"
]


@pytest.hookimpl(tryfirst=True)  # before what is not asked for is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and _at_length(item):
            item.add_marker(pytest.mark.full)


def _at_length(item: pytest.Function) -> bool:
    return item.originalname == _SEEDS and item.callspec.params["subject"] in _SEEDED_AT_LENGTH


@pytest.fixture(scope="class")
def opener(subject: Subject) -> Iterator[Opener]:
    one = Opener(subject)
    yield one
    one.close()
