"""The ledger: which units of which stages have ended, and what is to be published next.

All decisions are made inside Redis by the Lua scripts beside this file, so that no worker's death can fall
between a decision and its record. `Ledger` calls them; `Dispatcher` publishes what they put into the outbox;
`Reconciler` publishes again what was lost on the way.
"""

from communitree_shared.ledger.client import Begun, Ledger, Limits, Outgoing
from communitree_shared.ledger.stages import Stage, Step

__all__ = ["Begun", "Ledger", "Limits", "Outgoing", "Stage", "Step"]
