"""Our transport, as far as no server is needed."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from communitree_shared.broker.app import make_app
from communitree_shared.broker.transport import SentinelTransport, Transport, connection
from communitree_shared.settings import Settings


@pytest.mark.parametrize(
    ("url", "kind", "told"),
    [
        ("redis://:secret@h:1/0", Transport, "redis://:**@h:1/0"),
        ("rediss://user:secret@h:1/3", Transport, "redis://user:**@h:1/3"),
        ("sentinel://:secret@a:1,b:2/0?master_name=x", SentinelTransport, "sentinel://:**@a:1/0"),
    ],
)
def test_connections_of_both_sides_use_it_and_logs_name_the_server(url: str, kind: type, told: str) -> None:
    settings = Settings(redis_url=SecretStr(url))
    for made in (connection(settings), make_app(settings).connection_for_read()):
        assert type(made.transport) is kind
        assert made.as_uri() == told
    if kind is SentinelTransport:
        assert connection(settings).transport_options["sentinels"] == (("a", 1), ("b", 2))
