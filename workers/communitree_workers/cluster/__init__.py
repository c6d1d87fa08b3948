"""The community tree: hierarchical Leiden over all components, with nothing left outside. The face is `core`."""
