"""`communitree up` whose data is gone says so and ends; before, it started its workers again for ever."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import minio
import pytest

from communitree.embedded import certificate, weed
from communitree.embedded.discover import discover
from communitree.embedded.lookout import Lookout
from communitree.embedded.servers import Servers
from communitree_shared.errors import OtherBucket
from communitree_shared.objects.pairing import check_pair
from communitree_shared.objects.store import Store
from communitree_shared.redis_server.connect import redis_client
from communitree_shared.settings import Settings
from support import stranger
from support.stack import Stack, running_stack

pytestmark = pytest.mark.timeout(200)


def ended(stack: Stack, seconds: float) -> tuple[int, str]:
    """Return the exit code of `up` and all that it said."""
    code = stack.launched.child.popen.wait(seconds)
    return code, (stack.home / "logs" / "up.log").read_text()


def until_known(stack: Stack) -> Settings:
    """Return the stack's settings once Redis knows the bucket's name."""
    settings = discover(Settings(home=stack.home))
    client = redis_client(settings)
    end = time.monotonic() + 30
    while not client.get("communitree:bucket"):
        assert time.monotonic() < end, stack.logs()
        time.sleep(0.1)
    client.close()
    return settings


@pytest.mark.parametrize("what", ["name", "bucket"])
def test_data_that_vanishes_while_it_runs(tmp_path: Path, what: str) -> None:
    with running_stack(tmp_path / "home", None, "--models", "0", "--cpu", "0") as stack:
        settings = until_known(stack)
        store = Store(settings, patience=5)
        store.delete_all(list(store.keys("")) if what == "bucket" else ["bucket.name"])
        if what == "bucket":
            store._client.remove_bucket(settings.s3_bucket)
        code, said = ended(stack, 40)
    assert code == 5
    assert "data lost: " in said
    assert ("no bucket 'communitree' any more" if what == "bucket" else "there is no bucket.name") in said
    assert f"Put {stack.home / 's3'} back from a copy" in " ".join(said.split())


def test_data_that_is_gone_at_the_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_stack(home, None, "--models", "0") as stack:
        until_known(stack)
    shutil.rmtree(home / "s3")
    (home / "logs" / "up.log").unlink()
    with running_stack(home, None, "--models", "0") as stack:
        code, said = ended(stack, 60)
    assert code == 5
    assert "data lost: worker-cpu says: " in said
    assert "started again" not in said
    assert "next try" not in said


def test_a_bucket_that_should_have_a_name_gets_no_new_one(tmp_path: Path) -> None:
    with Servers(tmp_path / "home") as endpoints:
        settings = endpoints.into(Settings(home=tmp_path / "home"))
        client, store = redis_client(settings), Store(settings, patience=5)
        check_pair(settings, store, client)
        store.delete("bucket.name")
        for _ in range(2):
            with pytest.raises(OtherBucket, match=r"lost its data: there is no bucket\.name"):
                check_pair(settings, store, client)
        assert not store.exists("bucket.name")
        client.close()


def test_objects_whose_content_is_gone_are_unreadable_not_away(tmp_path: Path) -> None:
    """As after the master was told to delete the collection, which now takes the certificate."""
    servers = Servers(tmp_path / "home")
    with servers as endpoints:
        lookout = Lookout(Settings(home=tmp_path / "home"), endpoints)
        settings = endpoints.into(Settings(home=tmp_path / "home"))
        client, store = redis_client(settings), Store(settings, patience=0)
        assert lookout._look(store, client) == ("", "")
        own = certificate.Certificate(tmp_path / "home" / "s3")
        port = next(port for port, name in weed.inner_ports(servers._ports).items() if name == "master.port")
        request = b"GET /col/delete?collection=communitree HTTP/1.0\r\n\r\n"
        said = stranger.exchange(("127.0.0.1", port), request, stranger.tls(str(own.certificate), str(own.key)))
        assert b"204 No Content" in said
        with pytest.raises(minio.error.S3Error, match="InternalError"):
            store._client.get_object(settings.s3_bucket, "bucket.name")
        state, why = lookout._look(store, client)
        assert state == "unreadable"
        assert "InternalError" in why
        servers.children[1].popen.kill()
        servers.children[1].popen.wait()
        assert lookout._look(store, client) == ("", "")  # Redis is away, which is no loss
        servers.children[0].popen.kill()
        servers.children[0].popen.wait()
        assert lookout._look(store, client) == ("", "")  # away: the supervisor's business
        client.close()
