"""Which reports a question reads: a module a strategy."""
