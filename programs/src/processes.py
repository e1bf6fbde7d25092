"""Python with further programs and processes: a shell pipe, a child with a queue, an event loop."""

import asyncio
import multiprocessing
import subprocess


async def later():
    await asyncio.sleep(0.01)
    return 5


text = subprocess.check_output("echo hi | tr a-z A-Z", shell=True, text=True).strip()
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=lambda: queue.put(42))
child.start()
answer = queue.get()
child.join()
print(text, answer, child.exitcode, asyncio.run(later()))
