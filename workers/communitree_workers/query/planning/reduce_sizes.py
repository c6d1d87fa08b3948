"""How much a reduce takes in: what planning prices, and what the rounds of the reduce keep to."""

from __future__ import annotations

from communitree_shared.contract.options import AnswerOptions

#: A joint re-rating looks at this many times what the reduce prompt holds.
RERATED = 3
#: At most this many parts are condensed into one text of a further round.
FAN_IN = 12


def part_words(groups: int, options: AnswerOptions) -> int:
    """Return how many words each of so many condensed texts may have, so that all of them fit one prompt."""
    share = options.max_data_tokens // max(1, min(groups, FAN_IN))
    return max(60, min(options.reduce_max_length, int(share * 0.55)))
