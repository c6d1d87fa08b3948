"""From shards to one graph and its tables; long descriptions summarised or cut."""
