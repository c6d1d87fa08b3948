"""What callers and workers agree on: messages, options, results, and the columns of the tables."""
