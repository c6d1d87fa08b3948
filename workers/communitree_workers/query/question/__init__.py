"""A question as all stages take it, and what its words ask for."""
