/* The measuring program: runs a list of small benchmarks on an A64FX under Linux, and writes what it measured as JSON. See
 * docs/calibrate.md. Each benchmark runs in a process of its own, so that one that cannot run leaves the others alone. */
#include "collect.h"

/* The list: lines of name, loop, arguments, threads and events, separated by commas; the first line names these columns. */
extern const char collect_list[];

enum { UNMAP = 215, CLONE = 220, MAP = 222, WAIT = 260 };
enum { CHILD_SIGNAL = 17, SHARED_ANONYMOUS = 0x21, READ_WRITE = 3 };
enum { AUXV_PAGE = 6, AUXV_HWCAP = 16, HWCAP_SVE = 1 << 22 };
enum { NAME_BYTES = 48, FIELD_BYTES = 128, MOST_ARGUMENTS = 16 };

_Noreturn void linux_exit(int status);

struct benchmark {
    char name[FIELD_BYTES], loop[FIELD_BYTES], arguments[FIELD_BYTES], threads[FIELD_BYTES], events[FIELD_BYTES];
};

static struct benchmark benchmark;
static const char *output, *only;
static unsigned repetitions = 20;
static int64_t counter_error;

/* Copies a field of the list, and returns the place after it. */
static const char *field(const char *from, char *into)
{
    unsigned n = 0;
    for (; *from && *from != ',' && *from != '\n'; from++)
        if (n < FIELD_BYTES - 1)
            into[n++] = *from;
    into[n] = 0;
    return *from == ',' ? from + 1 : from;
}

/* Reads a line of the list into `benchmark`, and returns the next line. */
static const char *read_line(const char *line)
{
    line = field(line, benchmark.name);
    line = field(line, benchmark.loop);
    line = field(line, benchmark.arguments);
    line = field(line, benchmark.threads);
    line = field(line, benchmark.events);
    while (*line && *line != '\n')
        line++;
    return *line ? line + 1 : line;
}

static const char *after(const char *text, const char *begin)
{
    while (*begin)
        if (*text++ != *begin++)
            return NULL;
    return text;
}

/* Whether `name` is in a list such as `a,b,c`. */
static bool listed(const char *list, const char *name)
{
    while (*list) {
        const char *rest = after(list, name);
        if (rest && (!*rest || *rest == ','))
            return true;
        while (*list && *list++ != ',')
            ;
    }
    return false;
}

static uint64_t take_number(const char **text)
{
    uint64_t number = 0;
    for (; **text >= '0' && **text <= '9'; ++*text)
        number = number < 100000 ? number * 10 + (uint64_t)(**text - '0') : number;
    return number;
}

_Noreturn void no_result(const char *reason)
{
    for (unsigned i = 0; reason[i] && i < REASON_BYTES - 1; i++)
        setting.result->reason[i] = reason[i];
    linux_exit(CANNOT_RUN);
}

/* The CPUs of the benchmark's threads: `CMG.CORE` or `CMG.FIRST-LAST`, several with +, then `@CMG` or `@own` for the memory. */
static void place(unsigned *cpus)
{
    const char *t = benchmark.threads;
    unsigned home = ~0u;
    setting.threads = 0;
    for (; *t && *t != '@'; t += *t == '+') {
        uint64_t cmg = take_number(&t);
        t += *t == '.';
        uint64_t first = take_number(&t), last = first;
        if (*t == '-') {
            t++;
            last = take_number(&t);
        }
        if (cmg >= cmg_count)
            no_result("the program may not run on as many CMGs");
        if (last >= cmgs[cmg].count)
            no_result("the program may not run on as many CPUs of a CMG");
        home = home == ~0u ? (unsigned)cmg : home;
        for (uint64_t core = first; core <= last && setting.threads < MAX_THREADS; core++)
            cpus[setting.threads++] = cmgs[cmg].cpus[core];
    }
    if (*t == '@' && t[1] == 'o') {
        setting.memory_cpu = -1;
        return;
    }
    if (*t == '@') {
        t++;
        home = (unsigned)take_number(&t);
    }
    if (home >= cmg_count)
        no_result("the program may not run on as many CMGs");
    setting.memory_cpu = (int)cmgs[home].cpus[0];
}

/* Gives the CPUs to run_threads. */
static void choose(const unsigned *cpus)
{
    static char list[8 * MAX_THREADS] = "cpus=";
    char *argv[] = {list};
    unsigned n = 5;
    for (unsigned i = 0; i < setting.threads; i++) {
        unsigned unit = 1;
        while (cpus[i] / unit >= 10)
            unit *= 10;
        for (; unit; unit /= 10)
            list[n++] = (char)('0' + cpus[i] / unit % 10);
        list[n++] = ',';
    }
    list[n - 1] = 0;
    choose_cpus(1, argv);
}

/* The benchmark's events: NAME=NUMBER, separated by blanks; numbers are hexadecimal. */
static void read_events(void)
{
    const char *t = benchmark.events;
    for (setting.event_count = 0; *t && setting.event_count < MOST_EVENTS; setting.event_count++) {
        uint64_t number = 0;
        while (*t && *t++ != '=')
            ;
        for (t += 2; *t && *t != ' '; t++)
            number = number * 16 + (uint64_t)(*t <= '9' ? *t - '0' : *t - 'a' + 10);
        setting.events[setting.event_count] = number;
        t += *t == ' ';
    }
}

/* The process of a benchmark. */
static _Noreturn void run_benchmark(void)
{
    unsigned cpus[MAX_THREADS];
    char *argv[MOST_ARGUMENTS + 1];
    int argc = 0;
    setting.repetitions = repetitions;
    place(cpus);
    choose(cpus);
    stay_on(setting.memory_cpu < 0 ? cpus[0] : (unsigned)setting.memory_cpu);
    read_events();
    argv[argc++] = benchmark.loop;
    for (char *t = benchmark.arguments; *t && argc < MOST_ARGUMENTS;) {
        argv[argc++] = t;
        while (*t && *t != ' ')
            t++;
        if (*t)
            *t++ = 0;
    }
    run_loop(benchmark.loop, argc, argv);
    linux_exit(PASSED);
}

static void sort(uint64_t *values, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        for (unsigned k = i; k && values[k - 1] > values[k]; k--) {
            uint64_t swapped = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swapped;
        }
}

static void put_time(const char *key, uint64_t ticks)
{
    uint64_t hz = counter_hz();
    put(key);
    /* Without overflow for any time that a benchmark takes. */
    put_decimal(ticks / hz * 1000000000 + ticks % hz * 1000000000 / hz);
}

static void put_events(struct result *result)
{
    const char *names = benchmark.events;
    put(", \"events\": {\"CPU_CYCLES\": ");
    for (unsigned i = 0; i <= setting.event_count; i++) {
        char name[NAME_BYTES];
        unsigned n = 0;
        if (i) {
            for (; *names && *names != '='; names++)
                if (n < NAME_BYTES - 1)
                    name[n++] = *names;
            name[n] = 0;
            while (*names && *names++ != ' ')
                ;
            put(", ");
            put_quoted(name);
            put(": ");
        }
        sort(result->counts[i], repetitions);
        put_decimal(result->counts[i][repetitions / 2]);
    }
    put("}");
}

static void put_result(struct result *result)
{
    put("{\"benchmark\": ");
    put_quoted(benchmark.name);
    put(", \"loop\": ");
    put_quoted(benchmark.loop);
    put(", \"arguments\": ");
    put_quoted(benchmark.arguments);
    put(", \"threads\": ");
    put_quoted(benchmark.threads);
    if (!result->operations) {
        put(", \"failed\": ");
        put_quoted(result->reason[0] ? result->reason : "its process ended before the end");
        put("}");
        return;
    }
    sort(result->ticks, repetitions);
    put(", \"repetitions\": ");
    put_decimal(repetitions);
    put(", \"operations\": ");
    put_decimal(result->operations);
    put_time(", \"ns\": {\"median\": ", result->ticks[repetitions / 2]);
    put_time(", \"min\": ", result->ticks[0]);
    put_time(", \"max\": ", result->ticks[repetitions - 1]);
    put("}");
    if (result->counted == repetitions)
        put_events(result);
    put("}");
}

/* Runs the benchmark in a process, and writes its result. */
static void measure_benchmark(void)
{
    long shared = linux_call(0, sizeof(struct result), READ_WRITE, SHARED_ANONYMOUS, -1, 0, MAP);
    if (shared < 0 && shared > -4096)
        cannot_run("the system has no memory left");
    setting.result = (struct result *)shared;
    long process = linux_call(CHILD_SIGNAL, 0, 0, 0, 0, 0, CLONE);
    if (process == 0)
        run_benchmark();
    if (process < 0)
        cannot_run("the system starts no more processes");
    linux_call(process, 0, 0, 0, 0, 0, WAIT);
    read_events();
    put_result(setting.result);
    if (setting.result->operations)
        counter_error = setting.result->counter_error;
    linux_call(shared, sizeof(struct result), 0, 0, 0, 0, UNMAP);
}

static _Noreturn void usage(void)
{
    cannot_run("usage: collect.elf [out=FILE] [repeat=1 to 64] [only=NAME,NAME...]\n"
               "Measures this A64FX and writes the results to FILE, or to standard output. Keep it idle meanwhile.");
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *number;
        if ((number = after(argv[i], "repeat=")) && *number >= '0' && *number <= '9') {
            repetitions = (unsigned)take_number(&number);
            if (*number || !repetitions || repetitions > MOST_REPETITIONS)
                usage();
        } else if (after(argv[i], "out=")) {
            output = after(argv[i], "out=");
        } else if (after(argv[i], "only=")) {
            only = after(argv[i], "only=");
        } else {
            usage();
        }
    }
}

/* A value that the kernel passes behind the environment; 0 if it does not. */
static uint64_t auxiliary(char **argv, int argc, uint64_t key)
{
    char **at = argv + argc + 1;
    while (*at++)
        ;
    for (const uint64_t *pair = (const uint64_t *)at; pair[0]; pair += 2)
        if (pair[0] == key)
            return pair[1];
    return 0;
}

int program(int argc, char **argv)
{
    read_arguments(argc, argv);
    if (!(auxiliary(argv, argc, AUXV_HWCAP) & HWCAP_SVE))
        cannot_run("this computer, or its kernel, has no SVE: run the program on an A64FX");
    setting.page = auxiliary(argv, argc, AUXV_PAGE);
    find_cmgs();
    put("{\"format\": \"fxscope-calibration\", \"version\": 1, \"runs\": [");
    unsigned measured = 0;
    const char *line = read_line(collect_list);
    while (*line) {
        line = read_line(line);
        if (only && !listed(only, benchmark.name))
            continue;
        if (output)
            say("", benchmark.name);
        put(measured++ ? ",\n" : "\n");
        measure_benchmark();
    }
    if (!measured)
        cannot_run("only: no benchmark has this name");
    put("\n], \"host\": ");
    put_host(setting.page, counter_error);
    put("}\n");
    if (!write_text(output))
        cannot_run("the result cannot be written; out=FILE names a file in a folder that can be written");
    return PASSED;
}
