"""The first stage: from documents, or from a graph that was brought, to the tables of a graph; and the way out."""
