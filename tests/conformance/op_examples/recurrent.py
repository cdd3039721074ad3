"""Examples of cells of recurrent networks, and of rounding for quantized ones."""

import numpy as np

from tests.conformance.exchange import call

BATCH, SIZE, UNITS, TIME = 2, 3, 2, 4


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


X, STATE, OUTPUT = some(BATCH, SIZE), some(BATCH, UNITS, seed=1), some(BATCH, UNITS, seed=2)
W, B = some(SIZE + UNITS, 4 * UNITS, seed=3), some(4 * UNITS, seed=4)
PEEPHOLES = tuple(some(UNITS, seed=5 + k) for k in range(3))
CELL = (X, STATE, OUTPUT, W, *PEEPHOLES, B)
GATES = tuple(np.abs(np.tanh(some(BATCH, UNITS, seed=10 + k))) for k in range(6))
ALONG = (some(TIME, BATCH, SIZE, seed=20), STATE, OUTPUT, W, *PEEPHOLES, B)
ALL_GATES = tuple(np.abs(np.tanh(some(TIME, BATCH, UNITS, seed=30 + k))) for k in range(7))
FLOW, LATER = some(TIME, BATCH, UNITS, seed=40), some(TIME, BATCH, UNITS, seed=41)
GRU = (
    *(X, STATE, some(SIZE + UNITS, 2 * UNITS, seed=50), some(SIZE + UNITS, UNITS, seed=51)),
    *(some(2 * UNITS, seed=52), some(UNITS, seed=53)),
)
VALUES = np.linspace(-8, 8, 12, dtype=np.float32).reshape(4, 3)
LOW, HIGH = np.float32([-1.0, -3.0, 0.0]), np.float32([2.0, 3.5, 5.0])

EXAMPLES = {
    "LSTMBlockCell": [
        call(*CELL),
        call(*CELL, use_peephole=True, cell_clip=0.3, forget_bias=0.5),
        call(*CELL, cell_clip=-1.0),
    ],
    "LSTMBlockCellGrad": [
        call(*CELL, *GATES, STATE, OUTPUT, use_peephole=peephole) for peephole in (False, True)
    ],
    "BlockLSTM": [
        call(np.int64(TIME), *ALONG),
        # After a shorter sequence TensorFlow leaves gates as they lie in memory.
        call(np.int64(TIME), *ALONG, use_peephole=True, cell_clip=0.5),
    ],
    "BlockLSTMGrad": [
        call(np.int64(length), *ALONG, *ALL_GATES, FLOW, LATER, use_peephole=peephole)
        for length, peephole in ((TIME, False), (TIME, True))
    ],
    "GRUBlockCell": call(*GRU),
    "GRUBlockCellGrad": call(*GRU, *GATES[:3], OUTPUT),
    "FakeQuantWithMinMaxArgs": [call(VALUES), call(VALUES, min=-1.1, max=4.0, num_bits=4)],
    "FakeQuantWithMinMaxArgsGradient": call(VALUES, VALUES, min=-1.1, max=4.0, narrow_range=True),
    "FakeQuantWithMinMaxVars": [
        call(VALUES, -1.3, 3.0, num_bits=5),
        call(VALUES, 0.0, 0.0),
        call(VALUES, 1.0, 3.0, narrow_range=True),
    ],
    "FakeQuantWithMinMaxVarsGradient": [
        call(VALUES, VALUES, -1.3, 3.0),
        call(VALUES, VALUES, 0.0, 0.0),
    ],
    "FakeQuantWithMinMaxVarsPerChannel": call(VALUES, LOW, HIGH, num_bits=4),
    "FakeQuantWithMinMaxVarsPerChannelGradient": call(VALUES, VALUES, LOW, HIGH),
}
