"""From a question to batches that wait to be read, and what that costs."""
