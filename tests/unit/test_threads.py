def test_limits_on_blas_are_lifted_when_the_last_thread_leaves():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    from priorshift import threads

    def blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas()

    def nested(_):
        for _ in range(50):
            with threads.one_blas_thread():
                assert set(blas()) == {1}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(nested, range(4)))
    assert blas() == before


def test_work_is_dealt_to_threads_and_its_answers_keep_their_order(monkeypatch):
    import threading

    from priorshift import threads

    monkeypatch.setattr(threads, "available", lambda: 3)
    here, all_there = threading.get_ident(), threading.Barrier(3, timeout=10)

    def work(k):
        all_there.wait()  # three at once, or never
        return k, threading.get_ident()

    found = threads.map_in_threads(work, range(3), 10**6)
    assert [k for k, _ in found] == [0, 1, 2] and len({ident for _, ident in found} - {here}) == 3
    assert threads.map_in_threads(lambda _: threading.get_ident(), range(3), 100) == [here] * 3  # few rows


def test_things_that_come_one_after_the_other_are_worked_on_together_a_few_ahead(monkeypatch):
    import threading

    import pytest

    from priorshift import threads

    monkeypatch.setattr(threads, "_cores", lambda: 3)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    here, all_there, taken = threading.get_ident(), threading.Barrier(3, timeout=10), []

    def things(count):
        for k in range(count):
            taken.append(k)
            yield k

    def work(k):
        if k < 3:
            all_there.wait()  # three at once, or never
        return k, threading.get_ident() == here, threads.available()

    made = threads.map_in_order(work, things(20))
    assert [next(made) for _ in range(2)] == [(0, False, 1), (1, False, 1)] and len(taken) <= 5 + 1
    assert [k for k, _, _ in made] == list(range(2, 20))
    assert list(threads.map_in_order(lambda k: threading.get_ident(), [7])) == [here]  # one thing has all threads

    def fails(k):
        return 1 / (k - 2)

    failing = threads.map_in_order(fails, things(20))
    assert [next(failing), next(failing)] == [-0.5, -1]
    with pytest.raises(ZeroDivisionError):
        next(failing)
    assert max(taken[-6:]) < 10  # and the rest is not begun
