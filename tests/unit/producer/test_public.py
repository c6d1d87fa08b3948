from __future__ import annotations

import importlib.metadata

import communitree
from communitree_shared.errors import CommunitreeError

#: What a user's program may import from `communitree`. A name that goes, or comes, is a change of the contract.
PUBLIC = {
    "AdmissionRefused", "Answer", "AnswerOptions", "AsyncClient", "BadInput", "BatchOptions", "Client",
    "CommunitreeError", "CorpusBusy", "CorpusNotFound", "IndexOptions", "IndexResult", "InfrastructureError",
    "JobNotFound", "ModelError", "Plan", "QueryOptions", "Restart", "ResultGone", "SelectionOptions", "Settings",
    "StackNotRunning", "Tree", "UsageError", "__version__",
}  # fmt: skip


def test_the_public_names_are_these_and_all_can_be_imported() -> None:
    assert set(communitree.__all__) == PUBLIC
    assert set(dir(communitree)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(communitree, name) is not None, name


def test_the_version_is_that_of_the_distribution() -> None:
    assert communitree.__version__ == importlib.metadata.version("communitree")


def test_every_error_that_is_exported_can_be_caught_by_one_name() -> None:
    errors = [getattr(communitree, name) for name in PUBLIC if name.endswith(("Error", "Found", "Busy", "Refused"))]
    assert len(errors) >= 8
    assert all(issubclass(error, CommunitreeError) for error in errors)
