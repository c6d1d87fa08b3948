"""What producer and workers must agree on: messages, tables, keys, ledger, settings, errors."""
