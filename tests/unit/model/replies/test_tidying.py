from __future__ import annotations

import pytest

from communitree_workers.model.replies.tidying import is_refusal, unwrapped

ANSWER = "The harbour was built in 1931. [Data: Reports (1)]"


@pytest.mark.parametrize(
    "raw",
    [
        f"```\n{ANSWER}\n```",
        f"```markdown\n{ANSWER}\n```\n",
        f"~~~md\n{ANSWER}\n~~~",
        f'{{"answer": "{ANSWER}"}}',
        f'```json\n{{"answer": "{ANSWER}"}}\n```',
        f'{{"response": "```markdown\\n{ANSWER}\\n```"}}',
        f'{{"答案": "{ANSWER}"}}',
    ],
)
def test_what_stands_around_an_answer_is_taken_off(raw: str) -> None:
    assert unwrapped(raw) == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"{ANSWER}\n```\ncode\n```",
        "```python\nprint(1)\n```",
        "```\none\n```\ntext\n```\ntwo\n```",
        '{"answer": "a", "sources": "b"}',
        '{"harbour": "built in 1931"}',
        '{"answer": ["a"]}',
        '{"answer": "a"',
        "```\nnot closed",
        "",
    ],
)
def test_what_belongs_to_an_answer_stays(text: str) -> None:
    assert unwrapped(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that.",
        "I’m sorry, but I cannot help with this request.",
        "I am sorry, but I cannot help with that.",
        "Sorry, I can't help with that request. Is there anything else I can do for you?",
        "I cannot provide information about this topic.",
        "I can't comply with that request.",
        "As an AI language model, I cannot engage in discussions of this kind.",
        "I apologize, but I'm unable to fulfill this request as it goes against my guidelines.",
        "Unfortunately, I am not able to discuss this topic.",
        "抱歉，我无法回答这个问题。",
        "很抱歉，我不能提供相关内容，我们换个话题吧。",
        "对不起，我无法协助完成这一请求。",
        "作为一个人工智能语言模型，我无法讨论该话题。",
        "你好，这个问题我暂时无法回答，让我们换个话题再聊聊吧。",
        "你好，我无法给到相关内容。",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)
    assert is_refusal(f"\n{text}\n")


@pytest.mark.parametrize(
    "text",
    [
        "\"I'm sorry, but I can't help you,\" said the clerk to Mira Cole in 1931.",
        "“抱歉，我无法回答这个问题。”他说完就走了。",
        "I'm sorry, but the reports do not say who planned the breakwater.",
        "I am sorry but I am unable to answer this question given the provided data.",
        "I cannot answer this from the context given.",
        "抱歉，根据提供的报告，我无法回答这个问题。",
        "The clerk could not help: he was sorry, but I cannot help, he wrote.",
        "The minister said he was sorry and could not assist with that.",
        "I'm sorry, but I cannot help with that. [Data: Reports (3)]",
        "I'm sorry, but I can't help with that. " + "The harbour, however, was built in 1931 by Mira Cole. " * 12,
        "市长说他无法回答这个问题，并表示抱歉。",
        "He could not comply with the order.",
        "Sorry is the name of a ship.",
        "",
    ],
)
def test_what_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)
