"""Looks at a version's tables: the tree, a report with its evidence, a text unit in its document, an export, a plan."""
