"""The threads of NumPy's products: one while a small product is computed, the user's otherwise."""

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.ops import blas_threads
from tests.both_tiers import INTERPRETED, session

if blas_threads._get_threads is None or blas_threads._get_threads() == 1:
    pytest.skip("NumPy has no OpenBLAS with several threads here", allow_module_level=True)

get_threads, set_threads = blas_threads._get_threads, blas_threads._set_threads


def seen(work):
    """The threads while something of that much work is computed, and after it."""
    return blas_threads.with_threads_for(work, get_threads), get_threads()


def test_small_work_has_one_thread_and_large_work_all():
    usual = get_threads()
    assert seen(1 << 20) == (1, usual)
    assert seen(1 << 30) == (usual, usual)


@pytest.mark.parametrize(
    "shapes, expected",
    [
        (((2, 3), (3, 4)), None),
        (((100, 784), (784, 128)), 1),
        (((8, 64, 64), (8, 64, 64)), 1),
        (((1, 300), (300, 300)), 1),
        (((2048, 1024), (1024, 2048)), None),
    ],
    ids=str,
)
def test_the_size_of_a_product_decides(shapes, expected, monkeypatch):
    known = {np.dtype(np.float32): blas_threads._Experience()}
    monkeypatch.setattr(blas_threads, "_experience", known)
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    threads = []

    def product(x, y):
        threads.append(get_threads())
        return np.matmul(x, y)

    np.testing.assert_array_equal(blas_threads.multiply(product, a, b), a @ b)
    assert threads == [expected or get_threads()]


def test_threads_that_cost_time_are_left_alone_for_a_while(monkeypatch):
    clock, threads = [0.0], []
    known = {np.dtype(np.float32): blas_threads._Experience()}
    monkeypatch.setattr(blas_threads, "_experience", known)
    monkeypatch.setattr(blas_threads, "perf_counter", lambda: clock[0])

    def product(x, y):
        threads.append(get_threads())
        clock[0] += 10.0 if get_threads() > 1 else 0.1
        return x

    large = np.ones((1024, 1024), np.float32)
    usual = get_threads()
    for _ in range(2):
        blas_threads.multiply(product, large, large)
    assert threads == [usual, 1]
    clock[0] += 1000.0
    blas_threads.multiply(product, large, large)
    assert threads == [usual, 1, usual]


def test_the_setting_of_the_user_holds_after_steps_and_inside_a_py_func():
    matrix = tf.constant(np.eye(200, dtype=np.float32) * 2)
    threads = tf.py_func(lambda _: np.int64(get_threads()), [tf.matmul(matrix, matrix)], tf.int64)
    results = [tf.einsum("ij,jk->ik", matrix, matrix), tf.matrix_inverse(matrix), tf.qr(matrix)]
    usual = get_threads()
    with session(INTERPRETED) as sess:
        inside, _ = sess.run([threads, results])
    assert inside == usual == get_threads()


def test_a_failed_product_gives_the_threads_back():
    usual = get_threads()
    singular = tf.matrix_inverse(tf.zeros([64, 64]))
    with session(INTERPRETED) as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(singular)
    assert get_threads() == usual


def test_one_thread_chosen_by_the_user_stays():
    usual = get_threads()
    set_threads(1)
    try:
        assert seen(1 << 20) == (1, 1)
    finally:
        set_threads(usual)


def test_products_of_several_threads_at_a_time_leave_the_setting_as_it_was():
    usual = get_threads()
    product = tf.matmul(tf.ones([128, 128]), tf.ones([128, 128]))
    with session(INTERPRETED) as sess:
        workers = [
            threading.Thread(target=lambda: [sess.run(product) for _ in range(200)])
            for _ in range(4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert get_threads() == usual
