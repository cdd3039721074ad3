"""``Estimator``: a model as a function, trained, evaluated, asked and exported."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runnel.estimator import exporting, prediction
from runnel.estimator.estimator_spec import EstimatorSpec, checked_hooks
from runnel.estimator.evaluation import run_evaluation
from runnel.estimator.input_function import argument_names, call_input_fn
from runnel.estimator.mode_keys import ModeKeys
from runnel.estimator.run_config import RunConfig
from runnel.estimator.training_loop import Training, run_training
from runnel.estimator.warm_start_settings import WarmStartSettings
from runnel.graph.graph import Graph, device
from runnel.graph.random_seed import set_random_seed
from runnel.saved_model.builder import SavedModelBuilder
from runnel.train.checkpoint_hook import CheckpointSaverListener
from runnel.train.checkpoint_state import latest_checkpoint
from runnel.train.checkpoint_utils import list_variables, load_variable, warm_start
from runnel.train.device_setter import replica_device_setter
from runnel.train.global_step import create_global_step
from runnel.train.hooks import StopAtStepHook
from runnel.train.monitored_session import MonitoredSession
from runnel.train.progress_hook import ProgressLine
from runnel.train.session_creators import ChiefSessionCreator
from runnel.train.session_run_hook import SessionRunHook

logger = logging.getLogger("runnel")

_ARGUMENTS = frozenset({"features", "labels", "mode", "params", "config"})


class Estimator:
    """A model that ``model_fn`` builds, with its checkpoints in ``model_dir``.

    ``model_fn`` takes ``features`` and, as it likes, ``labels``, ``mode``, ``params`` and
    ``config``; it returns an :class:`EstimatorSpec`. Each call of a method builds a graph of its
    own. A new model begins with the values of ``warm_start_from``: a checkpoint, a folder of them,
    or :class:`WarmStartSettings`.

    Example:
        >>> estimator = tf.estimator.Estimator(model_fn, "/tmp/model", params={"rate": 0.1})
        >>> estimator.train(input_fn, steps=1000)
        >>> estimator.evaluate(eval_input_fn)["accuracy"]
    """

    _predicts_for_ever = True  # where the input never changes

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        if config is not None and not isinstance(config, RunConfig):
            raise ValueError(f"config must be an instance of RunConfig, given: {config!r}")
        config = config or RunConfig()
        given = None if model_dir is None else os.fsdecode(os.fspath(model_dir))
        if given and config.model_dir and given != config.model_dir:
            raise ValueError(
                "`model_dir` are set both in constructor and `RunConfig`, but with different "
                f"values. In constructor: {given!r}, in `RunConfig`: {config.model_dir!r}"
            )
        folder = given or config.model_dir
        if folder is None:
            folder = tempfile.mkdtemp()
            logger.warning("Using temporary folder as model directory: %s", folder)
        self._config = config.replace(model_dir=folder)
        self._training = Training()
        self._model_dir = folder
        names = argument_names(model_fn)
        if "features" not in names:
            raise ValueError(f"model_fn must include features argument; it takes {sorted(names)}")
        if params is not None and "params" not in names:
            raise ValueError(f"model_fn does not include params argument, but params={params!r}")
        if names - _ARGUMENTS:
            raise ValueError(f"model_fn has unexpected arguments: {sorted(names - _ARGUMENTS)}")
        self._model_fn = model_fn
        self._params = dict(params) if isinstance(params, Mapping) else params or {}
        if isinstance(warm_start_from, str | bytes | os.PathLike):
            warm_start_from = WarmStartSettings(warm_start_from)
        if warm_start_from is not None and not isinstance(warm_start_from, WarmStartSettings):
            raise ValueError(
                "warm_start_from should be a WarmStartSettings or the path of a checkpoint, not "
                f"{warm_start_from!r}"
            )
        self._warm_start = warm_start_from

    @property
    def model_dir(self) -> str:
        """The folder of its checkpoints."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """How it runs."""
        return self._config

    @property
    def params(self) -> Any:
        """A copy of what ``model_fn`` gets as ``params``."""
        return dict(self._params) if isinstance(self._params, dict) else self._params

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The function that builds the model; it takes all but ``params``."""

        def public(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public

    def latest_checkpoint(self) -> str | None:
        """The newest checkpoint; None if there is none."""
        return latest_checkpoint(self._model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """The folder of the summaries of the evaluation ``name``."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    def get_variable_names(self) -> list[str]:
        """The names of what the newest checkpoint has."""
        return [name for name, _ in list_variables(self._require_checkpoint())]

    def get_variable_value(self, name: str) -> Any:
        """A value of the newest checkpoint."""
        return load_variable(self._require_checkpoint(), name)

    def _require_checkpoint(self, path: Any = None) -> str:
        found = os.fsdecode(os.fspath(path)) if path is not None else self.latest_checkpoint()
        if found is None:
            raise ValueError(f"Couldn't find trained model at {self._model_dir}: train it first")
        return found

    # Building -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _new_graph(self, mode: str) -> Iterator[Graph]:
        with Graph().as_default() as graph, device(self._device_fn(mode)):
            set_random_seed(self._config.tf_random_seed)
            create_global_step(graph)
            yield graph

    def _device_fn(self, mode: str) -> Any:
        """Where operations are: in training on a cluster, variables are on parameter servers."""
        config = self._config
        if config.device_fn is not None or mode != ModeKeys.TRAIN:
            return config.device_fn
        return replica_device_setter(
            ps_tasks=config.num_ps_replicas,
            worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        )

    def _input(self, input_fn: Callable[..., Any], mode: str) -> Any:
        params = self._params_for(mode)
        return call_input_fn(input_fn, mode=mode, params=params, config=self._config)

    def _params_for(self, mode: str) -> Any:
        """What the functions that build a graph get as ``params``."""
        return self.params

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, config: RunConfig
    ) -> EstimatorSpec:
        names = argument_names(self._model_fn)
        offered = {"mode": mode, "params": self._params_for(mode), "config": config}
        if "labels" in names:
            offered["labels"] = labels
        elif labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        logger.info("Calling model_fn.")
        taken = {name: value for name, value in offered.items() if name in names}
        spec = self._model_fn(features=features, **taken)
        logger.info("Done calling model_fn.")
        if not isinstance(spec, EstimatorSpec):
            raise ValueError(f"model_fn should return an EstimatorSpec, not {spec!r}")
        return spec

    # Using ----------------------------------------------------------------------------------

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Trains, from the newest checkpoint on, until the input ends or steps are made.

        ``steps`` counts steps of this call, ``max_steps`` those of the model's whole life.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        if max_steps is not None and self._global_step() >= max_steps:
            logger.info("Skipping training since max_steps has already saved.")
            return self
        every_hook = [*checked_hooks(hooks)]
        if steps is not None or max_steps is not None:
            every_hook.append(StopAtStepHook(steps, max_steps))
        with self._new_graph(ModeKeys.TRAIN):
            features, labels, input_hooks = self._input(input_fn, ModeKeys.TRAIN)
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN, self._config)
            if self._warm_start is not None:
                warm_start(*self._warm_start)
            self._training = Training()
            loss = run_training(
                spec,
                self._config,
                self._model_dir,
                [*every_hook, *input_hooks],
                saving_listeners or (),
                self._training,
            )
        logger.info("Loss for final step: %s.", loss)
        return self

    def _global_step(self) -> int:
        found = self.latest_checkpoint()
        return int(load_variable(found, "global_step")) if found is not None else 0

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The model's metrics over the input, or ``steps`` batches of it, by name.

        ``loss`` and ``global_step`` are among them. They are also written as summaries to the
        folder ``eval`` (``eval_NAME``). Without a checkpoint a new model is evaluated.
        """
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        checkpoint = self._checkpoint_or_none(checkpoint_path, "evaluate")
        with self._new_graph(ModeKeys.EVAL):
            features, labels, input_hooks = self._input(input_fn, ModeKeys.EVAL)
            spec = self._call_model_fn(features, labels, ModeKeys.EVAL, self._config)
            return run_evaluation(
                spec,
                checkpoint,
                self._config.session_config,
                steps,
                [*checked_hooks(hooks), *input_hooks],
                self.eval_dir(name),
            )

    def _checkpoint_or_none(self, path: Any, what: str) -> str | None:
        found = os.fsdecode(os.fspath(path)) if path is not None else self.latest_checkpoint()
        if found is None:
            logger.info(
                "Could not find trained model in model_dir: %s, running initialization to %s.",
                self._model_dir,
                what,
            )
        return found

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields what the model predicts, row by row (or batch by batch).

        Nothing runs before the first is asked for. ``predict_keys`` chooses among predictions.
        """
        every_hook = checked_hooks(hooks)
        checkpoint = self._checkpoint_or_none(checkpoint_path, "predict")
        # A generator may be left at any yield: no graph is the default one meanwhile.
        with self._new_graph(ModeKeys.PREDICT):
            features, _, input_hooks = self._input(input_fn, ModeKeys.PREDICT)
            if self._predicts_for_ever:
                prediction.warn_if_endless(input_hooks)
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self._config)
            wanted = prediction.chosen(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                spec.scaffold,
                config=self._config.session_config,
                checkpoint_filename_with_path=checkpoint,
            )
            all_hooks = [*every_hook, *input_hooks, *spec.prediction_hooks]
            sess = MonitoredSession(prediction.InGraph(creator), hooks=all_hooks)
        with sess:
            line, done = ProgressLine(what="prediction step", unasked=True), 0
            while not sess.should_stop():
                if line.is_due():  # while it computes: the lines between are the program's own
                    line.show(done, None)
                values = sess.run(wanted)
                line.clear()
                done += 1
                if yield_single_examples:
                    yield from prediction.rows(values)
                else:
                    yield values

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        experimental_mode: str = ModeKeys.PREDICT,
        strip_default_attrs: bool = True,
    ) -> bytes:
        """Writes the model as a SavedModel into a new folder of ``export_dir_base``; returns it.

        ``serving_input_receiver_fn`` says what the model is fed; see ``tf.estimator.export``.
        ``assets_extra`` maps places in the folder ``assets.extra`` to files.
        """
        return self._export(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
            strip_default_attrs,
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> bytes:
        """Like :meth:`export_saved_model`, with a graph for each mode of ``input_receiver_fn_map``.

        Their tags are ``train``, ``eval`` and ``serve``; the values of variables are shared.

        Example:
            >>> estimator.experimental_export_all_saved_models(
            ...     "/tmp/models", {tf.estimator.ModeKeys.PREDICT: receive})
        """
        unknown = input_receiver_fn_map.keys() - exporting.TAGS.keys()
        if unknown or not input_receiver_fn_map:
            raise ValueError(
                f"input_receiver_fn_map needs modes of {list(exporting.TAGS)}, but has "
                f"{list(input_receiver_fn_map)}"
            )
        return self._export(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, True
        )

    def _export(
        self,
        export_dir_base: Any,
        receivers: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, Any] | None,
        as_text: bool,
        checkpoint_path: Any,
        strip_default_attrs: bool,
    ) -> bytes:
        checkpoint = self._require_checkpoint(checkpoint_path)
        base = Path(os.fsdecode(os.fspath(export_dir_base)))
        folder = exporting.timestamped(base)
        temporary = base / f"temp-{folder.name}"
        builder = SavedModelBuilder(temporary)
        try:
            # The first graph writes the variables: that of training has them all.
            for mode in sorted(receivers, key=list(exporting.TAGS).index):
                with self._new_graph(mode):
                    receiver = receivers[mode]()
                    labels = getattr(receiver, "labels", None)
                    spec = self._call_model_fn(receiver.features, labels, mode, self._config)
                    exporting.add_graph(
                        builder,
                        exporting.TAGS[mode],
                        spec,
                        exporting.signatures_of(receiver, spec, mode),
                        checkpoint,
                        self._config.session_config,
                        strip_default_attrs,
                    )
            builder.save(as_text)
            exporting.copy_extra_assets(temporary, assets_extra)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return exporting.finished(temporary, folder)

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """The older name of :meth:`export_saved_model`."""
        return self.export_saved_model(
            export_dir_base,
            serving_input_receiver_fn,
            assets_extra,
            as_text,
            checkpoint_path,
            strip_default_attrs=strip_default_attrs,
        )
