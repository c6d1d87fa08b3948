"""`python -P -m communitree`: the command without its script."""

import sys

from communitree.cli import main

if __name__ == "__main__":
    sys.exit(main())
