"""Commands about jobs: `jobs`, `job`, `resume`, `cancel`, `dead-letters`."""

from __future__ import annotations

from typing import Annotated

import typer

from communitree.cli.output import INTERRUPTED, Json, command, say, show, to_stdout

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("jobs")(jobs)
    app.command("job")(job)
    app.command("resume")(resume)
    app.command("cancel")(cancel)
    app.command("dead-letters")(dead_letters)


def jobs(
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 20, as_json: Json = False
) -> None:
    """List the newest jobs."""
    from communitree.client import Client
    from communitree.render.lists import jobs_table

    with Client() as client:
        found = client.jobs(limit)
    if as_json:
        to_stdout({"jobs": [row.model_dump(mode="json", exclude_none=True) for row in found]})
    else:
        show(jobs_table(found))


def job(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow it to its end and print its result.")] = False,
    result: Annotated[bool, typer.Option("--result", help="Print its result.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Also print its events.")] = False,
    as_json: Json = False,
) -> int:
    """Show a job: its state, the progress of its stages, its events; or follow it, or print its result."""
    from communitree.cli.follow import exit_code, follow_any
    from communitree.client import Client
    from communitree.render.answer import answer_parts
    from communitree.render.index import index_plan, index_result
    from communitree.render.lists import job_parts
    from communitree_shared.contract.index_plan import IndexPlan
    from communitree_shared.contract.results import Answer

    with Client() as client:
        if not (follow or result):
            view = client.job(job_id)
            if as_json:
                to_stdout(view)
            else:
                show(*job_parts(view, with_events=events))
            return 0
        if follow and follow_any(client, job_id) is None:  # Ctrl-C
            say("The job goes on.")
            return INTERRUPTED
        found = client.result(job_id)
    if as_json:
        to_stdout(found)
    elif isinstance(found, Answer):
        show(*answer_parts(found))
    elif isinstance(found, IndexPlan):
        show(*index_plan(found))
    else:
        show(*index_result(found))
    return exit_code(found)


def resume(job_id: JobId, as_json: Json = False) -> None:
    """Go on with a job that failed, was cancelled or lost. What was made is not made again."""
    from communitree.client import Client

    with Client() as client:
        new = client.resume(job_id)
    if as_json:
        to_stdout({"job_id": new, "resumes": job_id})
    else:
        show(f"job {new}")
        say(f"Follow it with `{command(f'job {new} --follow')}`.")


def cancel(job_id: JobId, as_json: Json = False) -> None:
    """Cancel a job. A question that others ask, too, goes on for them."""
    from communitree.client import Client

    with Client() as client:
        state = client.cancel(job_id)
    if as_json:
        to_stdout({"job_id": job_id, "status": state})
    else:
        show(f"job {job_id}: {state}" + (" (others wait for it)" if state in {"queued", "running"} else ""))


def dead_letters(
    redrive: Annotated[bool, typer.Option("--redrive", help="Resume their jobs and clear them.")] = False,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 20,
    as_json: Json = False,
) -> None:
    """List units of work that were given up after too many attempts, and why; or try them again."""
    from communitree.client import Client
    from communitree.render.lists import letters_table
    from communitree.render.numbers import plural

    with Client() as client:
        if redrive:
            resumed = client.redrive()
            if as_json:
                to_stdout({"resumed": resumed})
            else:
                show(f"{plural(len(resumed), 'job')} resumed{': ' + ', '.join(resumed) if resumed else ''}")
            return
        found = client.dead_letters(limit)
    if as_json:
        to_stdout({"dead_letters": found})
    else:
        show(letters_table(found))
