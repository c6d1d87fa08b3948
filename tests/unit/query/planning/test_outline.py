"""What a community is rated by: the whole of what its report is about, not the beginning of what it says."""

from __future__ import annotations

from communitree_workers.query.planning.known import outline


def test_an_outline_is_title_summary_and_every_heading() -> None:
    findings = [{"summary": f"Finding {n}", "explanation": "long " * 300} for n in range(3)]
    assert outline("Harbour", "Ships.", findings) == "# Harbour\nShips.\n- Finding 0\n- Finding 1\n- Finding 2"


def test_what_is_missing_leaves_no_gap() -> None:
    assert outline("Harbour", None, [{"summary": None}, {"summary": "Dues"}]) == "# Harbour\n- Dues"
    assert outline(None, "Ships.", []) == "# \nShips."


def test_a_report_of_text_alone_has_no_outline() -> None:
    assert outline("Harbour", "", [{"explanation": "All that there is."}]) == ""
