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
