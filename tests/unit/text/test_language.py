import pytest

from communitree_workers.text.language import Samples, in_another_script, language_of

ENGLISH = "The council met at the harbour in the evening."
CHINESE = "王晓明在上海的公司工作了很多年。"


def test_the_whole_corpus_decides_not_its_first_pages() -> None:
    assert language_of([ENGLISH] * 3 + [CHINESE] * 30) == "zh"
    assert language_of([CHINESE] * 3 + [ENGLISH] * 30) == "en"
    assert language_of([]) == "en"


def test_however_many_there_are_few_are_kept() -> None:
    samples = Samples()
    for n in range(50_000):
        samples.add(ENGLISH if n < 5_000 else CHINESE)
    assert len(samples._kept) <= 4_001
    assert samples.language() == "zh"


@pytest.mark.parametrize(
    ("text", "code", "other"),
    [
        ("大桥于1931年通车。", "en", True),
        ("The bridge opened in 1931.", "zh", True),
        ("The bridge opened in 1931.", "zh-hant", True),
        ("大桥于1931年通车。", "zh", False),
        ("大桥 (Harbour Bridge) 于1931年通车，此后港口一直繁荣。", "zh", False),
        ("橋は1931年に開通した。", "ja", False),
        ("Le pont a ouvert en 1931.", "de", False),  # which scripts do not tell
        ("다리는 1931년에 열렸다.", "ko", False),
        ("", "zh", False),
    ],
)
def test_an_answer_in_another_script_is_noticed(text: str, code: str, other: bool) -> None:
    assert in_another_script(text, code) == other
