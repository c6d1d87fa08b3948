"""The Redis or Valkey underneath: its address, connections, and every key by name."""
