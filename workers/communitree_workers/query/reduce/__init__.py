"""From points to the answer, in as many rounds as they need."""
