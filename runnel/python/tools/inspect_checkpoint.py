"""Prints what is in a checkpoint."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from runnel.graph.errors import OpError
from runnel.train.checkpoint_utils import load_checkpoint

__all__ = ["print_tensors_in_checkpoint_file"]


def print_tensors_in_checkpoint_file(
    file_name: Any,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints a tensor, all of them, or all their names, types and shapes.

    ``count_exclude_pattern`` names those that the count of parameters leaves out.
    """
    try:
        reader = load_checkpoint(file_name)
        shapes = reader.get_variable_to_shape_map()
        if all_tensors or all_tensor_names:
            for name in sorted(shapes):
                print("tensor_name: ", name)
                if all_tensors:
                    print(reader.get_tensor(name))
        elif not tensor_name:
            print(reader.debug_string().decode("utf-8", errors="ignore"))
        else:
            print("tensor_name: ", tensor_name)
            print(reader.get_tensor(tensor_name))
    except OpError as error:
        print(error)
        return
    counted = (
        prod(shape)
        for name, shape in shapes.items()
        if not count_exclude_pattern or not re.search(count_exclude_pattern, name)
    )
    print(f"# Total number of params: {sum(counted)}")
