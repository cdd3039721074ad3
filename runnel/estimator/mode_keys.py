"""What a model is built for."""

from __future__ import annotations


class ModeKeys:
    """The modes in which a ``model_fn`` is called."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"
