"""One batch read: a prompt, a reply, its points."""
