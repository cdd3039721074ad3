"""``slim.evaluation``: metrics over the batches of a data set, at a checkpoint."""

from __future__ import annotations

from typing import Any

from runnel import logging
from runnel.summary import FileWriter, merge_all
from runnel.train.global_step import get_or_create_global_step
from runnel.train.monitored_session import MonitoredSession
from runnel.train.progress_hook import ProgressLine
from runnel.train.saver import Saver
from runnel.train.scaffold import Scaffold
from runnel.train.session_creators import ChiefSessionCreator

__all__ = ["evaluate_once"]

_USE_DEFAULT = 0


def evaluate_once(
    master: str,
    checkpoint_path: Any,
    logdir: Any,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Any = None,
) -> Any:
    """Runs ``eval_op`` for ``num_evals`` batches at a checkpoint; returns ``final_op``'s value."""
    if isinstance(summary_op, int) and summary_op == _USE_DEFAULT:
        summary_op = merge_all()
    step = get_or_create_global_step()
    scaffold = Scaffold(
        init_op=initial_op,
        init_feed_dict=initial_op_feed_dict,
        saver=Saver(variables_to_restore),
    )
    creator = ChiefSessionCreator(
        scaffold,
        master=master,
        config=session_config,
        checkpoint_filename_with_path=checkpoint_path,
    )
    final: Any = None
    with MonitoredSession(session_creator=creator, hooks=hooks) as session:
        if eval_op is not None:
            line = ProgressLine(what="evaluation step", unasked=True)
            for number in range(num_evals):
                session.run(eval_op, eval_op_feed_dict)
                logging.info("Evaluation [%d/%d]", number + 1, num_evals)
                if line.is_due() or number + 1 == num_evals:
                    line.show(number + 1, num_evals)
            line.close()
        if summary_op is not None:
            at, text = session.run([step, summary_op], summary_op_feed_dict)
            writer = FileWriter(logdir)
            writer.add_summary(text, int(at))
            writer.close()
        if final_op is not None:
            final = session.run(final_op, final_op_feed_dict)
    return final


def __dir__() -> list[str]:
    return __all__
