"""What a model said: its thinking off, its ending known, its JSON read."""
