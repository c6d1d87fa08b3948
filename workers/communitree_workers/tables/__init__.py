"""Tables in memory: pyarrow with the columns of `communitree_shared.contract.tables`."""
