"""Search on a graph: equal states share one node, values are Bellman backups (`SearchConfig(graph=True)`)."""
