// A loop in a marked region, counted by a group of performance events, and the same loop in a child that inherits an event.

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../kernels/fxscope_roi.h"

enum { ELEMENTS = 20000, EVENTS = 4 };

static double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];

static int open_event(uint64_t number, int leader, int inherit) {
    struct perf_event_attr attr = {.type = PERF_TYPE_RAW, .size = sizeof attr, .config = number};
    attr.read_format = inherit ? 0 : PERF_FORMAT_GROUP;
    attr.inherit = inherit;
    attr.disabled = leader < 0;
    return syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0);
}

__attribute__((noinline)) static void triad(const char *region) {
    fxscope_roi_begin(region);
    for (int i = 0; i < ELEMENTS; i++)
        a[i] = b[i] + 3 * c[i];
    fxscope_roi_end();
}

int main(void) {
    // CPU_CYCLES, INST_RETIRED, FP_SCALE_OPS_SPEC, L1D_CACHE_REFILL
    static const uint64_t numbers[EVENTS] = {0x11, 0x08, 0x80c0, 0x03};
    static const char *names[EVENTS] = {"cycles", "instructions", "operations", "refills"};
    int group = -1, all = open_event(0x80c0, -1, 1);
    for (int i = 0; i < EVENTS; i++) {
        int event = open_event(numbers[i], group, 0);
        if (event < 0)
            return 1;
        group = group < 0 ? event : group;
    }
    ioctl(all, PERF_EVENT_IOC_ENABLE, 0);
    ioctl(group, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    triad("parent");
    ioctl(group, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
    pid_t child = fork();
    if (child == 0) {
        triad("child");
        _exit(0);
    }
    waitpid(child, 0, 0);
    uint64_t counts[1 + EVENTS] = {0}, sum = 0;
    if (read(group, counts, sizeof counts) != sizeof counts || read(all, &sum, sizeof sum) != sizeof sum)
        return 2;
    for (int i = 0; i < EVENTS; i++)
        printf("%s %llu\n", names[i], (unsigned long long)counts[1 + i]);
    printf("both %llu\n", (unsigned long long)sum);
    return 0;
}
