"""What is too large for memory: texts and rows on disk, objects of the store read in part and in order."""
