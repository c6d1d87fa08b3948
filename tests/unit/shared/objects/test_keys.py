from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_shared.errors import UsageError
from communitree_shared.objects.keys import (
    MAX_NAME_BYTES,
    Keys,
    bucket_name,
    corpus_name,
    decode_name,
    encode_name,
    safe_id,
)
from support.house import ROOT

PLAIN = re.compile(r"^[A-Za-z0-9._/-]+$")
LETTERS = st.characters(categories=["L", "M", "N", "P", "S"])
NAMES = st.text(LETTERS, min_size=1, max_size=20).filter(
    lambda n: n.strip() == n and 0 < len(unicodedata.normalize("NFC", n).encode()) <= MAX_NAME_BYTES
)


@given(NAMES)
def test_any_name_makes_a_plain_key_and_comes_back(name: str) -> None:
    encoded = encode_name(name)
    assert PLAIN.match(encoded)
    assert "/" not in encoded
    assert len(encoded) <= 255
    assert decode_name(encoded) == unicodedata.normalize("NFC", name)


@given(NAMES, NAMES)
def test_two_names_share_a_key_only_if_they_are_equal(one: str, other: str) -> None:
    equal = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    assert (encode_name(one) == encode_name(other)) == equal


def test_the_documented_rule_and_its_examples_are_those_of_the_function() -> None:
    text = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- examples: encode_name -->\n(.*?)<!-- end examples -->", text, re.DOTALL)
    examples = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", table, re.MULTILINE)
    assert len(examples) >= 7
    assert any("红" in name for name, _ in examples)
    assert [encode_name(name) for name, _ in examples] == [encoded for _, encoded in examples]


@given(NAMES)
def test_another_program_that_follows_the_rule_gets_the_same_key(name: str) -> None:
    kept = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"
    encoded = "".join(
        chr(byte) if byte in kept else f"_{byte:02x}" for byte in unicodedata.normalize("NFC", name).strip().encode()
    )
    assert encode_name(name) == encoded


def test_forms_of_one_name_are_one_corpus() -> None:
    assert encode_name("Cafe\u0301") == encode_name("Caf\u00e9")
    assert corpus_name("Cafe\u0301") == "Caf\u00e9"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", "红楼", "a b", "%2e", "*"])
def test_no_name_reaches_another_folder(name: str) -> None:
    key = Keys("t").current(name)
    assert key.startswith("t/corpora/")
    assert key.count("/") == 3
    assert ".." not in key


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "a\0b", "x" * (MAX_NAME_BYTES + 1), "字" * MAX_NAME_BYTES])
def test_names_that_no_corpus_can_have(name: str) -> None:
    with pytest.raises(UsageError):
        corpus_name(name)


@pytest.mark.parametrize("value", ["", "../x", "a/b", "a..b", "-x", ".x", "x" * 129, "a b", "ü"])
def test_ids_that_name_nothing_reach_nothing(value: str) -> None:
    with pytest.raises(UsageError):
        safe_id(value, "job")
    with pytest.raises(UsageError):
        Keys("t").job(value, "result.json")


def test_the_tenant_and_the_prefix_lead_every_key() -> None:
    keys = Keys("acme", "/shared/ground/")
    made = [
        keys.document("c", "ab"), keys.unit("c", "report", "cd"), keys.table("c", "v-1", "entities"), keys.current("c"),
        keys.manifest("c", "v-1"), keys.batch("c", "ef"), keys.batch_index("c", "v-1", "gh"), keys.job("j-1", "x.json"),
        keys.open_job("j-1"), keys.artifact("c", "v-1", "view.bin"), keys.build("c", "v-1", "tree.json"),
    ]  # fmt: skip
    assert all(key.startswith("shared/ground/acme/") for key in made)
    assert len(set(made)) == len(made)
    assert all(PLAIN.match(key) for key in made)


def test_the_name_of_a_bucket_lies_beside_the_tenants() -> None:
    assert (bucket_name(""), bucket_name("/shared/ground/")) == ("bucket.name", "shared/ground/bucket.name")


def test_what_belongs_to_a_corpus_lies_under_it() -> None:
    keys = Keys("t")
    folder = keys.corpus("c")
    assert keys.unit("c", "report", "x").startswith(keys.units("c", "report"))
    assert keys.units("c", "report").startswith(folder)
    assert keys.table("c", "v", "entities") == f"{folder}versions/v/entities.parquet"
    assert not keys.corpus("c2").startswith(folder)
