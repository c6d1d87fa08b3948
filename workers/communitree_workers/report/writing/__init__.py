"""From evidence to a report: a model's reply read and mended, or the most central statements of the evidence."""
