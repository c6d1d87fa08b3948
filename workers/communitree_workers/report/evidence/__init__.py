"""What a report is written from: the rows and child reports of a community that its prompt shows, and what it omits."""

from __future__ import annotations

from communitree_workers.report.evidence.builder import EvidenceBuilder

__all__ = ["EvidenceBuilder"]
