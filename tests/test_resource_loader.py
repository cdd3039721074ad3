"""``tf.resource_loader``: files beside the one that asks."""

from __future__ import annotations

import os

import runnel as tf

HERE = os.path.dirname(__file__)


def test_paths_are_beside_the_file_that_asks():
    loader = tf.resource_loader
    assert loader.get_data_files_path() == HERE
    assert loader.get_path_to_datafile("a.txt") == os.path.join(HERE, "a.txt")
    assert loader.get_root_dir_with_all_resources() == HERE
    assert loader.readahead_file_path("a.txt") == "a.txt"


def test_a_resource_is_a_file_of_the_package():
    with open(tf.__file__, "rb") as file:
        assert tf.resource_loader.load_resource("__init__.py") == file.read()
