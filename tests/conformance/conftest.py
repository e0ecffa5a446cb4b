"""The checks are rewritten as tests are, and some of a browser's are left to `make test-full`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance_subject import Subject
from suite import BROWSER

pytest.register_assert_rewrite("card_checks", "session_checks")

from session_checks import Opener  # noqa: E402 - once its checks are to be rewritten

_SEEDS = "test_the_same_seed_gives_the_same_outputs_and_another_others"
#: Seeds are asked about with three openings, which take longest in a browser. Weights are the
#: artefact's, whatever opens it, so one model says as much for a platform as two; and WebGPU in
#: software compiles shaders for ten seconds at each opening.
_SEEDED_AT_LENGTH = [s for s in BROWSER if s.model != "resnet-tiny" or s.hardware == "webgpu"]


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
