"""From (graph, feeds, fetches) to a prepared step: prune, place, rewrite, cluster."""
