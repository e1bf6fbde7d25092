/* Ranks compute, then add up. The first rank has most of the work, as with a domain cut where it is easy. -DCURED divides it evenly. */
#include <mpi.h>
#include <stdio.h>

#include "fxscope.h"

enum { CELLS = 100000, STEPS = 4 };
static double cells[CELLS];

static double __attribute__((noinline)) relax(int from, int to)
{
    double sum = 0;
    for (int i = from; i < to; i++)
        sum += cells[i] = 0.5 * cells[i] + 0.25 * (1 + cells[i] * cells[i]);
    return sum;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#ifdef CURED
    int from = CELLS / ranks * rank, to = CELLS / ranks * (rank + 1);
#else
    int first = CELLS / 2, others = (CELLS - first) / (ranks - 1);
    int from = rank ? first + others * (rank - 1) : 0, to = first + others * rank;
#endif
    double sum = 0, all = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    FXSCOPE_BEGIN("relax");
    for (int step = 0; step < STEPS; step++) {
        sum = relax(from, to);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    FXSCOPE_END("relax");
    if (rank == 0)
        printf("sum %.3f\n", all);
    MPI_Finalize();
    return 0;
}
