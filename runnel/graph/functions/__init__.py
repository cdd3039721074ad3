"""Functions of a ``GraphDef``'s library, made part of the graph that calls them."""
