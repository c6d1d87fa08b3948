"""Commands that look at a corpus: `corpora`, `tree`, `report`, `source`, `export`; and remove: `delete`, `gc`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from communitree.cli.output import Json, say, show, to_stdout
from communitree.cli.values import age
from communitree_shared.errors import UsageError
from communitree_shared.visible import visible

Corpus = Annotated[str, typer.Argument(metavar="CORPUS", help="The corpus's name.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("corpora")(corpora)
    app.command("tree")(tree)
    app.command("report")(report)
    app.command("source")(source)
    app.command("export")(export)
    app.command("delete")(delete)
    app.command("gc")(gc)


def corpora(as_json: Json = False) -> None:
    """List all corpora."""
    from communitree.client import Client
    from communitree.render.lists import corpora_table

    with Client() as client:
        found = client.corpora()
    if as_json:
        to_stdout({"corpora": found})
    else:
        show(corpora_table(found))


def tree(
    corpus: Corpus,
    depth: Annotated[int | None, typer.Option(help="Levels shown. (default: 2)", min=1)] = None,
    width: Annotated[int, typer.Option(help="Children shown of each community, heaviest first; 0: all.", min=0)] = 8,
    below: Annotated[int | None, typer.Option(metavar="ID", help="Only what is below this community.")] = None,
    as_json: Json = False,
) -> None:
    """Show the community tree: its levels, then communities to a depth, heaviest first."""
    from communitree.client import Client
    from communitree.render.tree import level_table, tree_view

    with Client() as client:
        found = client.tree(corpus)
    if as_json:
        to_stdout(found)
        return
    if below is not None and below not in {c.id for c in found.communities}:
        raise UsageError(
            f"There is no community {below} in {corpus!r}.", hint=f"`communitree tree {corpus}` lists them."
        )
    show(level_table(found), tree_view(found, depth=depth or 2, width=width, below=below))


def report(
    corpus: Corpus,
    community: Annotated[str, typer.Argument(metavar="ID", help="The community's number, as citations show it.")],
    as_json: Json = False,
) -> None:
    """Show a community's report: findings, the evidence it was written from, and what did not fit."""
    number = community.strip().lstrip("#")
    if not re.fullmatch(r"-?\d+", number):
        raise UsageError(f"{community!r} is no community number.", hint=f"`communitree tree {corpus}` shows them.")
    from communitree.client import Client
    from communitree.render.report import report_parts

    with Client() as client:
        found = client.report(corpus, int(number))
    if as_json:
        to_stdout(found)
    else:
        show(*report_parts(found))


def source(
    corpus: Corpus,
    text_unit: Annotated[str, typer.Argument(metavar="TEXT_UNIT", help="A text unit's id, as citations name it.")],
    as_json: Json = False,
) -> None:
    """Show a text unit in its document."""
    from communitree.client import Client
    from communitree.render.report import source_parts

    with Client() as client:
        found = client.source(corpus, text_unit)
    if as_json:
        to_stdout(found)
    else:
        show(*source_parts(found))


def export(
    corpus: Corpus,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if it is not there.")],
    graphrag_only: Annotated[
        bool, typer.Option("--graphrag-only", help="Only GraphRAG's columns, without ours.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a corpus's tables, readable by GraphRAG's tools and pandas, into a folder."""
    from communitree.client import Client

    with Client() as client:
        files = client.export(corpus, folder, own_columns=not graphrag_only)
    if as_json:
        to_stdout({"corpus": corpus, "folder": str(folder), "files": [file.name for file in files]})
    else:
        show(f"{len(files)} files in {folder}: {', '.join(file.name for file in files)}")


def delete(
    corpus: Corpus,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a corpus with all its versions and documents."""
    import sys

    from communitree.catalogue import not_there
    from communitree.client import Client
    from communitree_shared.objects.keys import corpus_name

    with Client() as client:
        if not yes:
            if corpus_name(corpus) not in {found["name"] for found in client.corpora()}:
                raise not_there(corpus)
            if as_json or not sys.stdin.isatty():
                raise UsageError("Deleting cannot be undone.", hint="Say --yes where nobody can be asked.")
            typer.confirm(visible(f"Remove corpus {corpus!r} with all its versions?"), abort=True, err=True)
        objects = client.delete(corpus)
    if as_json:
        to_stdout({"corpus": corpus, "objects": objects})
    else:
        from communitree.render.numbers import plural

        show(f"{corpus}: {plural(objects, 'object')} removed")


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    older_than: Annotated[
        float | None,
        typer.Option(
            metavar="HOURS", parser=age, help="What was written since then stays; also 30s, 2m, 7d. (default: a week)"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove old versions, what only they needed, and objects of jobs that ended long ago."""
    from communitree.client import Client
    from communitree.render.numbers import plural

    with Client() as client:
        done = client.collect(older_than=older_than, dry_run=dry_run)
    if as_json:
        to_stdout(done)
        return
    for version in done["versions"]:
        say(version)
    verb = "would be removed" if dry_run else "removed"
    counts = {"version": len(done["versions"]), **{k: done[f"{k}s"] for k in ("job", "unit", "document")}}
    parts = [*(plural(n, kind) for kind, n in counts.items()), plural(done["batches"], "batch", "batches")]
    show(f"{', '.join(parts)}: {plural(done['objects'], 'object')} {verb}")
