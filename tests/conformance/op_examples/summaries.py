"""Examples of operations that describe values for TensorBoard."""

import numpy as np

from tests.conformance.exchange import Inputs, call

RNG = np.random.default_rng(0)
SOUND = np.float32(RNG.uniform(-1.2, 1.2, (4, 10)))
SUMMARY = b"\n\x08\n\x01a\x15\x00\x00\x80?"  # the tag a, the number 1

EXAMPLES = {
    "ScalarSummary": [
        call("loss", 1.5),
        call(["a", "b"], np.array([1, -2], np.int64)),
    ],
    "HistogramSummary": [
        call("h", np.float32(RNG.normal(size=(5, 7)))),
        call("h", np.array([3, 0, -7], np.int32)),
    ],
    "ImageSummary": [
        call("i", np.float32(RNG.normal(size=(4, 5, 6, 3)))),
        call("i", RNG.integers(0, 255, (1, 5, 6, 4), np.uint8), max_images=1),
    ],
    "AudioSummaryV2": [
        call("s", SOUND, 8000.0),
        call("s", SOUND[:, :, None], 44100.5, max_outputs=1),
    ],
    "TensorSummary": [call(np.arange(6.0).reshape(2, 3)), call(["a", "b"], display_name="d")],
    "TensorSummaryV2": call("t", [1, 2, 3], np.array(b"\n\x06\n\x04text", object)),
    "MergeSummary": call(
        Inputs([np.array(SUMMARY, object), np.array([b"", SUMMARY.replace(b"a", b"b")], object)])
    ),
}
