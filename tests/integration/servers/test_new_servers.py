"""On new servers the first index may come before the first worker: it makes the bucket itself, where it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from communitree.cli import main
from communitree_shared.objects.store import Store
from communitree_shared.settings import Settings


@pytest.fixture
def fresh(settings: Settings, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Settings:
    """Settings of servers without a bucket, in this process's environment, too."""
    new = settings.model_copy(update={"s3_bucket": f"new-{abs(hash(request.node.name)) % 10**9}"})
    monkeypatch.setenv("COMMUNITREE_REDIS_URL", new.redis_url.get_secret_value())
    monkeypatch.setenv("COMMUNITREE_S3_ENDPOINT", new.s3_endpoint)
    monkeypatch.setenv("COMMUNITREE_S3_ACCESS_KEY", new.s3_access_key.get_secret_value())
    monkeypatch.setenv("COMMUNITREE_S3_SECRET_KEY", new.s3_secret_key.get_secret_value())
    monkeypatch.setenv("COMMUNITREE_S3_BUCKET", new.s3_bucket)
    return new


def test_the_first_command_is_an_index(fresh: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.txt").write_text("The first document.")
    assert main(["index", str(tmp_path / "one.txt"), "--corpus", "first", "--detach"]) == 0, capsys.readouterr().err
    assert any("/documents/" in key for key in Store(fresh, patience=5).keys(""))


def test_a_bucket_that_may_not_be_made_is_named(
    fresh: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMUNITREE_S3_CREATE_BUCKET", "false")
    (tmp_path / "one.txt").write_text("The first document.")
    assert main(["index", str(tmp_path / "one.txt"), "--corpus", "first", "--detach"]) == 4
    said = capsys.readouterr().err
    assert fresh.s3_bucket in said
    assert "COMMUNITREE_S3_CREATE_BUCKET" in said
