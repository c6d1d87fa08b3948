import pytest
from hypothesis import given
from hypothesis import strategies as st

from communitree_workers.corpus.extraction.markup import prose
from communitree_workers.corpus.reading.html_pages import html_to_text
from communitree_workers.text.sentences import sentence_spans


def words(text):
    return prose(text).split()


def test_fenced_code_goes():
    assert words("Before.\n```python\nx = 1\n```\nAfter.") == ["Before.", "After."]
    assert words("Before.\n```\nnever closed\n") == ["Before."]


def test_a_text_that_begins_inside_fenced_code():
    assert words("x = f(1)\ny = g(2)\n```\n\nWords.\n\n```js\nz();\n```\n\nEnd.") == ["Words.", "End."]
    assert words("x = f(1)\ny = g(2)\n```\n\nWords.") == ["Words."]
    prose_before = "Some words.\nMore words go on here."
    assert words(f"{prose_before}\n```\nnever closed") == prose_before.split()


def test_underscores_around_words_go():
    assert words("An _important word_ and __init__ of _private a_b_c.") == (
        ["An", "important", "word", "and", "__init__", "of", "_private", "a_b_c."]
    )


def test_lines_of_html_code_are_told_from_text():
    code = "fn main() {\n    let x = 1;\n}"
    page = f"<p>Call it:</p><pre><code>{code}</code></pre><p>Or:</p><pre>Some words on a line,\nand more of them.</pre>"
    assert words(html_to_text(page)) == words("Call it: Or: Some words on a line, and more of them.")


def test_headings_lose_their_rulers_and_stand_alone():
    text = "Class definitions\n*****************\n\nA class."
    assert prose(text).startswith("Class definitions\n\n")
    assert prose("## Heading\ntext") == "## Heading\ntext"  # the marks tell that the line is a sentence
    assert words("Title\n~~~~~\n\ntext\n\nOther\n~~~~~\nmore") == ["Title", "text", "Other", "more"]


def test_links_keep_their_words():
    assert words("See [the docs](https://example.org/a_(b)) or https://example.org/x.") == (
        ["See", "[the", "docs]", "or"]
    )


def test_indented_code_goes_and_indented_text_stays():
    code = "Hence:\n\n   class Foo:\n       x = f(1)\n\nis it."
    assert words(code) == ["Hence:", "is", "it."]
    quote = (
        "He said:\n\n   This is a quotation of some length that goes on\n   over two lines of ordinary words.\n\nEnd."
    )
    assert "quotation" in words(quote)


def test_prompts_and_grammar_go():
    assert words("Text.\n>>> f(1)\nMore.\nstmt ::= a | b\n") == ["Text.", "More."]


def test_tags_and_emphasis_go():
    assert words("A <b>bold</b> **word** and *one* more&nbsp;x") == ["A", "bold", "word", "and", "one", "more", "x"]


def test_identifiers_and_chinese_stay():
    text = "The method __init__ of a_b * c。《红楼梦》里的人物。"
    assert prose(text) == text


@given(st.text(alphabet="ab \n`~*#<>=-_|[]()0.:;汉", max_size=200))
def test_offsets_stay(text):
    clean = prose(text)
    assert len(clean) == len(text)
    assert all(c == o or c in " \n" for c, o in zip(clean, text, strict=True))
    assert all(c == "\n" for c, o in zip(clean, text, strict=True) if o == "\n")


@pytest.mark.parametrize(
    "piece", [":", "-", " ", "| ", "   \n", "*", "[", "<a", "```", "> ", "\t", "::= ", "--- ", "(", ">>> "]
)
@pytest.mark.timeout(10)
def test_no_text_takes_for_ever(piece):
    text = "x\n\n" + piece * 20_000 + "\n>>> ::= --- *** [ < ``` x"
    assert len(prose(text)) == len(text)
    sentence_spans(text)
    html_to_text(text)


@pytest.mark.parametrize(
    "text",
    ["It never deletes <branch>.", "Write to <Owner@example.com> or Vec<String>.", "它从不删除 <分支> 和 <branch>。"],
)
def test_a_word_in_angle_brackets_that_is_no_element_is_text(text):
    assert prose(text) == text
