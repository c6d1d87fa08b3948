"""What a question needs of a version, in flat arrays: built at publishing, loaded in milliseconds."""
