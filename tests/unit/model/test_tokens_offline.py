from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from communitree_shared import tokens
from communitree_shared.errors import UsageError


def test_bundled_files_have_the_name_tiktoken_looks_for() -> None:
    for name, (file, _) in tokens.BUNDLED.items():
        assert tokens._vocabulary_file(name).name == file


@pytest.mark.parametrize("name", ["p50k_base", "p50k_edit", "r50k_base", "gpt2", "no_such_encoding"])
def test_other_encodings_are_refused_and_not_downloaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("requests.get", lambda *_, **__: pytest.fail("asked the network"))
    assert tokens.count("<|endoftext|> is text") > 3  # a bundled one was loaded before
    with pytest.raises(UsageError, match="not bundled") as caught:
        tokens.encoding(name)
    assert "vocabulary file at" in caught.value.hint


def test_a_folder_without_the_file_is_no_reason_to_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(UsageError):
        tokens.encoding("p50k_base")
    address = "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken"
    assert tokens._vocabulary_file("p50k_edit") == tmp_path / hashlib.sha1(address.encode()).hexdigest()
