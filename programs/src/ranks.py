"""Ranks of Python exchange objects and arrays, and reduce."""
from mpi4py import MPI
import numpy

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
print_all = world.gather({"rank": rank, "square": rank * rank}, root=0)
right, left = (rank + 1) % size, (rank - 1) % size
mine = numpy.full(1000, float(rank))
theirs = numpy.empty(1000)
world.Sendrecv(mine, right, recvbuf=theirs, source=left)
assert (theirs == left).all()
total = world.allreduce(float(theirs.sum()))
assert total == 1000.0 * size * (size - 1) / 2
window = MPI.Win.Allocate_shared(8 if rank == 0 else 0, 8, comm=world)
memory, _ = window.Shared_query(0)
shared = numpy.frombuffer(memory, dtype="int64")
if rank == 0:
    shared[0] = 0
world.Barrier()
for turn in range(size):
    if turn == rank:
        shared[0] += rank + 1
    world.Barrier()
assert shared[0] == size * (size + 1) // 2
if rank == 0:
    assert [entry["square"] for entry in print_all] == [r * r for r in range(size)]
    print(f"mpi4py ok ranks={size} total={total:g}")
