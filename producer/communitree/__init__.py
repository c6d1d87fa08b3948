"""communitree: the client, the command line and the embedded stack."""
