"""The way in for graphs: tables that GraphRAG 0.x to 3.x wrote, and plain edge lists."""

from communitree_workers.corpus.graph_import.read import Imported, read_graph

__all__ = ["Imported", "read_graph"]
