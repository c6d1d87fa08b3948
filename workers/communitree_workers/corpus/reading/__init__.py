"""From files of any kind to documents, one by one; what cannot be read becomes a problem."""
