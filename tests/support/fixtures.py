"""What tests on a whole stack with a model share; a folder's `conftest.py` takes what it needs by importing it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from communitree.client import Client
from support.provider import Provider, fake_provider
from support.stack import FAST, Stack, running_stack
from support.topics import write_topics


@pytest.fixture(scope="session")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_topics(tmp_path_factory.mktemp("corpus") / "topics")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with fake_provider() as running:
        yield running


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Stack]:
    """A stack whose workers ask the fake provider for reports and answers."""
    home = tmp_path_factory.mktemp("home")
    stages = {**provider.settings("report"), **provider.settings("map"), **provider.settings("reduce")}
    stages |= {"COMMUNITREE_LLM_PRICE_INPUT": "1", "COMMUNITREE_LLM_PRICE_OUTPUT": "4"}
    with running_stack(home, {**FAST, **stages}) as running:
        yield running


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[Client]:
    with stack.client() as made:
        yield made
