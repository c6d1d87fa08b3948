"""The workers: what consumes the queues, one package a stage."""
