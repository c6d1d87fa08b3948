"""Importing us changes nothing in kombu or Celery: an application may have them for itself in the same process."""

from __future__ import annotations

import subprocess
import sys

_LOOK = """
import time
import kombu.serialization, kombu.transport, kombu.transport.redis as stock, kombu.transport.virtual.base as virtual
import celery.worker.consumer.consumer as consumer, celery._state as state

def seen():
    found = {}
    for name, owner in {"channel": stock.Channel, "sentinel": stock.SentinelChannel, "qos": stock.QoS, "module": stock,
                        "transport": stock.Transport, "virtual": virtual.Channel, "message": virtual.Message,
                        "consumer": consumer.Consumer, "registry": kombu.serialization.registry,
                        "default": state.default_app or state}.items():
        found |= {(name, key): id(value) for key, value in vars(owner).items() if not key.startswith("__abstract")}
    found["aliases"] = dict(kombu.transport.TRANSPORT_ALIASES)
    found["coders"] = (sorted(kombu.serialization.registry._encoders), sorted(kombu.serialization.registry._decoders))
    return found

before = seen()
import communitree.client
from communitree_shared.broker.app import make_app
from communitree_shared.broker.publisher import Publisher
from communitree_shared.ledger import Ledger
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
settings = Settings(redis_url="redis://127.0.0.1:1/0")
make_app(settings)
Publisher(settings, Ledger(redis_client(settings)))
after = seen()
changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
print(changed)
assert stock.time is time.time
"""


def test_nothing_of_kombu_and_celery_is_changed() -> None:
    done = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
