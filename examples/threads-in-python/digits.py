"""Sums the digits of numbers on four threads. Python's interpreter runs one thread at a time: the others wait for its lock.
With the argument "cured" the workers are processes."""
import ctypes
import multiprocessing
import multiprocessing.popen_fork  # otherwise loaded, and compiled, in the region
import sys
import threading

WORKERS, NUMBERS = 4, 4000
CURED = "cured" in sys.argv
Worker = multiprocessing.get_context("fork").Process if CURED else threading.Thread
sys.setswitchinterval(0.0005)
papi = ctypes.CDLL("libpapi.so")


def digits(first):
    total = 0
    for number in range(first, first + NUMBERS):
        while number:
            number, digit = divmod(number, 10)
            total += digit
    return total


workers = [Worker(target=digits, args=(i * NUMBERS,)) for i in range(WORKERS)]
papi.PAPI_hl_region_begin(b"digits")
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
papi.PAPI_hl_region_end(b"digits")
print("workers", len(workers))
