"""From (graph, feeds, fetches) to a prepared step: prune, rewrite, cluster."""
