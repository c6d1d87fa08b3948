"""The points of all batches as one list, on one scale."""
