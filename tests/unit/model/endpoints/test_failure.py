"""What providers say, word for word as their documentation, their servers and their users' reports have it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from communitree_workers.model.endpoints.failure import CallFailed
from communitree_workers.model.wire import error_words


def failed(status: int, body: Any) -> CallFailed:
    """Return the failure that a refusal stands for; a body that is a text is the message."""
    if isinstance(body, str):
        body = {"error": {"message": body}}
    words, code = error_words(json.dumps(body, ensure_ascii=False).encode())
    return CallFailed(words, status=status, code=code)


TOO_LONG: dict[str, tuple[int, Any]] = {
    "OpenAI": (400, {"error": {
        "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
            "tokens. "
        "Please reduce the length of the messages.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
    }}),
    "OpenAI, responses": (400, "Your input exceeds the context window of this model. Please adjust your input."),
    "OpenAI, tokens a minute": (429, {"error": {
        "message": "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested "
        "342389. The input or output tokens must be reduced in order to run successfully.",
        "type": "tokens", "code": "rate_limit_exceeded",
    }}),
    "OpenAI, string": (400, "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
                       "1048576, but got a string with length 2400000 instead."),
    "Groq": (413, {"error": {
        "message": "Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute "
        "(TPM): Limit 6000, Requested 7512, please reduce your message size and try again.",
        "type": "tokens", "code": "rate_limit_exceeded",
    }}),
    "Groq, context": (400, "Please reduce the length of the messages or completion."),
    "vLLM": (400, {"object": "error", "type": "BadRequestError", "code": 400,
                   "message": "The decoder prompt (length 21535) is longer than the maximum model length of 16384. "
                       "Make "
                   "sure that `max_model_len` is no smaller than the number of text tokens."}),
    "vLLM, older": (400, "Prompt length of 8251 is longer than the maximum model length of 8192."),
    "vLLM, with the output": (400, "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum "
                              "context length is 8192 tokens and your request has 7500 input tokens (2000 > 8192 - "
                                  "7500)."),
    "SGLang": (400, {"object": "error", "type": "BadRequestError", "param": None, "code": 400,
                     "message": "The input (61709 tokens) is longer than the model's context length (40960 tokens)."}),
    "SGLang, requested": (400, "Requested token count exceeds the model's maximum context length of 32768 tokens. You "
                          "requested a total of 40000 tokens: 36000 tokens from the input messages and 4000 tokens for "
                          "the completion."),
    "TGI": (422, {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
                  "error_type": "validation"}),
    "TGI, with the output": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= "
        "4096. "
                                   "Given: 3900 `inputs` tokens and 512 `max_new_tokens`", "error_type": "validation"}),
    "llama.cpp": (400, {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9000,
                                  "message": "the request exceeds the available context size, try increasing it"}}),
    "llama.cpp, older": (500, "Context size has been exceeded."),
    "LM Studio": (400, {"error": "Trying to keep the first 15857 tokens when context the overflows. However, the "
        "model is "
                        "loaded with context length of only 4096 tokens, which is not enough. Try to load the model "
                            "with a "
                        "larger context length, or provide a shorter input."}),
    "LM Studio, newer": (400, "The number of tokens to keep from the initial prompt is greater than the context "
        "length."),
    "LM Studio, generation": (400, "Reached context length of 4096 tokens with model (arch: qwen3) that does not "
        "currently "
                              "support mid-generation context overflow."),
    "Ollama": (400, "prompt too long; exceeded max context length by 1012 tokens"),
    "Anthropic": (400, "prompt is too long: 208310 tokens > 200000 maximum"),
    "Anthropic, with the output": (400, "input length and `max_tokens` exceed context limit: 156321 + 48384 > 200000, "
                                   "decrease input length or `max_tokens` and try again"),
    "Gemini": (400, [{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (1200000) "
                                "exceeds the maximum number of tokens allowed (1048576)."}}]),
    "xAI": (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    "Copilot": (400, "prompt token count of 130000 exceeds the limit of 128000"),
    "GitHub Models": (413, {"error": {"code": "tokens_limit_reached", "message": "Request body too large for m "
        "model. Max "
                                      "size: 8000 tokens.", "details": "…"}}),
    "Bedrock": (400, {"message": "Input is too long for requested model."}),
    "Bedrock, Claude": (400, {"message": "The model returned the following errors: input is too long"}),
    "watsonx": (400, {"errors": [{"code": "invalid_input_argument", "message": "Invalid input argument for Model "
        "'m': the "
                                  "number of input tokens 5000 cannot exceed the total tokens limit 4096 for this "
                                      "model"}],
                      "trace": "x"}),
    "Cohere": (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received "
                     "5000. Try using a shorter prompt."}),
    "Mistral": (400, {"object": "error", "type": "invalid_request_error", "message": "Prompt contains 40000 tokens "
        "and 0 "
                      "draft tokens, too large for model with 32768 maximum context length"}),
    "Together": (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 "
        "`inputs` "
                 "tokens and 512 `max_new_tokens`"),
    "Fireworks": (400, {"error": {"object": "error", "type": "invalid_request_error", "message": "The prompt is too "
        "long: "
                                  "140000, model maximum context length: 131071"}}),
    "OpenRouter": (400, {"error": {"code": 400, "message": "This endpoint's maximum context length is 131072 tokens. "
                                   "However, you requested about 140000 tokens (139000 of text input, 1000 in the "
                                       "output)."}}),
    "Poolside": (400, "Input length 131393 exceeds the maximum allowed input length of 131040 tokens."),
    "DeepSeek": (400, "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens "
        "(66000 in "
                 "the messages, 4000 in the completion)."),
    "Moonshot": (400, {"error": {"type": "invalid_request_error", "message": "Invalid request: Your request exceeded "
        "model "
                                 "token limit: 262144 (requested: 291351)"}}),
    "SiliconFlow": (400, {"code": 20015, "message": "length of prompt_tokens (57535) must be less than max_seq_len "
                          "(32768).", "data": None}),
    "Zhipu": (400, {"error": {"code": "1261", "message": "Prompt 超长"}}),
    "DashScope": (400, {"error": {"code": "invalid_parameter_error", "message": "<400> "
        "InternalError.Algo.InvalidParameter:"
                                  " Range of input length should be [1, 30720]"}}),
    "Hunyuan": (400, {"error": {"code": "400001", "message": "input length too long. max input tokens is 28000"}}),
    "Qianfan": (400, {"error": {"code": "context_length_exceeded", "type": "invalid_request_error",
                                "message": "the max input characters is 24000"}}),
    "MiniMax": (400, "invalid params, context window exceeds limit (2013)"),
    "MiniMax, older": (500, {"error": {"code": 1039, "message": "token limit"}}),
    "Ark": (400, {"error": {"code": "InvalidParameter", "message": "Total tokens of image and text exceed max message "
                            "tokens. Request id: 0217"}}),
    "a gateway": (400, "Request size exceeds model context window"),
    "a gateway in Chinese": (400, "输入内容过长：输入长度超过模型最大上下文限制"),
    "another in Chinese": (400, "请求的 token 数 9000 超出模型上限 8192"),
    "nginx": (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
}  # fmt: skip


@pytest.mark.parametrize("provider", TOO_LONG)
def test_too_long_in_the_words_of(provider: str) -> None:
    found = failed(*TOO_LONG[provider])
    assert found.too_long
    assert not found.retryable
    assert not found.rate_limited
    assert not found.unexplained


ORDINARY: dict[str, tuple[int, Any]] = {
    "output limit": (400, "max_tokens is too large: 100000. This model supports at most 4096 completion tokens, "
        "whereas "
                     "you provided 100000."),
    "output limit, DeepSeek": (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    "output limit, DashScope": (400, "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, "
        "8192]"),
    "output limit, plain": (400, "max_tokens exceeds the limit of 8192"),
    "output limit, positive": (400, "max_tokens must be positive"),
    "output limit, TGI": (422, "Input validation error: `max_new_tokens` must be <= 2048. Given: 4096"),
    "renamed": (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' "
                "instead."),
    "temperature": (400, "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 "
        "instead."),
    "temperature, validator": (422, {"detail": [{"type": "less_than_equal", "loc": ["body", "temperature"], "input": 3,
                                                 "msg": "Input should be less than or equal to 2"}]}),
    "seed": (400, "Invalid 'seed': integer above maximum value. Expected a value <= 9223372036854775807."),
    "stop": (400, "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with "
        "length "
             "5 instead."),
    "format": (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    "schema": (400, "Invalid schema for response_format 'points': schema exceeds the maximum nesting depth of 5."),
    "schema length": (400, "response_format: the json_schema is too large, its length exceeds 15000 characters"),
    "model": (404, "The model `context-128k` does not exist"),
    "no model": (400, {"error": "No models loaded. Please load a model in the developer page."}),
    "key": (401, "Incorrect API key provided: the token is too long."),
    "token expired": (401, "token has exceeded its lifetime"),
    "plain": (400, "Bad Request"),
    "role": (400, "System role not supported"),
    "stream": (400, "This model only support stream mode, please enable the stream parameter to access the model."),
    "filter": (400, {"error": {"code": "content_filter", "message": "The response was filtered due to the prompt "
                               "triggering Azure OpenAI's content management policy. Please modify your prompt."}}),
    "quota": (403, "You have exceeded the token limit for the day."),
    "rate": (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 3512."),
    "server": (500, "The server had an error while processing your request."),
    "template": (500, "Internal Server Error: template error at message 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_refusals_are_not_taken_for_too_long(name: str) -> None:
    assert not failed(*ORDINARY[name]).too_long


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "RPM limit exceeded. Please complete identity verification to lift the restriction."),
        (400, "请求频率过高，已限流"),
        (400, "您的账户已达到速率限制，请稍后重试"),
        (403, "TPM limit reached for this account"),
        (429, "Too many requests"),
        (429, "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 3512."),
        (503, "The model is overloaded. Please try again later."),
        (400, "rate_limit_exceeded"),
    ],
)
def test_a_rate_limit_is_one_by_its_words(status: int, words: str) -> None:
    found = failed(status, words)
    assert found.rate_limited
    assert found.retryable


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "Bad Request"), (403, "Your key has no access to this model."), (400, "The corporate policy forbids it.")],
)
def test_a_refusal_without_such_words_is_none(status: int, words: str) -> None:
    found = failed(status, words)
    assert not found.rate_limited
    assert not found.retryable


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "content_filter", "message": "The response was filtered due to the prompt "
            "triggering Azure "
                         "OpenAI's content management policy. Please modify your prompt and retry."}}),
        (400, {"error": {"code": "data_inspection_failed", "message": "Output data may contain inappropriate "
            "content."}}),
        (400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}),
        (400, "Content Exists Risk: flagged by our safety system"),
        (403, "Your input was flagged by moderation."),
        (500, {"error": {"code": 1027, "message": "output new_sensitive"}}),
        (400, "The request was rejected because it was considered high risk: prohibited content"),
        (400, "输入内容违规"),
    ],
)  # fmt: skip
def test_filtered(status: int, body: Any) -> None:
    found = failed(status, body)
    assert found.filtered
    assert not found.too_long
    assert not found.unexplained


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "System role not supported"),
        (500, "jinja2.exceptions.TemplateError: System role not supported"),
        (400, "Only user and assistant roles are supported!"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (
            400,
            "Unsupported value: 'messages[0].role' does not support 'system' with this model: system message "
            "unsupported",
        ),
        (400, "该模型不支持 system 角色"),
    ],
)
def test_no_system_message(status: int, words: str) -> None:
    assert failed(status, words).no_system


@pytest.mark.parametrize(
    "words",
    [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "Streaming is required for this model",
        "Non-streaming requests are not supported",
        "parameter.enable_thinking must be set to false for non-streaming calls; this model only supports streaming",
        "该模型仅支持流式调用",
    ],
)
def test_only_streams(words: str) -> None:
    found = failed(400, words)
    assert found.only_stream
    assert not found.no_stream


def test_no_streams_and_stream_options() -> None:
    assert failed(400, "Unsupported value: 'stream' does not support true with this model.").no_stream
    options = failed(400, "Unsupported parameter: 'stream_options' is not supported")
    assert not options.no_stream
    assert not options.only_stream


@pytest.mark.parametrize("status", [None, 408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_retryable(status: int | None) -> None:
    assert CallFailed("words", status=status).retryable


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 415, 422, 501])
def test_not_retryable(status: int) -> None:
    assert not CallFailed("words", status=status).retryable


def test_no_money_is_no_reason_to_wait() -> None:
    for found in (failed(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
                  failed(429, "账户余额不足"), failed(402, "Insufficient Balance"), failed(403, "欠费")):  # fmt: skip
        assert not found.retryable
        assert not found.rate_limited


def test_what_is_not_explained() -> None:
    assert failed(400, "Bad Request").unexplained
    assert failed(422, "Unprocessable").unexplained
    assert not failed(401, "No").unexplained
    assert not failed(400, "The model `x` does not exist").unexplained
    assert not failed(500, "error").unexplained
