import pytest

from communitree_workers.corpus.extraction.candidates import CODE, NAME, NOUN, START, VERB
from communitree_workers.corpus.extraction.english import candidates


def titles(sentence):
    return [c.title for c in candidates(sentence) if c.kind != VERB]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Mara Lindqvist runs the Port Alder Harbour Authority.", ["Mara Lindqvist", "Port Alder Harbour Authority"]),
        ("He lectured at the University of Tallow in March.", ["University of Tallow"]),
        ("Russia’s Vladimir Putin met Dr. Oskar Petrov.", ["Russia", "Vladimir Putin", "Oskar Petrov"]),
        ("It follows PEP 3115 and World War 2.", ["PEP 3115", "World War 2"]),
        ("The U.S. Department of Justice agreed.", ["U.S. Department of Justice"]),
        ("The United States of America and the United States", ["United States of America", "United States"]),
        ("A class definition defines a class object.", ["class definition", "class object"]),
        ("The following example shows an important thing.", []),
        ("It was on the other hand quite clear.", []),
        ("We want to import modules from packages.", ["modules", "packages"]),
        ('The "import" statement calls "__import__()".', ["import statement", "__import__"]),
        ("Citizens blocking tanks stood there.", ["citizens", "tanks"]),
        ("In this way.It goes on with a.x and sys.path too.", ["sys.path"]),
        ("", []),
    ],
)
def test_phrases(sentence, expected):
    assert titles(sentence) == expected


def test_what_a_capital_means():
    assert [(c.title, c.kind) for c in candidates("Tugboats left with Mara.")] == [("Tugboats", START), ("Mara", NAME)]
    assert [c.kind for c in candidates("the terminal uses `make_it`")] == [NOUN, CODE]


def test_a_verb_is_evidence_against_a_noun():
    found = [(c.key, c.kind) for c in candidates("They lecture to compile the code.")]
    assert ("lecture", VERB) in found
    assert ("compile", VERB) in found


def test_references_into_the_document_name_nothing():
    assert titles("See Listing 10-17 in Chapter 4 and RFC 3610.") == ["RFC 3610"]


def test_capitals_in_a_shouted_sentence_mean_nothing():
    assert titles("THE LICENSE COMES WITHOUT ANY WARRANTY FOR THE PROGRAM.") == ["license", "warranty", "program"]


def test_plurals_and_case_share_a_key():
    keys = {c.key for s in ("a base class", "the Base classes", "base classes") for c in candidates(s)}
    assert keys == {"class"} or keys == {"base class"}


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("the Bayline Shipping Company", "organization"),
        ("down the Alder River", "place"),
        ("with President Alma Ruiz", "person"),
        ("with Alma Ruiz", "name"),
    ],
)
def test_types(sentence, kind):
    assert [c.type for c in candidates(sentence)] == [kind]
