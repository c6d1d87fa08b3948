"""What a person can do about a failure that no further try mends."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from communitree_workers.model.endpoints.failure import CallFailed

#: What stands in the address of an interface that has a version or a deployment of its own.
_VERSIONED = re.compile(r"/(?:v\d|openai|deployments|api/v\d|compatible)")

NO_CONTEXT = (
    "Raise the server's context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; LM Studio, llama.cpp: the context length), "
    "and set COMMUNITREE_LLM_CONTEXT_TOKENS to what it takes."
)
NO_TEXT = (
    "Turn the model's thinking off (COMMUNITREE_LLM_EXTRA_BODY, for example "
    '\'{"chat_template_kwargs": {"enable_thinking": false}}\'), or raise COMMUNITREE_LLM_MAX_TOKENS so that it has '
    "room for both."
)


def remedy(failure: CallFailed, url: str) -> str:
    """Return the remedy for a failure of the endpoint at `url`, "" where the provider's words must do."""
    path = urlsplit(url).path
    if failure.status is not None and 300 <= failure.status < 400:
        return "Set COMMUNITREE_LLM_BASE_URL to the address that the server redirects to, up to its /v1."
    lost = failure.status in (404, 405) and not failure.no_model
    if (lost or failure.no_address or _is_page(failure)) and not _VERSIONED.search(path):
        return f"COMMUNITREE_LLM_BASE_URL has no /v1, and most servers answer below it: try {_with_v1(url)}."
    if failure.no_address or lost or _is_page(failure):
        return "Check COMMUNITREE_LLM_BASE_URL: the server has no chat completions at the address made of it."
    if failure.no_model:
        return "Set COMMUNITREE_LLM_MODEL to the name of a model that the endpoint has; its /models lists them."
    if failure.status == 401:
        return "Check COMMUNITREE_LLM_API_KEY."
    return ""


def _is_page(failure: CallFailed) -> bool:
    """Whether a web page came where a reply was to come."""
    return failure.status == 502 and "answered 200" in failure.words


def _with_v1(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/chat/completions')}/v1"
