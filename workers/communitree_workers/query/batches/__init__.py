"""The selected reports as tables of a prompt's size, stored by content."""
