"""The collections of the default graph."""

import runnel as tf


def test_members_come_back_in_order():
    tf.add_to_collection("numbers", 1)
    tf.add_to_collections(["numbers", "others"], 2)
    assert tf.get_collection("numbers") == [1, 2]
    assert tf.get_collection("others") == [2]
    assert tf.get_collection("none") == []


def test_a_scope_selects_by_the_beginning_of_the_name():
    a, b = tf.constant(1.0, name="s/a"), tf.constant(1.0, name="t/b")
    for tensor in (a, b):
        tf.add_to_collection("tensors", tensor)
    tf.add_to_collection("tensors", 3)
    assert tf.get_collection("tensors", scope="s/") == [a]
    assert tf.get_collection("tensors", scope=".") == [a, b]


def test_a_copy_and_the_collection_itself():
    tf.get_collection("numbers").append(1)
    assert tf.get_collection("numbers") == []
    tf.get_collection_ref("numbers").append(1)
    assert tf.get_collection("numbers") == [1]


def test_collections_belong_to_a_graph():
    tf.add_to_collection("numbers", 1)
    with tf.Graph().as_default():
        assert tf.get_collection("numbers") == []
