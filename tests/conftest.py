from __future__ import annotations

from hypothesis import settings

# Examples have no deadline: the machine may be busy, and the first one loads what the others find loaded.
settings.register_profile("communitree", deadline=None)
settings.load_profile("communitree")
