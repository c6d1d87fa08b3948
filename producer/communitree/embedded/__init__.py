"""The embedded stack: Valkey, an S3 server and workers as child processes of one command."""
