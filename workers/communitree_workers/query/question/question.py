"""A question as all stages take it: what is asked, of which version, under which options, by which models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from communitree_shared.contract.messages import QueryRequest
from communitree_shared.contract.options import BatchOptions, QueryOptions, SelectionOptions
from communitree_shared.errors import UsageError
from communitree_shared.languages import language_code
from communitree_shared.tokens import count
from communitree_workers.query.question.words import QuestionWords, read_words
from communitree_workers.query.view.corpus_view import CorpusView
from communitree_workers.text.words import language

#: What is read: the rows of a batch are reports, or text units.
RowKind = Literal["reports", "sources"]


@dataclass(frozen=True)
class Question:
    """One question of one version.

    `text`: what is asked, so that it stands alone (rewritten where it came with a conversation). `models`: name of the
    model of each stage, as far as the stage at hand knows them. `open_view`: loads the version's view; a map call of a
    model needs none.
    """

    request: QueryRequest
    options: QueryOptions
    text: str
    open_view: Callable[[], CorpusView] = field(repr=False, compare=False)
    models: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def view(self) -> CorpusView:
        """Return the version's view, loaded where it is first asked for."""
        return self.open_view()

    @cached_property
    def language(self) -> str:
        """Return the language of the answer: as asked for, else the question's."""
        return answer_language(self.text, self.options)

    @cached_property
    def words(self) -> QuestionWords:
        """Return what the question asks for, told from its words and from those that the corpus has."""
        return read_words(self.text, self.view.lexicon)

    @property
    def selection(self) -> SelectionOptions:
        """Return the options of what is read."""
        return self.options.selection

    @property
    def batch(self) -> BatchOptions:
        """Return the options of how that is packed."""
        return self.options.batch

    def selecting(self, selection: SelectionOptions) -> Question:
        """Return the same question with another selection."""
        return self.under(self.options.model_copy(update={"selection": selection}))

    def under(self, options: QueryOptions) -> Question:
        """Return the same question under other options."""
        return replace(self, options=options)

    def check(self) -> None:
        """Refuse a question that is empty, or longer than the room kept for it.

        Raises:
            UsageError: with both numbers.
        """
        if not self.text.strip():
            raise UsageError("The question is empty.", hint="Give a question in words.")
        tokens = count(self.text, self.view.encoding)
        if tokens > self.batch.reserve_tokens:
            raise UsageError(
                f"The question has {tokens} tokens; {self.batch.reserve_tokens} are kept for it in every prompt.",
                hint="Shorten it, or raise --reserve-tokens (and --max-context-tokens with it).",
            )


def answer_language(text: str, options: QueryOptions) -> str:
    """Return the language in which a question is answered: as asked for, else its own."""
    return language_code(options.answer.language) or language(text)


def context_name(kind: RowKind, batch: BatchOptions) -> str:
    """Return how citations and tables name the rows that are read."""
    return "Sources" if kind == "sources" else batch.context_name
