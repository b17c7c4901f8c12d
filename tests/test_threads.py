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

    found = threads.in_threads(work, range(3), 10**6)
    assert [k for k, _ in found] == [0, 1, 2] and len({ident for _, ident in found} - {here}) == 3
    assert threads.in_threads(lambda _: threading.get_ident(), range(3), 100) == [here] * 3  # few rows
