"""``tf.saved_model.tag_constants``: what a graph in a SavedModel is for."""

GPU = "gpu"
SERVING = "serve"
TPU = "tpu"
TRAINING = "train"


def __dir__() -> list[str]:
    return [name for name in globals() if name.isupper()]
