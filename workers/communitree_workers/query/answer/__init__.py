"""The answer and its account: citations checked and resolved, everything counted, written once."""
