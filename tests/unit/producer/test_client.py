from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from communitree.aio import AsyncClient
from communitree.client import Client
from communitree.sources import Gathered
from communitree_shared.errors import UsageError
from communitree_shared.settings import Settings

#: What each call is given; the rest is left to its defaults.
GIVEN = {
    "source": __file__, "corpus": "c", "question": "q", "job": "j", "community": 1, "text_unit": "u", "folder": "f",
    "gathered": Gathered(),
}  # fmt: skip

#: Calls that speak to no server.
_LOCAL = {"close", "gather"}


def nowhere() -> Settings:
    """Servers that are not there: whoever asks them waits for long."""
    return Settings(redis_url=SecretStr("redis://127.0.0.1:9/0"), s3_endpoint="127.0.0.1:9")


def calls(kind: type[Any]) -> list[str]:
    methods = inspect.getmembers(kind, inspect.isfunction)
    return [name for name, _ in methods if not name.startswith("_") and name not in _LOCAL]


def given(method: Any) -> dict[str, Any]:
    needed = (p for p in inspect.signature(method).parameters.values() if p.default is inspect.Parameter.empty)
    return {p.name: GIVEN[p.name] for p in needed}


def consume(done: Any) -> None:
    if isinstance(done, Iterator):
        list(done)


@pytest.mark.parametrize("name", calls(Client))
def test_a_closed_client_refuses_before_it_does_anything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(nowhere()) as client:
        method = getattr(client, name)
    with pytest.raises(UsageError, match="was closed"):
        consume(method(**given(method)))


@pytest.mark.parametrize("name", calls(AsyncClient))
def test_so_does_a_closed_client_of_asyncio(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def call() -> None:
        async with AsyncClient(nowhere()) as client:
            method = getattr(client, name)
        done = method(**given(method))
        if isinstance(done, AsyncIterator):
            async for _ in done:
                pass
        else:
            await done

    with pytest.raises(UsageError, match="was closed"):
        asyncio.run(call())


def test_the_client_of_asyncio_has_every_call() -> None:
    every = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    assert not {name for name in every if not hasattr(AsyncClient, name)}
    assert {"submit", "wait", "stream", "ask", "plan"} <= every
    for name in every - {"close"}:
        ours, theirs = (set(inspect.signature(getattr(kind, name)).parameters) for kind in (AsyncClient, Client))
        # Uploads are told, and a stream of events is waited for, in the blocking client alone.
        assert ours <= theirs, name
        assert theirs - ours <= {"progress", "timeout"}, name


def test_what_is_imported_on_first_use_is_listed() -> None:
    import communitree

    assert set(communitree.__all__) <= set(dir(communitree))
