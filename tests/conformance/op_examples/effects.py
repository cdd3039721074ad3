"""Examples of operations that are run for an effect: checks and messages."""

import numpy as np

from tests.conformance.exchange import Inputs, call

EXAMPLES = {
    "Assert": call(np.array(True), Inputs([["fine"], [1.0]])),
    "Print": call([1.0, 2.0], Inputs([[3]]), message="x = "),
    "PrintV2": call("x = 1"),
    "StringFormat": call(Inputs([[1, 2, 3, 4, 5, 6, 7, 8], [1.5]]), template="%s and %s"),
}
