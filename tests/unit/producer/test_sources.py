from __future__ import annotations

import hashlib
import io
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from communitree.finding import NotRegular, open_regular
from communitree.sources import gather
from communitree_shared.contract.messages import LeftOut
from communitree_shared.errors import BadInput, UsageError


def names(folder: Path, **more: object) -> list[str]:
    return [d.name for d in gather([folder], **more).documents]  # type: ignore[arg-type]


def skipped(folder: Path) -> dict[str, str]:
    return {s.name: s.reason for s in gather([folder]).skipped}


def fill(folder: Path, *files: str) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}")


def test_a_folder_is_walked_in_order_and_each_file_is_named_from_its_top(tmp_path: Path) -> None:
    fill(tmp_path, "b.txt", "a/z.md", "a/y.md", "宝玉.txt")
    found = gather([tmp_path])
    assert [d.name for d in found.documents] == ["a/y.md", "a/z.md", "b.txt", "宝玉.txt"]
    first = found.documents[0]
    assert first.sha256 == hashlib.sha256(b"text of a/y.md").hexdigest()
    assert first.size == len(b"text of a/y.md")
    assert first.listed() == {"name": "a/y.md", "sha256": first.sha256, "size": first.size}


def test_names_are_normalised(tmp_path: Path) -> None:
    fill(tmp_path, "cafe\u0301.txt")
    assert names(tmp_path) == ["caf\u00e9.txt"]


def test_everything_left_out_has_a_reason(tmp_path: Path) -> None:
    fill(tmp_path, "ok.txt", ".hidden.txt", ".git/config", "picture.PNG", "empty.txt")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "nowhere.txt").symlink_to(tmp_path / "gone")
    (tmp_path / "self.txt").symlink_to(tmp_path / "self.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert names(tmp_path) == ["ok.txt"]
    assert skipped(tmp_path) == {
        ".hidden.txt": "hidden",
        ".git": "hidden",
        "picture.PNG": "a .png file has no text",
        "empty.txt": "empty",
        "nowhere.txt": "a link to nothing",
        "self.txt": "a link to nothing",
        "pipe.txt": "a device, socket or pipe, not a file",
        "again": "a link back to a folder that was read already",
    }


def test_unreadable_files_and_folders_are_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "ok.txt", "secret.txt")
    real = os.open

    def refuse(path: Path, flags: int) -> int:
        if path.name == "secret.txt":  # a mode would not stop a test that runs as root
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    assert names(tmp_path) == ["ok.txt"]
    assert skipped(tmp_path) == {"secret.txt": "unreadable (Permission denied)"}
    with pytest.raises(UsageError, match=r"Nothing can be read from .*unreadable \(Permission denied\): secret.txt"):
        gather([tmp_path / "secret.txt"])


def test_warnings_are_one_sentence_a_reason(tmp_path: Path) -> None:
    fill(tmp_path, "ok.txt", *[f"{i}.png" for i in range(7)])
    assert gather([tmp_path]).warnings() == [
        "not read, a .png file has no text: 0.png, 1.png, 2.png, 3.png, 4.png and 2 more"
    ]


def test_what_is_left_out_goes_with_the_request_counted_and_the_first_hundred_named(tmp_path: Path) -> None:
    fill(tmp_path, "ok.txt", ".hidden.txt", *[f"{i:03}.png" for i in range(120)])
    (tmp_path / "empty.txt").touch()
    (tmp_path / os.fsdecode(b"\xff.txt")).touch()
    pictures, empty, hidden = sorted(gather([tmp_path]).left_out(), key=lambda entry: entry.reason)
    assert (pictures.count, pictures.names) == (120, [f"{i:03}.png" for i in range(100)])
    assert (empty.count, sorted(empty.names)) == (2, ["empty.txt", "\ufffd.txt"])
    assert hidden == LeftOut(reason="hidden", count=1, names=[".hidden.txt"], by_rule=True)
    assert not pictures.by_rule
    assert pictures.line(2) == "not read, a .png file has no text: 000.png, 001.png and 118 more"


def test_strict_reading_refuses_what_is_left_out_but_by_a_rule(tmp_path: Path) -> None:
    fill(tmp_path, "ok.txt", ".hidden.txt", ".git/config")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    gather([tmp_path]).refuse_losses()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "nowhere.txt").symlink_to(tmp_path / "gone")
    with pytest.raises(BadInput) as error:
        gather([tmp_path]).refuse_losses()
    assert error.value.message == "not read, empty: empty.txt; not read, a link to nothing: nowhere.txt."
    assert "--strict" in error.value.hint


@pytest.mark.parametrize("make", ["empty", "only pictures"])
def test_nothing_readable_is_an_error_that_says_why(tmp_path: Path, make: str) -> None:
    if make == "only pictures":
        fill(tmp_path, "a.png")
    with pytest.raises(UsageError, match="Nothing can be read") as error:
        gather([tmp_path])
    assert error.value.exit_code == 2
    assert ("a.png" if make == "only pictures" else "no files in it") in error.value.message


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file or folder"):
        gather([tmp_path / "gone"])


def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "docs/a/1.md", "docs/b/2.md", "docs/b/3.txt", "odd[1].txt")
    monkeypatch.chdir(tmp_path)
    assert [d.name for d in gather(["docs/**/*.md"]).documents] == ["a/1.md", "b/2.md"]
    assert [d.name for d in gather(["odd[1].txt"]).documents] == ["odd[1].txt"]  # a file's name comes first
    with pytest.raises(UsageError, match="no files in it"):
        gather(["docs/*.nothing"])


def test_equal_names_of_two_folders_are_told_apart_and_one_file_is_read_once(tmp_path: Path) -> None:
    fill(tmp_path, "one/x.txt", "two/x.txt")
    found = gather([tmp_path / "one", tmp_path / "two", tmp_path / "one"])
    assert [d.name for d in found.documents] == ["two/x.txt", "x.txt"]


def test_equal_contents_are_all_listed(tmp_path: Path) -> None:
    fill(tmp_path, "a.txt")
    (tmp_path / "b.txt").write_bytes((tmp_path / "a.txt").read_bytes())
    found = gather([tmp_path])
    assert len(found.documents) == 2
    assert found.size == len(b"text of a.txt")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO("日本".encode())))
    (document,) = gather(["-"]).documents
    assert (document.name, document.data, document.size) == ("stdin.txt", "日本".encode(), 6)


def test_graph_tables_only(tmp_path: Path) -> None:
    fill(tmp_path, "entities.parquet", "relationships.csv", "stats.txt", "lancedb/x.lance")
    assert names(tmp_path, tables=True) == ["entities.parquet", "relationships.csv"]


def test_too_much_is_refused_before_it_is_uploaded(tmp_path: Path) -> None:
    fill(tmp_path, "a.txt", "b.txt")
    assert names(tmp_path, max_bytes=26) == ["a.txt", "b.txt"]
    with pytest.raises(UsageError, match="more than 25 bytes"):
        names(tmp_path, max_bytes=25)


OUT = "a link out of the folder, which --follow-links follows"


def test_a_link_out_of_the_folder_is_named_and_not_followed_unless_wanted(tmp_path: Path) -> None:
    fill(tmp_path, "own/ok.txt", "own/part/more.txt", "secrets/key.txt")
    own = tmp_path / "own"
    (own / "key.txt").symlink_to(tmp_path / "secrets" / "key.txt")
    (own / "environ.txt").symlink_to("/proc/self/environ")
    (own / "all").symlink_to("../secrets")
    (own / "part" / "up.txt").symlink_to("../../secrets/key.txt")
    (own / "inside.txt").symlink_to("part/more.txt")
    assert names(own) == ["inside.txt", "ok.txt", "part/more.txt"]
    assert skipped(own) == dict.fromkeys(("all", "environ.txt", "key.txt", "part/up.txt"), OUT)
    with pytest.raises(BadInput, match="--follow-links"):
        gather([own]).refuse_losses()
    followed = names(own, follow_links=True)
    assert followed == ["all/key.txt", "inside.txt", "key.txt", "ok.txt", "part/more.txt", "part/up.txt"]


def test_a_link_that_the_caller_names_is_followed_and_those_below_it_stay_inside(tmp_path: Path) -> None:
    fill(tmp_path, "real/ok.txt", "secret.txt")
    (tmp_path / "real" / "out.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "link").symlink_to("real")
    assert names(tmp_path / "link") == ["ok.txt"]
    assert skipped(tmp_path / "link") == {"out.txt": OUT}
    assert names(tmp_path / "real" / "out.txt") == ["out.txt"]


@pytest.mark.parametrize("pattern", ["docs/*.txt", "docs/**/*.txt", "d*/*.txt"])
def test_a_pattern_leads_no_further_than_the_folder_before_its_first_wildcard(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "here/docs/ok.txt", "secret.txt")
    (tmp_path / "here" / "docs" / "out.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.chdir(tmp_path / "here")
    found = gather([pattern])
    assert [d.name for d in found.documents] == ["ok.txt"]
    assert [(s.name, s.reason) for s in found.skipped] == [("out.txt", OUT)]
    assert len(gather([pattern], follow_links=True).documents) == 2


def test_devices_sockets_and_pipes_are_named_and_never_opened(tmp_path: Path) -> None:
    fill(tmp_path, "ok.txt")
    os.mkfifo(tmp_path / "fifo.txt")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "socket.txt"))
        assert names(tmp_path) == ["ok.txt"]
        assert skipped(tmp_path) == dict.fromkeys(("fifo.txt", "socket.txt"), "a device, socket or pipe, not a file")
    with pytest.raises(UsageError, match="a device, socket or pipe"):
        gather(["/dev/zero"])


def test_a_file_that_is_swapped_for_a_pipe_meanwhile_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    fill(tmp_path, "ok.txt")
    regular = (tmp_path / "ok.txt").stat()
    monkeypatch.setattr(Path, "stat", lambda self, **more: regular)  # as it was when it was looked at
    with pytest.raises(NotRegular):
        open_regular(tmp_path / "pipe.txt")


def test_what_is_no_text_is_not_uploaded_and_what_readers_take_is(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4 " + bytes(range(256)) * 40)
    (tmp_path / "wide.txt").write_bytes("宝玉道：我也知道。\n".encode("utf-16-le") * 50)
    (tmp_path / "old.txt").write_bytes("宝玉道：我也知道。".encode("gb18030") * 50)
    (tmp_path / "bell.txt").write_bytes(b"rings \x07 once" + b" in a line of words" * 20)
    assert names(tmp_path) == ["bell.txt", "old.txt", "scan.pdf", "wide.txt"]
    assert skipped(tmp_path) == {"program": "no text in any encoding known here"}


def test_beside_a_table_of_relationships_only_tables_that_are_read_are_uploaded(tmp_path: Path) -> None:
    fill(tmp_path, "entities.parquet", "create_final_relationships.parquet", "stats.json", "customers.csv")
    found = gather([tmp_path], tables=True)
    assert [d.name for d in found.documents] == ["create_final_relationships.parquet", "entities.parquet"]
    assert [s.name for s in found.skipped] == ["customers.csv", "stats.json"]
    found.refuse_losses()
    (tmp_path / "create_final_relationships.parquet").unlink()  # any of them may hold the edges
    assert len(gather([tmp_path], tables=True).documents) == 3


def test_standard_input_is_read_no_further_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(b"x" * 1000)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
    with pytest.raises(UsageError, match="more than 10 bytes"):
        gather(["-"], max_bytes=10)
    assert stream.tell() == 11
