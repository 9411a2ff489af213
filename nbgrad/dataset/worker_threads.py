"""Functions of rows in worker threads, with results in the order of the rows.

In: a function and rows. Out: an iterator of its results. Called by pipeline.py and sources.py. NumPy and Pillow compute
without Python's lock, so that threads help; an error in a thread is raised where the row is asked for, as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from .dataset_config import get_num_parallel_workers, get_prefetch_size

Result = TypeVar("Result")


def in_order(function: Callable[[Any], Result], rows: Iterable[Any], workers: int | None) -> Iterator[Result]:
    """The results of a function of each row; at most `get_prefetch_size()` rows are ahead.

    Parameters
    ----------
    function : callable
    rows : iterable
        Read by the thread that asks.
    workers : int, optional
        The number of threads; 1 computes where the result is asked for.
    """
    count = get_num_parallel_workers() if workers is None else workers
    if count == 1:
        yield from map(function, rows)
        return
    ahead = max(get_prefetch_size(), count)
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(count, thread_name_prefix="nbgrad-dataset")
    try:
        for row in rows:
            waiting.append(pool.submit(function, row))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
