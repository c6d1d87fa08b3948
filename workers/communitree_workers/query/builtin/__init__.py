"""The built-in model at query time: it matches words, and needs no network."""
