"""A worker on a machine whose clock is wrong by SKEW seconds: `python -m support.skewed_worker KIND`."""

from __future__ import annotations

import os
import sys
import time

_right = time.time
_skew = float(os.environ["SKEW"])
time.time = lambda: _right() + _skew

from communitree_workers.__main__ import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["worker", *sys.argv[1:]]))
