"""The object store underneath: its client, credentials, and every object's key."""
