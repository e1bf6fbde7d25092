// Measures what a core loses, as an independent check of `fxscope jitter measure`: reads the clock repeatedly and prints
// every gap between two reads that is at least as long as asked.
// usage: loop CORE MILLISECONDS SHORTEST_NS PRIORITY
// Prints `span NS`, then a line with start and length for each gap, ns of CLOCK_MONOTONIC.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 20 };

static struct gap { uint64_t start, length; } gaps[MOST];

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void occupy(int core, int priority) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    struct sched_param wanted = { .sched_priority = priority };
    if (sched_setaffinity(0, sizeof set, &set) || sched_setscheduler(0, SCHED_FIFO, &wanted)) {
        perror("loop: core or real-time priority");
        exit(2);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: loop CORE MILLISECONDS SHORTEST_NS PRIORITY\n");
        return 2;
    }
    uint64_t shortest = strtoull(argv[3], NULL, 10);
    size_t count = 0;
    // Touched before the measurement, so that no page fault is a gap.
    memset(gaps, 1, sizeof gaps);
    occupy(atoi(argv[1]), atoi(argv[4]));
    uint64_t begin = now(), end = begin + strtoull(argv[2], NULL, 10) * 1000000u, last = begin;
    while (last < end && count < MOST) {
        uint64_t next = now();
        if (next - last >= shortest) gaps[count++] = (struct gap) { last, next - last };
        last = next;
    }
    printf("span %llu\n", (unsigned long long)(last - begin));
    for (size_t i = 0; i < count; i++)
        printf("%llu %llu\n", (unsigned long long)gaps[i].start, (unsigned long long)gaps[i].length);
    return 0;
}
