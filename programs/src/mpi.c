/* Messages and collectives of MPI: each result is checked, and rank 0 prints the mean time of each operation.
 *
 * usage: mpi [ROUNDS [BYTES]]   rounds of each operation (20), and bytes of the largest message (1048576)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, failures;

static void check(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
        failures++;
    }
}

static void show(const char *name, long bytes, double seconds)
{
    double slowest;
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-10s %8ld B  %10.3f us\n", name, bytes, slowest * 1e6);
}

/* Ranks 0 and 1 send a message to and fro; the time is that of one way. */
static void ping_pong(char *buffer, long bytes, int rounds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = 0;
    for (int round = -2; round < rounds; round++) {
        if (round == 0) start = MPI_Wtime();
        if (rank == 0) {
            memset(buffer, round & 0x7f, bytes);
            MPI_Send(buffer, bytes, MPI_CHAR, 1, round + 2, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_CHAR, 1, round + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, round + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(bytes == 0 || (buffer[0] == (round & 0x7f) && buffer[bytes - 1] == (round & 0x7f)), "ping-pong");
            MPI_Send(buffer, bytes, MPI_CHAR, 0, round + 2, MPI_COMM_WORLD);
        }
    }
    show("ping-pong", bytes, rank < 2 ? (MPI_Wtime() - start) / rounds / 2 : 0);
}

static void allreduce(double *from, double *to, int count, int rounds)
{
    for (int i = 0; i < count; i++) from[i] = rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double seconds = (MPI_Wtime() - start) / rounds;
    for (int i = 0; i < count; i++) check(to[i] == ranks * (ranks - 1) / 2.0 + (double)ranks * i, "allreduce");
    show("allreduce", 8L * count, seconds);
}

static void broadcast(double *data, int count, int rounds)
{
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        int root = round % ranks;
        if (rank == root) for (int i = 0; i < count; i++) data[i] = root + i;
        MPI_Bcast(data, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
        check(data[0] == root && data[count - 1] == root + count - 1, "bcast");
    }
    show("bcast", 8L * count, (MPI_Wtime() - start) / rounds);
}

static void all_to_all(int *from, int *to, int count, int rounds)
{
    for (int i = 0; i < count * ranks; i++) from[i] = 1000 * rank + i / count;
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
    double seconds = (MPI_Wtime() - start) / rounds;
    for (int i = 0; i < count * ranks; i++) check(to[i] == 1000 * (i / count) + rank, "alltoall");
    show("alltoall", 4L * count * ranks, seconds);
}

/* A ring of nonblocking messages, and a window that all share. */
static void others(int rounds)
{
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, got = -1;
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        MPI_Irecv(&got, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(got == left, "ring");
    }
    show("ring", 4, (MPI_Wtime() - start) / rounds);
    start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) MPI_Barrier(MPI_COMM_WORLD);
    show("barrier", 0, (MPI_Wtime() - start) / rounds);

    int *mine, *theirs, unit;
    MPI_Aint size;
    MPI_Win window;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    MPI_Win_fence(0, window);
    *mine = 100 + rank;
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, right, &size, &unit, &theirs);
    check(*theirs == 100 + right, "shared window");
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    long most = argc > 2 ? atol(argv[2]) : 1 << 20;
    char *a = malloc(most + 1), *b = malloc(most + 1);
    if (rounds < 1 || most < 1 || !a || !b) MPI_Abort(MPI_COMM_WORLD, 2);
    if (ranks > 1) for (long bytes = 0; bytes <= most; bytes = bytes ? 16 * bytes : 1) ping_pong(a, bytes, rounds);
    for (long bytes = 8; bytes <= most; bytes *= 64) {
        allreduce((double *)a, (double *)b, bytes / 8, rounds);
        broadcast((double *)a, bytes / 8, rounds);
        if (bytes / 4 / ranks > 0) all_to_all((int *)a, (int *)b, bytes / 4 / ranks, rounds);
    }
    others(rounds);
    int all;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("mpi %s ranks=%d\n", all ? "FAILED" : "ok", ranks);
    MPI_Finalize();
    return all != 0;
}
