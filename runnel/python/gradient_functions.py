"""``nn_grad``, ``math_grad`` and their like: the gradient of each type of operation, by its name.

Programs that change gradients call the original ones: ``nn_grad._ReluGrad(op, grad)``.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable

from runnel.graph.gradient_registry import gradient_function

_ABBREVIATED = {"Id": "Identity", "IdN": "IdentityN", "RefId": "RefIdentity"}
"""Types of operations that the names of their gradients shorten."""


def __getattr__(name: str) -> Callable[..., typing.Any]:
    # A version stands behind: _ConcatGradV2 is that of ConcatV2.
    found = re.fullmatch(r"_(\w+)Grad(V\d)?", name)
    if found is not None:
        kind, version = found.groups()
        op_type = _ABBREVIATED.get(kind, kind) + (version or "")
        for candidate in (op_type, f"{op_type}V2"):
            try:
                function = gradient_function(candidate)
            except LookupError:
                continue
            if function is not None:
                return function
    raise AttributeError(f"runnel has no gradient for {name!r}")
