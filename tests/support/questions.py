"""Questions for tests, and what is asked of them, without a job around."""

from __future__ import annotations

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import AnswerOptions, BatchOptions, QueryOptions, SelectionOptions
from communitree_shared.contract.results import Plan
from communitree_workers.query.planning import planner as planning
from communitree_workers.query.planning.planner import Planner, Prices
from communitree_workers.query.question.question import Question
from communitree_workers.query.selection import select as selecting
from communitree_workers.query.selection.choice import Price, Selected
from communitree_workers.query.selection.dynamic import Dynamic
from communitree_workers.query.selection.relevant import Relevant
from communitree_workers.query.view.corpus_view import CorpusView


def question_of(
    view: CorpusView,
    text: str = "q",
    options: QueryOptions | None = None,
    *,
    selection: SelectionOptions | None = None,
    batch: BatchOptions | None = None,
    language: str = "",
    corpus: str = "",
    version: str = "",
    seed: int = 0,
) -> Question:
    """Return a question of a version under the given options, or of the parts that are given."""
    options = options or QueryOptions(
        selection=selection or SelectionOptions(), batch=batch or BatchOptions(), seed=seed,
        answer=AnswerOptions(language=language),
    )  # fmt: skip
    request = QueryRequest.model_construct(job="k", corpus=corpus, version=version, question=text)
    return Question(request, options, text, lambda: view)


def select(
    view: CorpusView, selection: SelectionOptions, text: str, *, price: Price | None = None,
    batch: BatchOptions | None = None, language: str = "",
) -> Selected:  # fmt: skip
    return selecting.select(question_of(view, text, selection=selection, batch=batch, language=language), price)


def planner_of(view: CorpusView, options: QueryOptions, text: str, prices: Prices | None = None) -> Planner:
    return Planner(question_of(view, text, options), prices)


def plan(
    view: CorpusView, options: QueryOptions, text: str, prices: Prices | None = None, *, corpus: str = "",
    version: str = "",
) -> Plan:  # fmt: skip
    return Planner(question_of(view, text, options, corpus=corpus, version=version), prices).plan()


def plan_all(view: CorpusView, options: QueryOptions, text: str, prices: Prices | None = None) -> list[Plan]:
    return planning.plan_all(Planner(question_of(view, text, options), prices))


def relevant(
    view: CorpusView, selection: SelectionOptions, text: str, *, price: Price | None = None, spent: float = 0.0,
    batch: BatchOptions | None = None, language: str = "", seed: int = 0,
) -> Relevant:  # fmt: skip
    question = question_of(view, text, selection=selection, batch=batch, language=language, seed=seed)
    walk = Relevant(question, price)
    walk.spent = spent
    return walk


def dynamic(view: CorpusView, selection: SelectionOptions, text: str, *, language: str = "") -> Dynamic:
    return Dynamic(question_of(view, text, selection=selection, language=language))
