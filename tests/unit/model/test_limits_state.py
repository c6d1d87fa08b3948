"""The limits of one process, as they hold while Redis is away; the shared ones are tested on a real server."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from communitree_workers.model.limits.state import BULK, SLACK, Demand, Limits, LocalState


def served(
    state: LocalState, limits: Limits, flows: dict[tuple[str, str], int], until: float, step: float
) -> list[tuple[float, str, str]]:
    """Ask every `step` milliseconds; calls end at once."""
    left, now, out = dict(flows), 0.0, []
    while now <= until:
        demand: list[Demand] = [(tenant, job, n, [100]) for (tenant, job), n in left.items() if n]
        for index in state.decide(limits, demand, 0, now).grants:
            tenant, job = demand[index][0], demand[index][1]
            left[tenant, job] -= 1
            out.append((now, tenant, job))
        now += step
    return out


@given(st.integers(10, 6000), st.floats(1, 150))
@settings(max_examples=40)
def test_the_rate_is_kept_and_used(rate: int, step: float) -> None:
    starts = served(LocalState(), Limits("x", requests_per_minute=rate), {("t", "j"): 20_000}, 20_000, step)
    exact = rate * 20 / 60
    assert exact * 0.97 - 1 <= len(starts) <= exact + rate * SLACK / 60_000 + 1.01


def test_tokens() -> None:
    starts = served(LocalState(), Limits("x", tokens_per_minute=60_000), {("t", "j"): 500}, 10_000, 20)
    assert 98 <= len(starts) <= 106


def test_tenants_then_jobs_share_evenly() -> None:
    flows = {("big", "a"): 900, ("big", "b"): 300, ("small", "c"): 300}
    starts = served(LocalState(), Limits("x", requests_per_minute=1200), flows, 20_000, 20)
    tenants, jobs = Counter(t for _, t, _ in starts), Counter(j for _, _, j in starts)
    assert abs(tenants["big"] - tenants["small"]) <= 2
    assert abs(jobs["a"] - jobs["b"]) <= 2


def test_all_bulk_calls_together_get_one_turn_where_a_job_gets_four() -> None:
    flows = {("t", BULK): 900, ("t", "a"): 300}
    starts = served(LocalState(), Limits("x", requests_per_minute=1200), flows, 10_000, 20)
    jobs = Counter(j for _, _, j in starts)
    assert abs(jobs["a"] - 4 * jobs[BULK]) <= 4
    assert jobs["a"] < 300  # it waited all the while


def test_a_newcomer_has_no_claim_on_the_past() -> None:
    state, limits = LocalState(), Limits("x", requests_per_minute=1200)
    served(state, limits, {("old", "a"): 500}, 10_000, 20)
    state.request_time = 0.0
    later = served(state, limits, {("old", "a"): 500, ("new", "b"): 500}, 10_000, 20)
    assert abs(sum(t == "old" for _, t, _ in later) - sum(t == "new" for _, t, _ in later)) <= 2


def test_cool_down_and_places() -> None:
    state, limits = LocalState(), Limits("x", concurrency=3)
    assert len(state.decide(limits, [("t", "j", 10, [1])], 1, 0.0).grants) == 2
    state.settle(limits, 0, 5000.0, 0.0)
    decision = state.decide(limits, [("t", "j", 10, [1])], 0, 1000.0)
    assert decision.grants == []
    assert decision.wait == 4000.0
    assert len(state.decide(limits, [("t", "j", 10, [1])], 0, 5001.0).grants) == 3


def test_a_share_is_never_no_limit() -> None:
    share = Limits("x", 600, 0, 0).share(3)
    assert (share.requests_per_minute, share.tokens_per_minute) == (200, 0)
    assert share.concurrency > 0
    assert Limits("x", concurrency=2).share(5).concurrency == 1


def test_the_strictest_of_two_stages() -> None:
    both = Limits("x", 600, 0, 5).strictest(Limits("x", 300, 1000, 0))
    assert (both.requests_per_minute, both.tokens_per_minute, both.concurrency) == (300, 1000, 5)
