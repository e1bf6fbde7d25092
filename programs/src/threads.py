"""Threads of Python: a pool, a queue, locks and events."""

import concurrent.futures
import queue
import threading

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda n: sum(range(n)), range(0, 20000, 1000))))

work, done = queue.Queue(), []
lock = threading.Lock()


def worker():
    while (item := work.get()) is not None:
        with lock:
            done.append(item * item)


threads = [threading.Thread(target=worker) for _ in range(3)]
for thread in threads:
    thread.start()
for item in range(100):
    work.put(item)
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()
print(sum(done), len(done))

event = threading.Event()
timer = threading.Timer(0.05, event.set)
timer.start()
print(event.wait(10))
