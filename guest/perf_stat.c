/* perf-stat(1): counts events of a command and of all processes and threads that it starts. */
#include "perf.h"

#include "options.h"
#include "system.h"
#include "text.h"

enum { FAILED = 255, WRONG = 129, BY_SIGNAL = 128 };
enum { APPEND = 256, NO_BIG_NUM };
enum { MOST_RUNS = 100 };

static const struct option known[] = {
    {'e', "event", 1},       {'x', "field-separator", 1}, {'o', "output", 1},      {APPEND, "append", 0},
    {'r', "repeat", 1},      {'I', "interval-print", 1},  {'i', "no-inherit", 0},  {'n', "null", 0},
    {'B', "big-num", 0},     {NO_BIG_NUM, "no-big-num", 0}, {'j', "json-output", 0}, {'d', "detailed", 0},
    {'a', "all-cpus", 0},    {'p', "pid", 1},             {'h', "help", 0},
};

/* Events without -e. */
#define USUAL "task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

/* Further events of each -d. */
static const char *const detailed[] = {
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
};

/* What the options ask for. */
struct request {
    struct layout layout;
    const char *file; /* NULL: standard error */
    bool appends, inherits;
    unsigned details; /* how often -d was given */
    uint64_t interval_ms;
    char **command;
};

/* `struct perf_event_attr` up to what is used here; the kernel knows later members. */
struct attributes {
    uint32_t type, size;
    uint64_t config, period, sample_type, read_format, flags;
    uint32_t wakeup, breakpoint;
    uint64_t config1;
};

enum { ATTR_DISABLED = 1, ATTR_INHERIT = 2, ATTR_NOT_USER = 16, ATTR_NOT_KERNEL = 32, ATTR_NOT_HYPERVISOR = 64, ATTR_ENABLE_ON_EXEC = 4096 };
enum { READ_TIMES = 3, CLOSE_ON_EXEC = 8, O_CLOEXEC = 02000000 };

static struct events events;

static void put_usage(void)
{
    put_text("Usage: perf stat [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
             "  -e, --event EVENTS           events to count, such as cycles,instructions:u,r11,{l1d_cache,l1d_cache_refill}\n"
             "  -x, --field-separator TEXT   values with this text between them\n"
             "  -j, --json-output            values as JSON, an event a line\n"
             "  -d, --detailed               caches as well; -dd: and TLBs, -ddd: and prefetches\n"
             "  -o, --output FILE            write to a file\n"
             "      --append                 add to that file\n"
             "  -r, --repeat N               run the command N times (at most 100): means and deviations\n"
             "  -I, --interval-print N       counts of every N ms\n"
             "  -i, --no-inherit             without the threads and processes that the command starts\n"
             "  -n, --null                   no events, only time\n"
             "  -B, --big-num                commas between thousands (the default); --no-big-num: none\n"
             "  -h, --help                   this text\n");
}

static int usage(void)
{
    write_to(STANDARD_ERROR);
    put_usage();
    write_to(STANDARD_OUTPUT);
    return WRONG;
}

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    call2(CALL_CLOCK_GETTIME, CLOCK_MONOTONIC, (long)&now);
    return (uint64_t)now.seconds * 1000000000 + (uint64_t)now.nanoseconds;
}

/* Opens the events for the process `pid`, which has not executed the command yet. */
static void open_events(long pid, const struct request *request)
{
    for (unsigned i = 0; i < events.count; i++) {
        struct event *event = &events.list[i];
        if (event->type == TYPE_ELAPSED) {
            event->file = 0;
            continue;
        }
        bool follows = event->leader >= 0 && events.list[event->leader].file >= 0;
        struct attributes attributes = {
            .type = event->type,
            .size = sizeof attributes,
            .config = event->config,
            .read_format = READ_TIMES,
            .flags = (request->inherits ? ATTR_INHERIT : 0) | (event->not_user ? ATTR_NOT_USER : 0) |
                     (event->not_kernel ? ATTR_NOT_KERNEL | ATTR_NOT_HYPERVISOR : 0) |
                     (follows ? 0 : ATTR_DISABLED | ATTR_ENABLE_ON_EXEC),
        };
        long leader = follows ? events.list[event->leader].file : -1;
        event->file = (int)call(CALL_PERF_EVENT_OPEN, (long)&attributes, pid, -1, leader, CLOSE_ON_EXEC, 0);
    }
}

static void read_events(struct result *result)
{
    for (unsigned i = 0; i < events.count; i++) {
        struct count *count = &result->counts[i];
        *count = (struct count){0};
        if (events.list[i].type == TYPE_ELAPSED)
            *count = (struct count){result->elapsed_ns, result->elapsed_ns, result->elapsed_ns};
        else if (events.list[i].file >= 0)
            call3(CALL_READ, events.list[i].file, (long)count, sizeof *count);
    }
}

static void close_events(void)
{
    for (unsigned i = 0; i < events.count; i++)
        if (events.list[i].type != TYPE_ELAPSED && events.list[i].file >= 0)
            call1(CALL_CLOSE, events.list[i].file);
}

/* The process of the command: it waits until its events are open. */
static _Noreturn void become_command(const int *gate, uint64_t signals, char **command)
{
    char go;
    call1(CALL_CLOSE, gate[1]);
    long got = call3(CALL_READ, gate[0], (long)&go, 1);
    call(CALL_RT_SIGPROCMASK, 2, (long)&signals, 0, sizeof signals, 0, 0);
    if (got == 1) {
        long error = execute(command);
        COMPLAIN("Workload failed: ", error_text(error));
    }
    leave(FAILED);
}

/* Waits until the time `until_ns`, or forever if it is 0, for the end of the process `pid`. Returns whether it has ended. */
static bool wait_for(long pid, uint64_t until_ns, int *status, struct usage *used)
{
    enum { WITHOUT_WAITING = 1 };
    if (until_ns == 0)
        return call(CALL_WAIT4, pid, (long)status, 0, (long)used, 0, 0) == pid;
    for (;;) {
        if (call(CALL_WAIT4, pid, (long)status, WITHOUT_WAITING, (long)used, 0, 0) == pid)
            return true;
        uint64_t now = now_ns();
        if (now >= until_ns)
            return false;
        uint64_t signals = 1 << (SIGNAL_CHILD - 1);
        struct timespec rest = {(int64_t)((until_ns - now) / 1000000000), (int64_t)((until_ns - now) % 1000000000)};
        call(CALL_RT_SIGTIMEDWAIT, (long)&signals, 0, (long)&rest, sizeof signals, 0, 0);
    }
}

/* Writes what has been counted since `before`, and keeps the counts so far there. */
static void put_interval(struct result *before, const struct layout *layout, uint64_t since_start, uint64_t length)
{
    static struct result now, part;
    now.elapsed_ns = since_start;
    read_events(&now);
    for (unsigned i = 0; i < events.count; i++) {
        part.counts[i].value = now.counts[i].value - before->counts[i].value;
        part.counts[i].enabled = now.counts[i].enabled - before->counts[i].enabled;
        part.counts[i].running = now.counts[i].running - before->counts[i].running;
    }
    part.elapsed_ns = length;
    put_counts(&events, &part, layout, since_start);
    flush();
    *before = now;
}

/* Waits for the process `pid`; writes counts by interval if they are wanted. Returns its status. */
static int follow(long pid, uint64_t start, const struct request *request, struct usage *used)
{
    enum { LINES_TO_HEADING = 25 };
    static struct result before;
    int status = 0;
    uint64_t interval = request->interval_ms * 1000000, end = 0, last = 0, now;
    for (unsigned intervals = 0;; intervals++) {
        end += interval;
        bool has_ended = wait_for(pid, interval ? start + end : 0, &status, used);
        now = now_ns() - start;
        if (interval) {
            if (is_for_people(&request->layout) && intervals * events.count % LINES_TO_HEADING < events.count)
                put_heading();
            put_interval(&before, &request->layout, now, now - last);
        }
        if (has_ended)
            return status;
        last = now;
    }
}

/* Runs the command once. Returns its exit status, or -1 if it cannot be started. */
static int run(const struct request *request, struct result *result)
{
    int gate[2];
    uint64_t child_signal = 1 << (SIGNAL_CHILD - 1), signals = 0;
    if (call2(CALL_PIPE2, (long)gate, O_CLOEXEC) < 0)
        return -1;
    call(CALL_RT_SIGPROCMASK, 0, (long)&child_signal, (long)&signals, sizeof signals, 0, 0);
    flush();
    long pid = call(CALL_CLONE, SIGNAL_CHILD, 0, 0, 0, 0, 0);
    if (pid == 0)
        become_command(gate, signals, request->command);
    call1(CALL_CLOSE, gate[0]);
    if (pid < 0)
        return -1;
    open_events(pid, request);
    struct usage used = {0};
    uint64_t start = now_ns();
    call3(CALL_WRITE, gate[1], (long)"", 1);
    call1(CALL_CLOSE, gate[1]);
    int status = follow(pid, start, request, &used);
    result->elapsed_ns = now_ns() - start;
    result->user_ns = (uint64_t)used.user_seconds * 1000000000 + (uint64_t)used.user_microseconds * 1000;
    result->system_ns = (uint64_t)used.system_seconds * 1000000000 + (uint64_t)used.system_microseconds * 1000;
    read_events(result);
    close_events();
    return status & 127 ? BY_SIGNAL + (status & 127) : status >> 8 & 255;
}

/* Returns the mean of `runs` values, and the standard error of it in percent. */
static uint64_t mean_of(const uint64_t *values, uint64_t runs, double *deviation)
{
    double sum = 0, squares = 0;
    for (uint64_t run = 0; run < runs; run++)
        sum += (double)values[run];
    double mean = sum / (double)runs;
    for (uint64_t run = 0; run < runs; run++)
        squares += ((double)values[run] - mean) * ((double)values[run] - mean);
    double error = runs > 1 ? __builtin_sqrt(squares / (double)(runs - 1) / (double)runs) : 0;
    *deviation = mean > 0 ? 100 * error / mean : 0;
    return runs == 1 ? values[0] : (uint64_t)(mean + 0.5);
}

/* The values of all runs. */
static uint64_t values[MOST_EVENTS + 1][MOST_RUNS];

/* Runs the command as often as requested; `result` has the means. Returns the status of the last run, or -1. */
static int run_all(const struct request *request, struct result *result)
{
    uint64_t runs = request->layout.runs;
    int status = 0;
    for (uint64_t i = 0; i < runs; i++) {
        status = run(request, result);
        if (status < 0)
            return status;
        for (unsigned event = 0; event < events.count; event++)
            values[event][i] = result->counts[event].value;
        values[MOST_EVENTS][i] = result->elapsed_ns;
    }
    for (unsigned event = 0; event < events.count; event++)
        result->counts[event].value = mean_of(values[event], runs, &result->deviations[event]);
    result->elapsed_ns = mean_of(values[MOST_EVENTS], runs, &result->elapsed_deviation);
    return status;
}

/* Opens the output; returns whether that succeeds. */
static bool open_output(const struct request *request)
{
    enum { AT_FDCWD = -100, O_WRONLY = 1, O_CREAT = 0100, O_TRUNC = 01000, O_APPEND = 02000, MODE = 0644 };
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (request->appends ? O_APPEND : O_TRUNC);
    long file = STANDARD_ERROR;
    if (request->file)
        file = call(CALL_OPENAT, AT_FDCWD, (long)request->file, flags, MODE, 0, 0);
    if (file < 0) {
        COMPLAIN("perf: failed to create output file ", request->file, ": ", error_text(-file));
        return false;
    }
    write_to((int)file);
    if (request->file)
        put_start_time();
    return true;
}

static int stat(const struct request *request)
{
    static struct result result;
    if (!open_output(request))
        return FAILED;
    int status = run_all(request, &result);
    if (status < 0) {
        COMPLAIN("perf: cannot start a process");
        return FAILED;
    }
    const struct layout *layout = &request->layout;
    if (!layout->by_interval) {
        if (is_for_people(layout))
            put_title(request->command, layout);
        put_counts(&events, &result, layout, 0);
        if (is_for_people(layout))
            put_times(&result, layout);
    }
    return status;
}

/* Returns whether users may count in user mode only, as the system's setting says. */
static bool is_user_only(void)
{
    char text[16];
    return read_file("/proc/sys/kernel/perf_event_paranoid", text, sizeof text) <= 0 || (text[0] != '-' && text[0] >= '2');
}

/* Parses a number from 1 to `most`. */
static bool parse_count(const char *text, uint64_t most, uint64_t *value)
{
    if (parse_number(text, value) && *value >= 1 && *value <= most)
        return true;
    COMPLAIN("perf: '", text, "' is not a number from 1 to ", number_text(most, false));
    return false;
}

/* Applies an option; returns 0 or an exit status. */
static int apply(struct request *request, int option, const char *value, bool user_only)
{
    switch (option) {
    case 'e': return add_events(&events, value, user_only) ? 0 : usage();
    case 'x': request->layout.separator = equal(value, "\\t") ? "\t" : value; return 0;
    case 'o': request->file = value; return 0;
    case APPEND: request->appends = true; return 0;
    case 'r': return parse_count(value, MOST_RUNS, &request->layout.runs) ? 0 : usage();
    case 'I':
        request->layout.by_interval = true;
        return parse_count(value, 86400000, &request->interval_ms) ? 0 : usage();
    case 'i': request->inherits = false; return 0;
    case 'B': request->layout.groups_digits = true; return 0;
    case NO_BIG_NUM: request->layout.groups_digits = false; return 0;
    case 'j': request->layout.as_json = true; return 0;
    case 'd': request->details++; return 0;
    case 'a':
        COMPLAIN("perf stat: -a: whole CPUs cannot be counted here; without it, all that the command starts is counted");
        return usage();
    case 'p':
        COMPLAIN("perf stat: -p: a running process cannot be counted here; give its command instead");
        return usage();
    default: return usage();
    }
}

int perf_stat(int argc, char **argv)
{
    struct options options = {.command = "perf stat", .known = known, .count = COUNT_OF(known), .argc = argc, .argv = argv, .at = 1};
    struct request request = {.layout = {.groups_digits = true, .runs = 1}, .inherits = true};
    bool user_only = is_user_only(), without = false;
    int option, status = 0;
    while (status == 0 && (option = next_option(&options)) != NO_MORE_OPTIONS) {
        if (option == 'h') {
            put_usage();
            return 0;
        }
        without |= option == 'n';
        status = option == 'n' ? 0 : apply(&request, option, options.value, user_only);
    }
    if (status)
        return status;
    if (options.at >= argc) {
        COMPLAIN("perf stat: no command given");
        return usage();
    }
    if (request.interval_ms && request.layout.runs > 1) {
        COMPLAIN("perf stat: -I and -r cannot be combined");
        return usage();
    }
    if (request.layout.as_json && request.layout.separator) {
        COMPLAIN("perf stat: -j and -x cannot be combined");
        return usage();
    }
    if (!events.count && !without)
        add_events(&events, USUAL, user_only);
    for (unsigned i = 0; i < request.details && i < COUNT_OF(detailed); i++)
        add_events(&events, detailed[i], user_only);
    request.command = argv + options.at;
    return stat(&request);
}
