from __future__ import annotations

import pytest

from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.endpoints.remedies import remedy

PLAIN, VERSIONED = "http://host:1234/chat/completions", "http://host:1234/v1/chat/completions"
PAGE = "the endpoint answered 200 with something that is not JSON: <html>"


@pytest.mark.parametrize(
    ("status", "words", "url", "said"),
    [
        (404, "Not Found", PLAIN, "try http://host:1234/v1."),
        (405, "Method Not Allowed", "http://host/api/chat/completions", "try http://host/api/v1."),
        (404, "Unexpected endpoint or method. (POST /chat/completions)", PLAIN, "try http://host:1234/v1."),
        (502, PAGE, PLAIN, "try http://host:1234/v1."),
        (404, "Not Found", VERSIONED, "Check COMMUNITREE_LLM_BASE_URL"),
        (
            404,
            "Resource not found",
            "https://x.com/openai/deployments/m/chat/completions",
            "Check COMMUNITREE_LLM_BASE",
        ),
        (404, "Not Found", "https://open.bigmodel.cn/api/paas/v4/chat/completions", "Check COMMUNITREE_LLM_BASE_URL"),
        (404, "The model `m` does not exist", PLAIN, "COMMUNITREE_LLM_MODEL"),
        (307, "the server redirects to https://host/v1", PLAIN, "the server redirects to"),
        (401, "Incorrect API key", PLAIN, "COMMUNITREE_LLM_API_KEY"),
    ],
)
def test_remedies(status: int, words: str, url: str, said: str) -> None:
    assert said in remedy(CallFailed(words, status=status), url)


@pytest.mark.parametrize("status", [400, 403, 500, None])
def test_the_providers_words_must_do(status: int | None) -> None:
    assert remedy(CallFailed("words", status=status), VERSIONED) == ""
