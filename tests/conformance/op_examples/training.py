"""Examples of the operations of optimizers: each initialises a variable and slots, and updates."""

import numpy as np

import runnel
from tests.conformance.exchange import Builder, Example, Steps

HYPERS = {
    **{"lr": 0.1, "alpha": 0.1, "rho": 0.9, "momentum": 0.8, "epsilon": 1e-3, "beta": 0.9},
    **{"beta1": 0.9, "beta2": 0.99, "beta1_power": 0.81, "beta2_power": 0.98, "logbase": 1.1},
    **{"l1": 0.01, "l2": 0.02, "l2_shrinkage": 0.1, "lr_power": -0.5, "sign_decay": 0.7},
}
GRADIENT = np.array([[0.3, -0.2], [0.1, 0.5], [-0.4, 0.6]], np.float32)
INDICES = [2, 0, 2]  # twice: one update after the other


def updated(**attrs):
    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            by_handle = op_type.startswith("Resource")
            states: list[str] = []
            steps: Steps = []
            inputs: list[object] = []
            for number, argument in enumerate(runnel.get_op_def(op_type).inputs):
                name = argument.name
                if name in ("grad", "delta"):
                    inputs.append(GRADIENT)
                elif name == "indices":
                    inputs.append(INDICES)
                elif name == "global_step":
                    inputs.append(np.array(3, np.int64))
                elif name in HYPERS:
                    inputs.append(np.float32(HYPERS[name]))
                else:
                    start = np.full((3, 2), 0.5 + 0.25 * number, np.float32)
                    kind = "VarHandleOp" if by_handle else "VariableV2"
                    state = b.one(kind, shape=[3, 2], dtype=start.dtype, shared_name=name)
                    steps.append(b.op("AssignVariableOp" if by_handle else "Assign", state, start))
                    states.append(state)
                    inputs.append(state)
            update = b.op(op_type, *inputs, **attrs)
            kind, types = ("ReadVariableOp", {"dtype": 1}) if by_handle else ("Identity", {})
            reads = [b.op(kind, state, **types) for state in states]
            return [*steps, update, *reads, update, *reads]

        return example

    return example_for


EXAMPLES = {}
for op_type, op_def in runnel.registered_ops().items():
    if "Apply" in op_type and "Accumulator" not in op_type:
        EXAMPLES[op_type] = [updated()]
        for attribute in op_def.attributes.values():
            if attribute.default in (True, False) and attribute.name != "use_locking":
                EXAMPLES[op_type].append(updated(**{attribute.name: not attribute.default}))
