"""A browser answers what every runtime answers. See suite.py for what it is asked with."""

import pytest
from card_checks import CardChecks, read  # noqa: F401 - a fixture
from session_checks import SessionChecks
from suite import BROWSER, cards, parameters


@pytest.mark.parametrize("subject", cards(BROWSER), scope="class")
class TestCard(CardChecks):
    """What is known without the engine."""


@pytest.mark.parametrize("subject", parameters(BROWSER), scope="class")
class TestSession(SessionChecks):
    """A model opened, stepped and closed."""
