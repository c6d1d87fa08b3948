"""What runs units: the worker process, delivery, and the context that a stage's functions get."""
