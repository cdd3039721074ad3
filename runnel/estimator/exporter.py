"""Exporters: which of the models that are evaluated are exported."""

from __future__ import annotations

import glob
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runnel.events.event_reader import summary_iterator

logger = logging.getLogger("runnel")


class Exporter:
    """Exports a model after an evaluation, if it likes; subclasses say when."""

    @property
    def name(self) -> str:
        """The name of its folder in ``MODEL_DIR/export``."""
        raise NotImplementedError

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        """Exports the model of ``checkpoint_path``; returns where to, or None."""
        raise NotImplementedError


class _Exporting(Exporter):
    """What the exporters here share."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be a positive number.")
        self._name = name
        self._receive = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._exports_to_keep = exports_to_keep

    @property
    def name(self) -> str:
        return self._name

    def _export(self, estimator: Any, export_path: str, checkpoint_path: str) -> Any:
        if self._receive is None:
            raise ValueError(f"The exporter {self._name!r} needs a serving_input_receiver_fn")
        found = estimator.export_saved_model(
            export_path, self._receive, self._assets_extra, self._as_text, checkpoint_path
        )
        self._remove_old(Path(export_path))
        return found

    def _remove_old(self, folder: Path) -> None:
        """Leaves the newest exports; folders that are none stay."""
        if self._exports_to_keep is None:
            return
        exports = sorted(
            (path for path in folder.iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
        )
        for old in exports[: -self._exports_to_keep]:
            shutil.rmtree(old, ignore_errors=True)


class FinalExporter(_Exporting):
    """Exports the model once, at the end of training.

    Example:
        >>> exporter = tf.estimator.FinalExporter("final", serving_input_receiver_fn)
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        if not is_the_final_export:
            return None
        logger.info("Performing the final export in the end of training.")
        return self._export(estimator, export_path, checkpoint_path)


class LatestExporter(_Exporting):
    """Exports the model after each evaluation, and keeps the newest.

    Example:
        >>> exporter = tf.estimator.LatestExporter("latest", serving_input_receiver_fn)
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        return self._export(estimator, export_path, checkpoint_path)


def _loss_smaller(best_eval_result: Any, current_eval_result: Any) -> bool:
    """True when the loss of the current evaluation is smaller."""
    for result in (best_eval_result, current_eval_result):
        if not result or "loss" not in result:
            raise ValueError("The evaluations have no loss to compare: give a compare_fn")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_Exporting):
    """Exports the model whenever its evaluation is the best so far, by ``compare_fn``.

    ``compare_fn(best_eval_result, current_eval_result)`` is true when the current one is better.
    A program that begins again reads the best so far from the events of earlier evaluations.

    Example:
        >>> exporter = tf.estimator.BestExporter(serving_input_receiver_fn=receive)
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[[Any, Any], bool] = _loss_smaller,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self._pattern = event_file_pattern
        self._compare = compare_fn
        self._best: Any = None
        self._has_read = False

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        if not self._has_read:
            self._has_read = True
            if self._pattern and os.path.isdir(export_path) and any(Path(export_path).iterdir()):
                step = eval_result.get("global_step") if eval_result else None
                self._best = self._earlier(os.path.join(estimator.model_dir, self._pattern), step)
        if self._best is not None and not self._compare(self._best, eval_result):
            return None
        logger.info("Performing best model export.")
        self._best = eval_result
        return self._export(estimator, export_path, checkpoint_path)

    def _earlier(self, pattern: str, current_step: Any) -> Any:
        """The best of the evaluations that were written before the one of ``current_step``."""
        best = None
        for path in sorted(glob.glob(pattern)):
            for event in summary_iterator(path):
                values = {v.tag: v.simple_value for v in event.summary.value}
                if not values or event.step == current_step:
                    continue
                if best is None or self._compare(best, values):
                    best = values
        return best
