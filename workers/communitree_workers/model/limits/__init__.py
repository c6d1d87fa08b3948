"""Limits that all workers share: requests and tokens a minute, calls in flight, a common cool-down."""
