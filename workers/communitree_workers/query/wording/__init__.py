"""Words in and out: phrases of answers, references, forms, scores as models write them."""
