"""From text units to what stands in them: by the built-in extractor, by spaCy, or by a model."""
