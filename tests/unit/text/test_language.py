from communitree_workers.text.language import Samples, language_of

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
