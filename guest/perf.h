/* What the parts of perf share. */
#ifndef GUEST_PERF_H
#define GUEST_PERF_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_EVENTS = 256 };

/* Types of events (Linux, include/uapi/linux/perf_event.h), and perf's own event. */
enum { TYPE_HARDWARE = 0, TYPE_SOFTWARE = 1, TYPE_CACHE = 3, TYPE_RAW = 4, TYPE_ELAPSED = 1000 };

/* Events whose counts others are compared with. */
enum { HARDWARE_CYCLES = 0, HARDWARE_INSTRUCTIONS = 1, HARDWARE_BRANCHES = 4, HARDWARE_BRANCH_MISSES = 5 };
enum { SOFTWARE_CPU_CLOCK = 0, SOFTWARE_TASK_CLOCK = 1 };

/* One event. */
struct event {
    const char *name; /* as it is shown */
    uint32_t type;
    uint64_t config;
    bool not_user, not_kernel;
    int leader; /* index of the first event of its group, or -1 */
    int file;   /* its descriptor; negative: not supported */
};

/* The events of a command. */
struct events {
    struct event list[MOST_EVENTS];
    unsigned count;
};

/* Adds the events of a list such as `cycles:u,{r10,instructions}`; what is wrong is reported. `user_only`: those that do not say
 * otherwise count in user mode only. */
bool add_events(struct events *events, const char *text, bool user_only);

/* Lists the events that this machine has. */
int list_events(void);

/* A count of an event, and how long it was enabled and counted, ns. */
struct count {
    uint64_t value, enabled, running;
};

/* What one or several runs of a command have counted. */
struct result {
    struct count counts[MOST_EVENTS];
    double deviations[MOST_EVENTS]; /* standard errors of the means, percent */
    uint64_t elapsed_ns, user_ns, system_ns;
    double elapsed_deviation;
};

/* How results are written. */
struct layout {
    const char *separator; /* NULL: none */
    bool as_json;
    bool groups_digits;
    uint64_t runs;
    bool by_interval;
};

/* Whether it is text for people: neither values with separators nor JSON. */
bool is_for_people(const struct layout *layout);
void put_title(char *const *command, const struct layout *layout);
/* Counts of all events; `end_ns` is the end of an interval. */
void put_counts(const struct events *events, const struct result *result, const struct layout *layout, uint64_t end_ns);
void put_times(const struct result *result, const struct layout *layout);
void put_heading(void);
/* `# started on …`, by the machine's clock. */
void put_start_time(void);

/* `perf stat`, with the arguments from its name on. */
int perf_stat(int argc, char **argv);

#endif
