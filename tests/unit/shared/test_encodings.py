import io

import pytest

from communitree_shared.encodings import detect
from communitree_workers.corpus.reading.uploads import odd_encodings

ENGLISH = "The harbour was quiet – nobody knew why. Naïve café façade.\n" * 5
CHINESE = "却说雨村忙回头看时，不是别人，乃是当日同僚一案参革的张如圭。\n" * 5


def found(data, declared=""):
    result = detect(io.BytesIO(data), declared)
    return result.encoding, result.bad_offset


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (ENGLISH.encode(), "utf-8"),
        (CHINESE.encode(), "utf-8"),
        (ENGLISH.encode("utf-8-sig"), "utf-8-sig"),
        (ENGLISH.encode("utf-16"), "utf-16"),
        (CHINESE.encode("utf-16"), "utf-16"),
        (ENGLISH.encode("utf-16-le"), "utf-16-le"),
        (CHINESE.encode("utf-16-be"), "utf-16-be"),
        (CHINESE.encode("utf-32"), "utf-32"),
        (CHINESE.encode("gb18030"), "gb18030"),
        (("English words and " + CHINESE).encode("gb18030"), "gb18030"),
        (ENGLISH.replace("–", "-").encode("latin-1"), "latin-1"),
        (ENGLISH.encode("cp1252"), "cp1252"),
        (b"plain", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_text(data, encoding):
    assert found(data) == (encoding, None)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00" + bytes(range(256)) * 4,
        bytes(range(256)) * 8,
        b"PK\x03\x04" + bytes((i * 167 + i // 7) % 256 for i in range(4000)),
        b"\x00" * 100,
        b"\x01\x02\x03\x04" * 50,
    ],
)
def test_binary(data):
    assert found(data) == ("", None)


def test_bad_bytes_in_utf8_are_named_by_their_place():
    data = CHINESE.encode() + b"\xff" + CHINESE.encode()
    assert found(data) == ("utf-8", len(CHINESE.encode()))


def test_bad_bytes_behind_a_mark_count_the_mark():
    assert found("aé".encode("utf-8-sig") + b"\xff" + b"x" * 20) == ("utf-8-sig", 6)


def test_bad_bytes_far_behind_the_first_block():
    data = "é".encode() * 700_000
    assert found(data + b"\xff" + data) == ("utf-8", 1_400_000)


def test_a_character_across_two_blocks_is_no_bad_byte():
    assert found(b"x" + "汉".encode() * 400_000) == ("utf-8", None)


def test_a_declared_encoding_decides_where_utf8_does_not_fit():
    data = "Привет, мир".encode("windows-1251")
    assert found(data, "windows-1251") == ("cp1251", None)
    assert found("Привет".encode(), "windows-1251") == ("utf-8", None)


def test_one_zero_byte_does_not_make_text_binary():
    assert found(ENGLISH.encode() + b"\x00" + ENGLISH.encode()) == ("utf-8", None)


def test_encodings_that_are_not_plain_are_noted_with_their_number() -> None:
    notes = odd_encodings({"utf-8": 7, "utf-16": 1, "gb18030": 3, "ascii": 1})
    assert notes == ["3 files were read as gb18030", "1 file was read as utf-16"]
