"""The reports on communities: evidence from the tables, a report from the evidence, a table of the reports."""
