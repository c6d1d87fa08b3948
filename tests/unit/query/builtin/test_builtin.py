"""The built-in model: finds what matches, names the themes where nothing is asked for, cites, and says nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from communitree_shared.contract.options import AnswerOptions, BatchOptions, Turn
from communitree_shared.contract.results import Point
from communitree_shared.tokens import count
from communitree_workers.citing.grammar import grammar_of
from communitree_workers.query.batches.batch import Batch
from communitree_workers.query.batches.frame import Frame
from communitree_workers.query.batches.packing import make_batches
from communitree_workers.query.batches.rows import Row
from communitree_workers.query.builtin.answer import write_answer
from communitree_workers.query.builtin.replies import map_reply, question_matcher, rate_reply, rewrite_reply
from communitree_workers.query.map.reply import parse_points
from communitree_workers.query.question.words import read_words
from communitree_workers.query.view.cells import cell
from communitree_workers.query.view.lexicon import Lexicon

OVERVIEW_EN = "person: ALICE ADAMS, Bob Brown\ngeo: Harbour\n[1] Harbour and Lighthouse: ships\n"
OVERVIEW_ZH = "人物: 贾宝玉, 林黛玉, 薛宝钗\n[1] 荣国府: 一家人\n"
EN = [
    (
        "Harbour, Lighthouse and Alice Adams",
        "The harbour was rebuilt in 1907. It serves the whole coast.",
        [
            ("Alice Adams, with the harbour", "Alice Adams led the works [Data: Entities (3)]. She was an engineer."),
            ("Lighthouse", 'The lighthouse has a "red" lamp | visible for miles.'),
        ],
        20,
    ),
    ("Railway and Bob Brown", "The railway runs inland.", [("Bob Brown", "Bob Brown drove the first train.")], 9),
    ("Orchards", "Apples grow in the valley.", [("Apples", "Apples are sold in the town.")], 2),
]
ZH = [
    (
        "贾宝玉、林黛玉与荣国府",
        "荣国府是贾家的府第。贾宝玉住在这里。",
        [("贾宝玉", "贾宝玉与林黛玉自幼相识。他衔玉而生。"), ("林黛玉", "林黛玉初进荣国府，见了贾母。")],
        20,
    ),
    ("薛宝钗与薛家", "薛家进京。", [("薛宝钗", "薛宝钗随母亲进京待选。")], 9),
]


def batch_of(reports: Sequence[tuple[str, str, list[tuple[str, str]], int]], overview: str) -> Batch:
    rows = []
    for i, (title, summary, findings, weight) in enumerate(reports, start=1):
        body = "\n\n".join([f"# {title}", summary, *(f"## {h}\n\n{t}" for h, t in findings)])
        line = "|".join((str(i), cell(title), "0", f"{weight / 20:.2f}", "5", cell(body))) + "\n"
        rows.append(Row(i, line.encode(), count(line), (-weight, -5, i)))
    (batch,) = make_batches(rows, BatchOptions(), Frame(0, overview, [1]))
    return batch


ENGLISH, CHINESE = batch_of(EN, OVERVIEW_EN), batch_of(ZH, OVERVIEW_ZH)


def points(batch: Batch, question: str) -> list[Point]:
    result = parse_points(map_reply(batch, question, AnswerOptions()), batch)
    assert result.repaired == 0
    assert not any(p.unverified for p in result.points)
    return [
        Point(text=p.text, score=p.score or 0, adjusted=p.score, batch=0, reports=p.reports, used=True)
        for p in result.points
    ]


def answer(batch: Batch, question: str, language: str = "en", **options: str) -> str:
    titles = {int(c["id"]): c["title"] for c in batch.cells()}
    return write_answer(points(batch, question), read_words(question), AnswerOptions(**options), language, titles)  # type: ignore[arg-type]


def test_a_question_about_something_finds_it_and_cites_its_report() -> None:
    found = points(ENGLISH, "Who rebuilt the harbour?")
    assert found
    assert all(p.reports == [1] for p in found)
    assert any("harbour" in p.text for p in found)
    assert not any("[Data" in p.text for p in found)
    assert "Bob Brown drove the first train." in points(ENGLISH, "What did Bob Brown drive?")[0].text


def test_something_absent_gives_no_points() -> None:
    assert points(ENGLISH, "What about quantum chromodynamics?") == []
    assert points(CHINESE, "量子力学讲了什么？") == []


def test_words_the_corpus_does_not_know_weigh_the_most() -> None:
    lexicon = Lexicon.build([["power", "harbour"], ["power"], ["power"], ["apple"]])
    weights = question_matcher(read_words("Is there nuclear power?", lexicon), lexicon).weights
    assert weights["nuclear"] > weights["power"]
    assert map_reply(ENGLISH, "Is there a nuclear harbour?", AnswerOptions(), lexicon)["points"] == []


def test_a_word_that_a_chinese_corpus_does_not_know_hides_nothing() -> None:
    lexicon = Lexicon.build([["贾宝玉", "宝玉", "林黛玉", "黛玉"], ["薛宝钗", "薛家"], ["贾母", "喜欢"], ["薛家"]])
    found = map_reply(CHINESE, "宝玉的性格怎么样？", AnswerOptions(), lexicon)["points"]
    assert "贾宝玉与林黛玉自幼相识" in found[0]["description"]
    assert map_reply(CHINESE, "孙悟空的性格怎么样？", AnswerOptions(), lexicon)["points"] == []
    ratings = rate_reply([(1, "宝玉衔玉而生"), (2, "薛家进京")], "宝玉的性格怎么样？", lexicon)["ratings"]
    assert [row["rating"] for row in ratings] == [5, 0]


def test_a_chinese_verb_weighs_less_than_the_name_beside_it() -> None:
    lexicon = Lexicon.build([["贾母"], ["贾母"], ["贾母", "喜欢"], ["薛家"]])
    weights = question_matcher(read_words("贾母喜欢谁？", lexicon), lexicon).weights
    assert weights["喜欢"] < 0.75
    technical = question_matcher(read_words("借用是什么？", lexicon), lexicon).weights
    assert technical == {"借用": 1.2}


def test_a_general_question_gives_the_big_themes_first() -> None:
    found = points(ENGLISH, "What are the main themes of this corpus?")
    assert [p.reports for p in found] == [[1], [2], [3]]
    text = answer(ENGLISH, "What are the main themes of this corpus?")
    assert text.startswith("The corpus is mainly about")
    assert "[Data: Reports (1)]" in text
    assert "rebuilt in 1907" in text


@pytest.mark.parametrize(
    ("titles", "opening"),
    [
        (
            ["Workers, Queues, Result Backends, Time Limits and Retries", "Tables"],
            "The corpus is mainly about Workers, Queues, Result Backends; Tables.",
        ),
        (
            ["How the harbour authority of the northern city came to be rebuilt", "Tables"],
            "The corpus is mainly about How the harbour authority of the… and Tables.",
        ),
        (["Harbours and Orchards", "Tables"], "The corpus is mainly about Harbours and Orchards; Tables."),
    ],
)
def test_long_titles_are_told_briefly_in_the_opening(titles: list[str], opening: str) -> None:
    found = [Point(text=f"Statement {i}.", score=50, adjusted=50, batch=0, reports=[i], used=True) for i in (0, 1)]
    text = write_answer(found, read_words("What are the main themes?"), AnswerOptions(), "en", dict(enumerate(titles)))
    assert text.splitlines()[0] == opening


@pytest.mark.parametrize(
    "question",
    [
        "这本小说主要讲什么",
        "那本书讲了什么？",
        "这些文件的主题是什么",
        "这套丛书讲了什么",
        "这几篇文章讨论什么",
        "此书的主旨",
    ],
)
def test_words_that_point_at_the_corpus_name_nothing_in_it(question: str) -> None:
    assert read_words(question).general


def test_chinese_themes() -> None:
    text = answer(CHINESE, "主要内容是什么？", "zh")
    assert "贾宝玉" in text
    assert "[Data: Reports (1)]" in text
    assert "main" not in text


def test_who_are_the_main_persons() -> None:
    text = answer(CHINESE, "主要人物有哪些？", "zh")
    assert text.startswith("主要人物有")
    for name in ("贾宝玉", "林黛玉", "薛宝钗"):
        assert name in text.splitlines()[0]
    assert set(grammar_of().ids(text)) == {1, 2}
    english = answer(ENGLISH, "Who are the main characters?")
    assert english.startswith("The main persons are Alice Adams and Bob Brown.")


def test_a_name_that_contains_a_shorter_one_matches() -> None:
    found = points(CHINESE, "林黛玉是怎么到荣国府的？")
    assert any("林黛玉初进荣国府" in p.text for p in found)


@pytest.mark.parametrize("form", ["multiple paragraphs", "single paragraph", "prioritized list", "multi-page report"])
def test_the_form_of_the_answer(form: str) -> None:
    text = answer(ENGLISH, "What are the main themes?", response_type=form)
    assert grammar_of().ids(text)
    if form == "single paragraph":
        assert "\n" not in text
    if form == "prioritized list":
        assert "1. **" in text
    if form == "multi-page report":
        assert "## " in text


def test_the_same_input_gives_the_same_answer() -> None:
    assert answer(ENGLISH, "Tell me about the lighthouse") == answer(ENGLISH, "Tell me about the lighthouse")
    assert '"red" lamp | visible' in answer(ENGLISH, "Tell me about the lighthouse")


def test_scores_are_on_one_scale_for_all_batches() -> None:
    alone = batch_of(EN[1:2], "")
    question = "What did Bob Brown drive?"
    together = {p.text: p.score for p in points(ENGLISH, question)}
    assert {p.text: p.score for p in points(alone, question)}.items() <= together.items()


def test_the_word_limit_of_a_reply_is_kept() -> None:
    reply = map_reply(ENGLISH, "main themes?", AnswerOptions(map_max_length=12))
    assert 0 < len(reply["points"]) < 3


def test_ratings_follow_the_words() -> None:
    items = [(1, "The harbour and its ships"), (2, "Apples"), (3, "The harbour was rebuilt")]
    ratings = {row["id"]: row["rating"] for row in rate_reply(items, "Who rebuilt the harbour?")["ratings"]}
    assert ratings[3] > ratings[1] > ratings[2] == 0
    general = rate_reply(items, "What are the main themes?")["ratings"]
    assert {row["rating"] for row in general} == {3}


def test_questions_that_point_back_take_the_last_one_that_names_something() -> None:
    history = [Turn(role="user", content="Who is Tiny Tim?"), Turn(role="assistant", content="A boy.")]
    assert "Tiny Tim" in rewrite_reply("What happens to him?", history)
    assert rewrite_reply("Who is Bob Cratchit?", history) == "Who is Bob Cratchit?"
    assert "林黛玉" in rewrite_reply("她多大？", [Turn(role="user", content="林黛玉是谁？")])


def test_reading_a_question() -> None:
    assert read_words("What are the main themes in the dataset?").general
    assert read_words("主要人物有哪些？").kind == "people"
    assert read_words("这部小说讲了什么故事？").general
    asked = read_words("Where is the lighthouse?")
    assert (asked.kind, asked.specific) == ("places", ("lighthouse",))


def test_text_units_stand_under_the_title_of_their_document() -> None:
    used = [
        Point(text=text, score=90 - n, adjusted=90 - n, batch=0, reports=[n], used=True)
        for n, text in enumerate(("The lamp is red.", "The pier is old.", "The lamp was lit."))
    ]
    titles = {0: "lamps.txt", 1: "piers.txt", 2: "lamps.txt"}
    told = write_answer(used, read_words("Which lamp is red?"), AnswerOptions(), "en", titles, "Sources")
    assert "**lamps.txt**: The lamp is red. [Data: Sources (0)] The lamp was lit. [Data: Sources (2)]" in told
    assert told.count("piers.txt") == 1
    themes = write_answer(used, read_words("What are the main themes?"), AnswerOptions(), "en", titles, "Sources")
    assert "mainly about" not in themes
