import pytest

from communitree_workers.report.writing.spelling import Spelling


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("SCROOGE'S HOUSE", "", "Scrooge's House"),
        ("GHOST OF CHRISTMAS PAST", "", "Ghost of Christmas Past"),
        ("ASCII", "Padding is an ASCII space.", "ASCII"),
        ("PEP 3131", "See PEP 3131.", "PEP 3131"),
        ("WINDOW", "WINDOW is what the window is.", "Window"),
        ("IBM", "", "Ibm"),
        ("NBC", "", "NBC"),
        ("OPENAI", "What OpenAI did, openai.", "OpenAI"),
        ("FRED", "SFRED and Fred", "Fred"),
        ("CO-OP (LONDON)", "", "Co-Op (London)"),
        ("__init__", "", "__init__"),
        ("del statement", "", "del statement"),
        ("贾宝玉", "", "贾宝玉"),
        ("A", "", "A"),
        # The spelling that the text uses most, whatever stands at the beginning of a line or in an address.
        ("API", "The API is stable. An API of its own. Api keys. GET /api/v1, /api/v2, /api/v3.", "API"),
        ("NASA", "Nasa said so, and Nasa meant it. NASA.", "Nasa"),
        ("API GATEWAY", "The API is behind a gateway; the API is slow.", "API Gateway"),
        ("US ARMY", "He left the US.", "US Army"),
        ("REST API", "A REST API is offered.", "REST API"),
        ("PARANORMAL SQUAD", "PARANORMAL SQUAD is a team.", "Paranormal Squad"),
        ("CITY OF LONDON", "The CITY OF LONDON: the City of London.", "City of London"),
        # Chinese has no spaces around a Latin name, and a name may be of both.
        ("TESLA", "他在Tesla公司工作。", "Tesla"),
        ("TESLA公司", "他在Tesla公司工作。", "Tesla公司"),
        ("API网关", "请求先到API网关。", "API网关"),
        ("阿里云OSS", "", "阿里云OSS"),
        ("STRASSE", "Die Straße heißt Strasse.", "Strasse"),
    ],
)
def test_names_in_capitals_become_readable(name: str, text: str, expected: str) -> None:
    assert Spelling(text, {name: ""}).readable(name) == expected


def test_a_graph_that_spells_its_names_keeps_them() -> None:
    spelling = Spelling("Api keys", {"API": "name", "storm surge": "term", "GHOST OF CHRISTMAS PAST": "name"})
    assert spelling.readable("API") == "API"
    assert spelling.readable("storm surge") == "storm surge"
    assert spelling.readable("GHOST OF CHRISTMAS PAST") == "GHOST OF CHRISTMAS PAST"


def test_where_the_text_is_silent_the_type_decides() -> None:
    spelling = Spelling("", {"IBM": "ORGANIZATION", "EVA": "PERSON", "LONDON": "GEO"})
    assert [spelling.readable(name) for name in ("IBM", "EVA", "LONDON")] == ["IBM", "Eva", "London"]


def test_a_name_that_only_varies_an_earlier_one_is_left_out() -> None:
    names = ["Port", "Portal", "ports", "port authority", "王熙凤", "凤姐", "王熙凤院", "HTTP"]
    assert Spelling("", dict.fromkeys(names, "")).readable_all(names) == ["Port", "Portal", "王熙凤", "凤姐", "HTTP"]
