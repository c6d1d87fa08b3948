"""Commands that run processes: `demo`, `up`, `worker`, `version`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from communitree.cli.output import Json, command, say, show, to_stdout


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("demo")(demo)
    app.command("up")(up)
    app.command("worker")(worker)
    app.command("version")(version)


def version(as_json: Json = False) -> None:
    """Print the version."""
    from importlib.metadata import version as of

    if as_json:
        to_stdout({"version": of("communitree")})
    else:
        show(f"communitree {of('communitree')}")


def up(
    models: Annotated[int, typer.Option(help="Worker processes for model calls.", min=0)] = 1,
    cpu: Annotated[int, typer.Option(help="Worker processes for everything else.", min=0)] = 1,
    as_json: Json = False,
) -> None:
    """Run Valkey, an S3 server and workers here, until Ctrl-C. All other commands find them by themselves."""
    from communitree.embedded.supervisor import Supervisor, default_workers
    from communitree_shared.settings import Settings

    settings = Settings()
    if settings.redis_url.get_secret_value() or settings.s3_endpoint:
        say("COMMUNITREE_REDIS_URL or COMMUNITREE_S3_ENDPOINT is set: other commands go there, not to this stack.")

    def ready(stack: dict[str, Any]) -> None:
        if as_json:
            to_stdout(stack)
        say(f"ready on {stack['home']}: {', '.join(['valkey', 's3', *stack['workers']])}; logs in {stack['logs']}")
        say(f"In another terminal: {command('index FOLDER --corpus NAME')}")
        say("Ctrl-C stops everything; the data stays.")

    Supervisor(settings, default_workers(models, cpu), say).run(ready)
    say("stopped")


def worker(
    queues: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUEUE",
            help="`models` (waits for endpoints), `cpu` (computes), or single queues. (default: models)",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run none: exit with 0 if the worker of this host or container lives (that of each QUEUE, if any "
            "is named), else with 1.",
        ),
    ] = False,
) -> int:
    """Run one more worker process, until Ctrl-C: for the running stack, or for servers of your own."""
    if check:
        from communitree.cli.check import check as alive

        return alive(queues or [])
    return _serve(queues or [])


def _serve(queues: list[str]) -> NoReturn:
    """Become a worker."""
    from communitree.embedded.discover import discover
    from communitree_shared.settings import Settings

    given = Settings()
    settings = discover(given)
    environment = dict(os.environ)
    if settings is not given:  # the embedded stack's servers; those of the environment the worker reads itself
        environment |= {
            "COMMUNITREE_REDIS_URL": settings.redis_url.get_secret_value(),
            "COMMUNITREE_S3_ENDPOINT": settings.s3_endpoint,
            "COMMUNITREE_S3_ACCESS_KEY": settings.s3_access_key.get_secret_value(),
            "COMMUNITREE_S3_SECRET_KEY": settings.s3_secret_key.get_secret_value(),
            "COMMUNITREE_S3_BUCKET": settings.s3_bucket,
        }
    words = [sys.executable, "-P", "-m", "communitree_workers", "worker", *queues]
    os.execve(sys.executable, words, environment)


def demo(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Your own files instead of the built-in corpus.")
    ] = None,
    question: Annotated[str, typer.Option(help="What to ask.")] = "What are the main themes of this corpus?",
    as_json: Json = False,
) -> int:
    """Show it all once: start a stack, index a real corpus, print its tree, ask a question, stop everything.

    Needs no model and no network. The stack lives in a temporary folder unless --home (or COMMUNITREE_HOME) names one.
    """
    from communitree.cli.demo import run_demo

    return run_demo(folder, question, as_json)
