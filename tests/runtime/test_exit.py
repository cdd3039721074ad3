"""The process ends with its own status while daemon threads are running steps.

Each program is a process of its own, which ends in the middle of what its daemon threads do.
"""

import subprocess
import sys
import textwrap

import pytest

PREPARATION = """
import atexit, sys, threading
import numpy as np
import runnel as tf

config = tf.ConfigProto()
config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
sess = tf.Session(config=config)
busy = threading.Event()

def forever(step):
    count = 0
    while True:
        step()
        count += 1
        if count == 5:
            busy.set()

def start(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()
"""

SHORT_STEPS = """
w = tf.Variable(tf.zeros([50, 50]))
train = tf.assign_add(w, tf.matmul(w, w) + 1e-3).op
sess.run(tf.global_variables_initializer())
for _ in range(3):
    start(forever, sess.make_callable(train))
busy.wait()
"""

ENDLESS_LOOP = """
from runnel.runtime.compile import watch

endless = tf.while_loop(lambda s: s >= 0, lambda s: s * 0.5 + 1, [tf.constant(1.0)])
start(sess.run, endless)
while not watch._running:  # the loop has been compiled, and is called
    busy.wait(0.01)
"""

LONG_CALL = """
x = tf.placeholder(tf.float32, [500, 500])
y = x
for _ in range(60):
    y = tf.matmul(y, x) * 1e-3
step = sess.make_callable(tf.reduce_sum(y), [x])
start(forever, lambda: step(np.ones([500, 500], np.float32)))
busy.wait()
"""

COMPILATION = """
from runnel.runtime.compile import compiler

compile_segment = compiler.compile_segment
def compile_and_tell(*arguments, **options):
    busy.set()
    return compile_segment(*arguments, **options)
compiler.compile_segment = compile_and_tell
x = tf.placeholder(tf.float32, [3, 3])
y = x
for i in range(200):
    y = tf.sin(tf.matmul(y, x) + i)
start(sess.run, y, {x: np.ones([3, 3])})
busy.wait()
"""

LONG_COMPILATION = """
import jax, jax.numpy as jnp
from runnel.runtime.segment.beside import begin_beside

@jax.jit
def unrolled(x):
    for i in range(4_000):
        x = jnp.sort(x * (i + 1), axis=i % 2) @ x
    return x

lowered = unrolled.lower(jnp.ones([8, 8]))

def compile_it():
    busy.set()
    lowered.compile()

begin_beside(compile_it)
busy.wait()
"""

IMPORT_OF_JAX = """
from runnel.runtime.segment.beside import begin_beside

def compute():
    import jax.numpy as jnp
    busy.set()
    while True:
        jnp.ones(3) + 1
begin_beside(compute)
"""

LOOPS_ALONE = """
from runnel.runtime.compile import loop_alone

class Told(loop_alone.CompiledLoop):
    def __init__(self, *arguments):
        busy.set()
        super().__init__(*arguments)
from runnel.runtime.segment import bounded_loops
bounded_loops.CompiledLoop, bounded_loops._SHARE = Told, 0.0
sess = tf.Session()
n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3, 3])
y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.sin(tf.matmul(a, x))), [0, x])[1]
count = 0
while not busy.is_set():
    sess.run(y, {n: 3 + count % 20, x: np.ones([3, 3])})
    count += 1
"""

QUEUE_RUNNER = """
queue = tf.FIFOQueue(10, [tf.float32], [[64, 64]])
batch = tf.matmul(tf.random_normal([64, 64]), tf.random_normal([64, 64]))
tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(batch)] * 2))
w = tf.Variable(tf.zeros([64, 64]))
train = tf.assign_add(w, queue.dequeue()).op
sess.run(tf.global_variables_initializer())
tf.train.start_queue_runners(sess)
for _ in range(20):
    sess.run(train)
"""

DEQUEUE = """
from tests.sleepers import await_sleepers
queue = tf.FIFOQueue(10, [tf.float32], [[]])
start(sess.run, queue.dequeue() * 2)
sess.run(tf.constant(1.0) + 1)
await_sleepers(sess._steps, 1, 60)
"""

INTERPRETED_LOOP = """
interpreted = tf.ConfigProto()
interpreted.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
other = tf.Session(config=interpreted)
endless = tf.while_loop(lambda s: s >= 0, lambda s: s * 0.5 + 1, [tf.constant(1.0)])
sess.run(tf.constant(1.0) + 1)
start(other.run, endless)
"""

PROGRAMS = {
    "short steps": SHORT_STEPS,
    "an endless loop": ENDLESS_LOOP,
    "a long call": LONG_CALL,
    "a compilation": COMPILATION,
    "a compilation that goes on for long": LONG_COMPILATION,
    "an import of JAX": IMPORT_OF_JAX,
    "the end of an import of JAX": IMPORT_OF_JAX + "busy.wait()\n",
    "the compilation of a loop": LOOPS_ALONE,
    "a queue runner": QUEUE_RUNNER,
    "a dequeue": DEQUEUE,
    "an interpreted loop": INTERPRETED_LOOP,
    "several at once": SHORT_STEPS + QUEUE_RUNNER + DEQUEUE + ENDLESS_LOOP,
}


def run(program, moment=0.0):
    """Runs the program, which ends ``moment`` seconds after its threads have become busy."""
    pause = f"\nthreading.Event().wait({moment})\n" if moment else ""
    body, _, end = program.partition("# end\n")
    return subprocess.run(
        [sys.executable, "-c", PREPARATION + body + pause + end],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def require_silence(ended):
    assert "Traceback" not in ended.stderr, ended.stderr
    assert "terminate" not in ended.stderr, ended.stderr
    assert "FATAL" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("moment", [0.0, 0.3], ids=["at once", "later"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_process_ends_with_status_0(program, moment):
    ended = run(PROGRAMS[program], moment)
    assert ended.returncode == 0, ended.stderr
    require_silence(ended)


def test_the_status_is_that_of_sys_exit():
    ended = run(SHORT_STEPS + "# end\nsys.exit(3)\n")
    assert ended.returncode == 3, ended.stderr
    require_silence(ended)


def test_the_status_of_an_uncaught_error_is_1():
    ended = run(SHORT_STEPS + "# end\nraise ValueError('of the program')\n")
    assert ended.returncode == 1, ended.stderr
    assert "ValueError: of the program" in ended.stderr
    assert ended.stderr.count("Traceback") == 1, ended.stderr


@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_what_the_program_does_at_exit_can_still_use_its_sessions(early):
    """Whether it was registered before runnel looked for the end of the process, or after."""
    hook = textwrap.dedent(
        """
        @atexit.register
        def at_exit():
            print(sess.run(tf.constant(20.0) * 2 + v), flush=True)
        """
    )
    variable = "\nv = tf.Variable(2.0)\n"
    steps = SHORT_STEPS + "sess.run(v.initializer)\n"
    program = variable + (hook + steps if early else steps + "# end\n" + hook)
    ended = run(program)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["42.0"], ended.stderr
    require_silence(ended)


@pytest.mark.parametrize("calls", [None, 2])
def test_a_process_ends_though_a_function_of_a_dataset_waits(calls):
    program = f"""
    queue = tf.FIFOQueue(1, tf.int64, [()])
    numbers = tf.data.Dataset.range(5).map(lambda n: n + queue.dequeue(), {calls})
    element = tf.data.make_one_shot_iterator(numbers.prefetch(1)).get_next()
    try:
        sess.run(element, options=tf.RunOptions(timeout_in_ms=200))
    except tf.errors.DeadlineExceededError:
        print("waits")
    """
    ended = run(textwrap.dedent(program))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["waits"]


def test_a_process_without_threads_does_not_wait():
    program = """
    import time
    print(sess.run(tf.constant(1.0) + 1))
    began = time.monotonic()
    from runnel.runtime.state import at_exit
    at_exit._end_steps()
    assert time.monotonic() - began < 5
    """
    ended = run(textwrap.dedent(program))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["2.0"]
