from __future__ import annotations

import pytest
import typer

from communitree.cli.values import age, seconds, share


@pytest.mark.parametrize(("text", "value"), [("30", 30), ("30s", 30), ("1.5m", 90), ("2 min", 120), ("1h", 3600)])
def test_times(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1s", "soon", "3 days", "1e3"])
def test_no_times(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no time"):
        seconds(text)


@pytest.mark.parametrize(("text", "value"), [("0.05", 0.05), ("5%", 0.05), ("100%", 1), ("0", 0)])
def test_shares(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "101%", "half", "-1%", "%"])
def test_no_shares(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no share"):
        share(text)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("0s", 0), ("12", 43_200), ("30s", 30), ("2m", 120), ("1.5h", 5400), ("7d", 604_800)]
)
def test_ages(text: str, value: float) -> None:
    assert age(text) == value


@pytest.mark.parametrize("text", ["", "-1", "soon", "3 weeks"])
def test_no_ages(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no time: write 12"):
        age(text)
