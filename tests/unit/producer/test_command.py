"""The command without servers: errors, exit codes, what goes where, how fast it starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from communitree.cli import main
from communitree.cli.output import command, program, say, say_error, show
from communitree_shared.errors import InfrastructureError, UsageError


@pytest.fixture(autouse=True)
def _no_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("COMMUNITREE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COMMUNITREE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COMMUNITREE_TENANT", "default")


NO_STACK = [
    ["corpora"], ["tree", "c"], ["report", "c", "1"], ["source", "c", "t"], ["jobs"], ["job", "j"], ["resume", "j"],
    ["cancel", "j"], ["dead-letters"], ["export", "c", "folder"], ["delete", "c", "--yes"], ["gc"],
    ["ask", "c", "q"], ["ask", "c", "q", "--plan"], ["worker", "map"],
]  # fmt: skip


@pytest.mark.parametrize("words", NO_STACK, ids=lambda words: " ".join(words[:1]))
def test_no_stack_is_one_clear_line_and_exit_4(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: No stack is running on ")
    assert "communitree up" in said.err
    assert "Traceback" not in said.err


def test_errors_are_json_where_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpora", "--json"]) == 4
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert error["code"] == "no_stack"
    assert set(error) == {"code", "message", "hint"}
    assert said.err == ""


@pytest.mark.parametrize(
    ("content", "flag", "says"),
    [
        ("One?\nTwo?\n", "--json", "--json takes one question; .* has 2"),
        ("One?\nTwo?\n", "--plan", "--plan takes one question"),
        ("One?\nTwo?\n", "--stream", "--stream takes one question"),
        ("\n \n", "--bulk", "no question"),
    ],
)
def test_what_a_file_of_questions_cannot_be_asked_with(
    content: str, flag: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.txt").write_text(content)
    assert main(["ask", "c", "--file", str(tmp_path / "q.txt"), flag]) == 2
    said = capsys.readouterr()
    assert re.search(says, said.err + said.out)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ask", "c"], "There is no question"),
        (["ask", "c", "  "], "The question is empty"),
        (["ask", "c", "q", "--file", "x"], "given twice"),
        (["ask", "c", "--file", "/does/not/exist"], "cannot be read"),
        (["ask"], "Missing argument"),
        (["nope"], "No such command"),
        (["ask", "c", "q", "--deadline", "soon"], "--deadline"),
        (["ask", "c", "q", "--deadline", "0"], "no time"),
        (["ask", "c", "q", "--prompt", "map"], "is not NAME=FILE"),
        (["ask", "c", "q", "--jsonl"], "--jsonl goes with --file"),
        (["report", "c", "abc"], "no community number"),
        (["index", "/does/not/exist", "--corpus", "c"], "no file or folder"),
        (["index", ".", "--corpus", "c", "--chunk-tokens", "3"], "--chunk-tokens"),
        (["demo", "/does/not/exist"], "no file or folder"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_usage_errors_exit_2(words: list[str], says: str, as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"] if as_json else words) == 2
    said = capsys.readouterr()
    message = json.loads(said.out)["error"]["message"] if as_json else said.err
    assert says in message
    assert "Traceback" not in said.err + said.out


@pytest.mark.parametrize("name", ["empty.txt", "photo.png"])
def test_strict_names_the_file_and_the_remedy_and_uploads_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.txt").write_text("text")
    (tmp_path / "in" / name).touch()
    assert main(["index", str(tmp_path / "in"), "--corpus", "c", "--strict", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "bad_input"
    assert name in error["message"]
    assert "leave out" in error["hint"]


def test_a_demo_of_nothing_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.txt").touch()
    assert main(["demo", str(tmp_path / "empty.txt")]) == 2
    said = capsys.readouterr().err
    assert "not read, empty: empty.txt" in said
    assert "Starting" not in said
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("called", "line"),
    [
        (".venv/bin/communitree", ".venv/bin/communitree"),
        ("/my files/communitree", "'/my files/communitree'"),
        ("/lib/communitree/__main__.py", f"{sys.executable} -m communitree"),
    ],
)
def test_lines_to_copy_begin_with_the_command_as_it_was_called(
    called: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    assert program() == line


@pytest.mark.parametrize(
    ("home", "tenant", "named"),
    [("", "", ""), ("/a b", "", " --home '/a b'"), ("/c", "t", " --home /c --tenant t")],
)
def test_a_command_to_copy_names_the_stack_and_the_tenant_that_are_meant(
    home: str, tenant: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["communitree", "index"])
    monkeypatch.setenv("COMMUNITREE_HOME", home)
    monkeypatch.setenv("COMMUNITREE_TENANT", tenant)
    assert command("job j --follow") == f"communitree job j --follow{named}"
    hint = "`communitree up` or `communitree job j`, see `communitree ask --help`."
    say_error(UsageError("m", hint=hint), as_json=False)
    assert f"`communitree up{named}` or `communitree job j{named}`, see `communitree ask --help`." in (
        capsys.readouterr().err
    )


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COMMUNITREE_S3_BUCKET", "a")
    assert main(["corpora"]) == 2
    assert "COMMUNITREE_S3_BUCKET ('a') has characters, or a length, that it may not have." in capsys.readouterr().err


def test_one_server_alone_is_not_enough(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COMMUNITREE_REDIS_URL", "redis://127.0.0.1:1/0")
    assert main(["corpora"]) == 2
    assert "COMMUNITREE_REDIS_URL is set, but COMMUNITREE_S3_ENDPOINT is not" in capsys.readouterr().err
    monkeypatch.delenv("COMMUNITREE_REDIS_URL")
    monkeypatch.setenv("COMMUNITREE_S3_ENDPOINT", "127.0.0.1:1")
    assert main(["corpora"]) == 2
    assert "COMMUNITREE_S3_ENDPOINT is set, but COMMUNITREE_REDIS_URL is not" in capsys.readouterr().err


def test_an_error_of_a_library_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import redis

    def broken(*_: object) -> None:
        raise redis.ConnectionError("refused")

    monkeypatch.setattr("communitree.client.Client.__init__", broken)
    assert main(["corpora", "--json"]) == InfrastructureError.exit_code == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "infrastructure"


def test_a_fault_of_our_own_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of a title: \x1b[2J")

    monkeypatch.setattr("communitree.client.Client.__init__", broken)
    assert main(["corpora"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ZeroDivisionError: of a title: ␛[2J" in said


def test_deleting_asks_or_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class NoClient:
        def __enter__(self) -> NoClient:
            return self

        def __exit__(self, *_: object) -> None: ...

        def corpora(self) -> list[dict[str, str]]:
            return [{"name": "c"}]

    monkeypatch.setattr("communitree.client.Client", NoClient)
    assert main(["delete", "c", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["hint"] == "Say --yes where nobody can be asked."
    assert main(["delete", "nope", "--json"]) == 2  # nobody is asked about what is not there
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "corpus_not_found"


@pytest.mark.parametrize("words", NO_STACK, ids=lambda words: words[0])
@pytest.mark.parametrize("before", [True, False])
def test_every_command_takes_the_stacks_folder_before_its_name_or_after_it(
    words: list[str], before: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--home", str(tmp_path / "mine"), "--tenant", "t"]
    assert main([*place, *words] if before else [*words, *place]) == 4
    assert f"No stack is running on {tmp_path / 'mine'}." in capsys.readouterr().err
    assert os.environ["COMMUNITREE_TENANT"] == "t"


def started(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "communitree", *words], capture_output=True, text=True, timeout=60, env=env
    )


def test_a_narrow_terminal_cuts_no_flag_of_the_help_short() -> None:
    shown = started("ask", "--help", env=os.environ | {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).stdout
    assert max(map(len, shown.splitlines())) == 80
    assert "…" not in shown.replace('"content": "…"}, …]', "")
    rows = [re.split(r"\s{2,}", line.strip("│ ")) for line in shown.splitlines()]
    at = next(n for n, row in enumerate(rows) if row[0] == "--include-community-")
    assert [rows[at][n] + rows[at + 1][n] for n in (0, 1)] == [
        "--include-community-rank",
        "--no-include-community-rank",
    ]
    assert ["--plan", "[all]"] in [row[:2] for row in rows]


def test_version_imports_nothing_and_is_quick() -> None:
    assert min(_cpu_seconds("version") for _ in range(3)) < 0.3
    code = "import sys; from communitree.cli import main; main(['version']); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.startswith("communitree 0.")
    assert not [name for name in ("typer", "rich", "pydantic", "celery", "redis", "minio") if f"'{name}'" in loaded]


def test_the_client_loads_nothing_heavy_and_nothing_of_the_workers() -> None:
    ours = "communitree.client, communitree.aio, communitree.cli.app, communitree.cli.demo"
    # fcntl: not on Windows, where the client works too
    code = f"import sys; sys.modules['fcntl'] = None; import {ours}; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = ("pyarrow", "pandas", "numpy", "igraph", "tiktoken", "aiohttp", "communitree_workers")
    assert not [name for name in heavy if f"'{name}'" in loaded]


def test_what_is_printed_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "[b]first[/i] [#2841] [link=x]"
    show(odd, Table(odd))
    say(odd)
    say_error(UsageError(odd, hint=odd), as_json=False)
    said = capsys.readouterr()
    assert (said.out.count(odd), said.err.count(odd)) == (2, 3)


def test_no_codes_into_a_pipe_and_nothing_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMUNITREE_HOME", "/nowhere/" + "x" * 300)
    assert main(["corpora"]) == 4
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.splitlines()[0] == f"Error: No stack is running on /nowhere/{'x' * 300}."


def _cpu_seconds(*words: str) -> float:
    """Processor time, not the clock's: the machine may be busy."""
    before = os.times()
    assert started(*words).returncode == 0
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def test_a_column_of_a_table_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("abstract\nx\n")
    given = ["index", str(tmp_path), "--corpus", "c", "--text-column", "body", "--text-column", "b.csv=abstract"]
    assert main(given) == 2
    assert "--text-column b.csv=…: there is no file 'b.csv'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"], ["version"], ["jobs", "--help"], ["version", "--json"]])
def test_a_reader_that_has_read_enough_is_no_error(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "communitree", *words], stdout=writing, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr()
    assert "dead-letters" in said.out
    assert said.err == ""
