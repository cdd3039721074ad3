"""What other packages attach to a graph: one object for each type, as long as the graph lives."""

import gc
import threading
import weakref

import runnel as tf


class Notes(list):
    """Something that a package knows of a graph."""


class OtherNotes(list):
    pass


def test_a_graph_has_one_object_of_a_type():
    graph, other = tf.Graph(), tf.Graph()
    notes = graph.attached(Notes)
    assert type(notes) is Notes
    assert graph.attached(Notes) is notes
    assert graph.attached(OtherNotes) is not notes
    assert other.attached(Notes) is not notes


def test_what_is_attached_dies_with_the_graph_to_which_it_refers():
    graph = tf.Graph()
    with graph.as_default():
        graph.attached(Notes).append(tf.constant(1.0))
    notes, died = weakref.ref(graph.attached(Notes)), weakref.ref(graph)
    del graph
    gc.collect()
    assert died() is None
    assert notes() is None


def test_threads_that_ask_at_once_get_the_same_object():
    graph = tf.Graph()
    together = threading.Barrier(8)
    found = []

    def ask():
        together.wait(60)
        found.append(graph.attached(Notes))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
