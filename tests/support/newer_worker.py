"""A worker of the next release: its messages carry a higher version. `python -m support.newer_worker KIND`."""

from __future__ import annotations

import sys

from communitree_shared.contract import messages

messages.VERSION += 1
messages.Message.model_fields["v"].default = messages.VERSION
messages.Message.model_rebuild(force=True)

from communitree_workers.__main__ import main  # noqa: E402

if __name__ == "__main__":
    assert messages.Message.model_validate(
        {"task": "t", "tenant": "t", "job": "j", "stage": "s", "id": "i", "units": [{"id": "u"}]}
    ).v == messages.VERSION  # fmt: skip
    sys.exit(main(["worker", *sys.argv[1:]]))
