"""``tf.keras.Model``: layers of layers that can be compiled, trained, evaluated and asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.keras import data_sources, optimizers, training_loop
from runnel.keras.backend_state import batch_set_value, floatx, get_session
from runnel.keras.callback import configured
from runnel.keras.compiled import Compiled, graph_of
from runnel.keras.input_data import as_array, prepared
from runnel.keras.learning_phase import learning_phase, phase_of_graph
from runnel.keras.network import Network
from runnel.ops.constants import placeholder


class Model(Network):
    """Layers between inputs and outputs, or a subclass that applies them in ``call``.

    Example:
        >>> inputs = tf.keras.Input([4])
        >>> hidden = tf.keras.layers.Dense(8, "relu")(inputs)
        >>> model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))
        >>> model.compile("adam", "mse")
        >>> model.fit(x, y, epochs=5)
    """

    _compiled: Compiled | None = None
    _asked: dict[str, Any] | None = None
    """What ``compile`` was given, until the outputs are known."""
    optimizer: Any = None
    stop_training = False

    # Compiling --------------------------------------------------------------------------------

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        **kwargs: Any,
    ) -> None:
        """Says how to train: the optimizer, the loss, what to watch.

        Losses and metrics are names, functions or objects; for several outputs, lists or dicts by
        the outputs' names. Which variables are trained is decided here: after changing a layer's
        ``trainable``, compile again.

        Example:
            >>> model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
        """
        kwargs.pop("experimental_run_tf_function", None)
        eagerly = kwargs.pop("run_eagerly", None)
        if eagerly or distribute is not None:
            raise ValueError(
                "runnel trains models as graphs in one session: leave out run_eagerly and "
                "distribute (tf.keras.estimator and tf.train have many workers)"
            )
        if kwargs:
            raise TypeError(
                f"Invalid keyword argument(s) in `compile`: {sorted(kwargs)}. The fetches and "
                "feeds of single steps are for session.run"
            )
        self.optimizer = optimizers.get(optimizer)
        self.__dict__["_asked"] = {
            "loss": loss,
            "metrics": metrics,
            "loss_weights": loss_weights,
            "sample_weight_mode": sample_weight_mode,
            "weighted_metrics": weighted_metrics,
            "target_tensors": target_tensors,
        }
        self.loss, self.loss_weights = loss, loss_weights
        self.sample_weight_mode = sample_weight_mode
        self._forget_compiled()
        if self.outputs:
            self._finish_compiling()

    def _forget_compiled(self) -> None:
        self.__dict__.pop("_compiled", None)
        self.__dict__.pop("_predicting", None)

    def _finish_compiling(self) -> None:
        assert self._asked is not None
        with graph_of(self).as_default(), _outside_scopes():
            self.__dict__["_compiled"] = Compiled(self, **self._asked)

    def _require_compiled(self) -> Compiled:
        if self._compiled is None and self._asked is not None and self.outputs:
            self._finish_compiling()
        if self._compiled is None:
            raise RuntimeError(
                "You must compile your model before training/testing. Use "
                "`model.compile(optimizer, loss)`."
            )
        return self._compiled

    @property
    def metrics_names(self) -> list[str]:
        """What ``evaluate`` returns: the loss, the losses of several outputs, the metrics."""
        return ["loss"] if self._compiled is None else self._compiled.names

    @property
    def metrics(self) -> list[Any]:
        """The metrics of ``compile``, then those that layers have added."""
        own = [] if self._compiled is None else self._compiled.metric_objects
        return [*own, *self._added_metrics()]

    def _added_metrics(self) -> list[Any]:
        found = [*self._own_metrics, *[m for x in self._sublayers() for m in _metrics_of(x)]]
        return list({id(m): m for m in found}.values())

    def _losses_of_inputs(self) -> list[Any]:
        """The layers' losses that depend on no input, or on those of this model."""
        from runnel.layers.dependence import depending_on

        found = [*depending_on(self.losses, None), *depending_on(self.losses, self.inputs)]
        return list({id(loss): loss for loss in found}.values())

    def _trained_weights(self) -> list[Any]:
        return self.trainable_weights if self._compiled is None else self._compiled.trained

    def _fed_inputs(self) -> list[Any]:
        kinds = ("Placeholder", "PlaceholderWithDefault")
        return [tensor for tensor in self.inputs or () if tensor.op.type in kinds]

    def reset_metrics(self) -> None:
        """Sets the metrics to zeros, as before each epoch."""
        if self._compiled is None:
            return
        watched = self._compiled.watched
        plain = [m for m in watched if _resets_to_zero(m)]
        variables = [v for metric in plain for v in metric.variables]
        if variables:
            batch_set_value([(v, np.zeros(v.shape.as_list())) for v in variables])
        for metric in watched:
            if metric not in plain:
                metric.reset_states()

    # Inputs that only the data tell -------------------------------------------------------------

    def _set_inputs(self, data: Any) -> None:
        """Makes the inputs and outputs of a model that no one has called on an ``Input``."""
        if self.outputs:
            return
        if isinstance(data, dict):
            made: Any = {name: _placeholder(value, name) for name, value in data.items()}
        elif isinstance(data, list | tuple) and not np.isscalar(data[0]) and _several(data):
            made = [_placeholder(value, f"input_{i + 1}") for i, value in enumerate(data)]
        else:
            made = _placeholder(data, "input_1")
        names = list(made) if isinstance(made, dict) else None
        arguments = {"training": learning_phase()} if self._takes("training") else {}
        outputs = self(made, **arguments)
        if isinstance(made, dict):
            made = list(made.values())
        self.inputs = list(made) if isinstance(made, list) else [made]
        if isinstance(outputs, dict):
            outputs = [outputs[name] for name in sorted(outputs)]
        self.outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        self.input_names = names or [f"input_{i + 1}" for i in range(len(self.inputs))]
        self.output_names = [f"output_{i + 1}" for i in range(len(self.outputs))]

    def _ready(self, x: Any, compiled: bool = True) -> None:
        self._set_inputs(x)
        if compiled:
            self._require_compiled()
        waiting = self.__dict__.pop("_waiting_weights", None)
        if waiting is not None:
            from runnel.keras.saved_weights import restore

            restore(self, waiting)

    # One batch --------------------------------------------------------------------------------

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        reset_metrics: bool = True,
    ) -> Any:
        """Trains on one batch; returns its loss, or a list of the loss and the metrics."""
        return self._on_batch("train", x, y, sample_weight, class_weight, reset_metrics)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True
    ) -> Any:
        """The loss of one batch, or a list of the loss and the metrics."""
        return self._on_batch("test", x, y, sample_weight, None, reset_metrics)

    def _on_batch(
        self, mode: str, x: Any, y: Any, sample_weight: Any, class_weight: Any, reset: bool
    ) -> Any:
        with self._in_graph():
            x, y, sample_weight = data_sources.evaluated((x, y, sample_weight))
            self._ready(x)
            fed = prepared(self, x, y, sample_weight, class_weight)
            found = self._require_compiled().step(mode)(fed)
            if reset:
                self.reset_metrics()
        return found if len(found) > 1 else found[0]

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs of one batch: an array, or a list for several outputs."""
        with self._in_graph():
            (x,) = data_sources.evaluated((x,))
            self._ready(x, compiled=False)
            found = self._predict_step()(data_sources.only_inputs(self, x))
        return found if len(found) > 1 else found[0]

    def _predict_step(self) -> Callable[[list[Any]], list[Any]]:
        session = get_session()
        kept = self.__dict__.get("_predicting")
        if kept is None or kept[0] is not session:
            effects = list(self.state_updates)
            phase = phase_of_graph()
            known = {phase: False} if isinstance(phase, Tensor) else {}
            run = session._callable_where([self.outputs, effects], self._fed_inputs(), known)
            kept = self.__dict__["_predicting"] = (session, run)
        run = kept[1]
        return lambda values: run(*values)[0]  # type: ignore[no-any-return]

    def _in_graph(self) -> Any:
        return graph_of(self).as_default()

    # Many batches -----------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Trains for ``epochs`` over the data; returns a ``History`` of losses and metrics.

        ``x`` and ``y`` are arrays (lists or dicts of them for several inputs and outputs), or
        ``x`` alone is a ``tf.data.Dataset``, an iterator, a generator or a ``Sequence`` of pairs.

        Example:
            >>> history = model.fit(x, y, batch_size=32, epochs=5, validation_split=0.1)
            >>> history.history["val_loss"]
        """
        epochs = _renamed(kwargs, "nb_epoch", epochs)
        options = data_sources.Options(batch_size, max_queue_size, workers, use_multiprocessing)
        with self._in_graph():
            source, held_out = data_sources.for_training(
                *(self, x, y, sample_weight, class_weight, options, shuffle, steps_per_epoch),
                validation_split=validation_split,
            )
            if validation_data is not None:
                held_out = data_sources.for_validation(
                    self, validation_data, options, validation_steps
                )
            if verbose:
                _announce(source, held_out)
            return training_loop.train(
                *(self, source, epochs, initial_epoch, callbacks, verbose),
                held_out,
                validation_freq,
            )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The loss over the data, or a list of the loss and the metrics (``metrics_names``)."""
        options = data_sources.Options(batch_size, max_queue_size, workers, use_multiprocessing)
        with self._in_graph():
            source = data_sources.for_testing(self, x, y, sample_weight, options, steps)
            try:
                called = configured(callbacks, self, source, 1, verbose, False)
                found = training_loop.test(self, source, called, verbose)
            finally:
                source.close()
        return found if len(found) > 1 else found[0]

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The outputs for the data, as an array (a list for several outputs)."""
        options = data_sources.Options(batch_size, max_queue_size, workers, use_multiprocessing)
        with self._in_graph():
            source = data_sources.for_prediction(self, x, options, steps)
            try:
                return training_loop.predicted(self, source, callbacks, verbose)
            finally:
                source.close()

    def fit_generator(
        self,
        generator: Any,
        steps_per_epoch: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_data: Any = None,
        validation_steps: int | None = None,
        validation_freq: Any = 1,
        class_weight: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        shuffle: bool = True,
        initial_epoch: int = 0,
    ) -> Any:
        """:meth:`fit` on what a generator or a ``Sequence`` yields."""
        return self.fit(
            generator,
            steps_per_epoch=steps_per_epoch,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            validation_data=validation_data,
            validation_steps=validation_steps,
            validation_freq=validation_freq,
            class_weight=class_weight,
            max_queue_size=max_queue_size,
            workers=workers,
            use_multiprocessing=use_multiprocessing,
            shuffle=shuffle,
            initial_epoch=initial_epoch,
        )

    def evaluate_generator(
        self,
        generator: Any,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
    ) -> Any:
        """:meth:`evaluate` on what a generator or a ``Sequence`` yields."""
        ahead = {"max_queue_size": max_queue_size, "workers": workers}
        return self.evaluate(
            generator,
            steps=steps,
            callbacks=callbacks,
            verbose=verbose,
            use_multiprocessing=use_multiprocessing,
            **ahead,
        )

    def predict_generator(
        self,
        generator: Any,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
    ) -> Any:
        """:meth:`predict` on what a generator or a ``Sequence`` yields."""
        return self.predict(
            generator,
            steps=steps,
            callbacks=callbacks,
            verbose=verbose,
            max_queue_size=max_queue_size,
            workers=workers,
            use_multiprocessing=use_multiprocessing,
        )

    # Files ------------------------------------------------------------------------------------

    def save_weights(self, filepath: Any, overwrite: bool = True, save_format: Any = None) -> None:
        """Writes the variables to a checkpoint of TensorFlow, or, for ``.h5``, to HDF5."""
        from runnel.keras import saved_weights

        with self._in_graph():
            saved_weights.save(self, str(filepath), overwrite, save_format)

    def load_weights(self, filepath: Any, by_name: bool = False) -> Any:
        """Sets the variables to those of a file that :meth:`save_weights` has written."""
        from runnel.keras import saved_weights

        with self._in_graph():
            return saved_weights.load(self, str(filepath), by_name)

    def save(
        self,
        filepath: Any,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the layers, the variables and the optimizer to one HDF5 file."""
        from runnel.keras import saved_models

        with self._in_graph():
            saved_models.save_model(self, filepath, overwrite, include_optimizer, save_format)

    def to_json(self, **kwargs: Any) -> str:
        """The layers and how they are connected, as JSON; ``model_from_json`` reads it.

        Example:
            >>> other = tf.keras.models.model_from_json(model.to_json())
        """
        from runnel.keras import saved_models

        return saved_models.to_json(self, **kwargs)

    def to_yaml(self, **kwargs: Any) -> str:
        """Refused: use :meth:`to_json`."""
        raise NotImplementedError("Models are written as JSON here: use model.to_json()")


def _outside_scopes() -> Any:
    return name_scope("")


def _metrics_of(layer: Any) -> list[Any]:
    """What a layer has added; of a model inside, not what it was compiled with."""
    return layer._added_metrics() if isinstance(layer, Model) else getattr(layer, "metrics", [])


def _resets_to_zero(metric: Any) -> bool:
    from runnel.keras.metric import Metric

    return type(metric).reset_states is Metric.reset_states


def _several(data: Any) -> bool:
    return any(hasattr(one, "shape") for one in data)


def _placeholder(value: Any, name: str) -> Any:
    if isinstance(value, Tensor):
        kind, dims = value.dtype.base_dtype, list(value.dims or ())
        return placeholder(kind, [None, *dims[1:]] if value.dims is not None else None, name=name)
    array = as_array(value)
    given: Any = floatx() if array.dtype.kind == "f" else array.dtype
    dims = list(array.shape[1:]) or [1]
    return placeholder(given, [None, *dims], name=name)


def _renamed(kwargs: dict[str, Any], old: str, value: Any) -> Any:
    value = kwargs.pop(old, value)
    if kwargs:
        raise TypeError(f"Unrecognized keyword arguments: {sorted(kwargs)}")
    return value


def _announce(source: Any, held_out: Any) -> None:
    def counted(batches: Any) -> str | None:
        known = batches.samples if batches.unit == "sample" else batches.steps
        unit = "samples" if batches.unit == "sample" else "steps"
        return None if known is None else f"{known} {unit}"

    mine = counted(source)
    if mine is not None:
        others = counted(held_out) if held_out is not None else None
        print(f"Train on {mine}" + (f", validate on {others}" if others else ""))
