/* The computer: its CPUs by CMG, and its description for the result file. */
#include "collect.h"

struct cmg cmgs[MOST_CMGS];
unsigned cmg_count;

enum { NAMES = 160, MOST_NODES = 64, NAME_BYTES = 65 };

static struct cpu_mask allowed;

/* Adds the allowed CPUs of a list such as 12-23,36 to a CMG. */
static void add_listed(struct cmg *cmg, const char *list)
{
    while (*list >= '0' && *list <= '9') {
        unsigned first = 0, last;
        for (; *list >= '0' && *list <= '9'; list++)
            first = first * 10 + (unsigned)(*list - '0');
        last = first;
        if (*list == '-')
            for (list++, last = 0; *list >= '0' && *list <= '9'; list++)
                last = last * 10 + (unsigned)(*list - '0');
        for (unsigned cpu = first; cpu <= last && cpu < 1024; cpu++)
            if (allowed.words[cpu / 64] >> cpu % 64 & 1 && cmg->count < MAX_THREADS)
                cmg->cpus[cmg->count++] = cpu;
        list += *list == ',';
    }
}

/* Writes `path` with the number in place of '#'. */
static void numbered(char *into, const char *path, unsigned number)
{
    for (; *path; path++) {
        if (*path != '#') {
            *into++ = *path;
            continue;
        }
        unsigned unit = 1;
        while (number / unit >= 10)
            unit *= 10;
        for (; unit; unit /= 10)
            *into++ = (char)('0' + number / unit % 10);
    }
    *into = 0;
}

static void copy(struct cmg *to, const struct cmg *from)
{
    to->count = from->count;
    for (unsigned i = 0; i < MAX_THREADS; i++)
        to->cpus[i] = from->cpus[i];
}

/* A memory node is a CMG. Nodes with less than half of the CPUs of the largest are left out: they hold assistant cores. */
void find_cmgs(void)
{
    char path[64], list[1024];
    unsigned largest = 0, kept = 0;
    linux_call(0, sizeof allowed, (long)&allowed, 0, 0, 0, GET_AFFINITY);
    for (unsigned node = 0; node < MOST_NODES && cmg_count < MOST_CMGS; node++) {
        numbered(path, "/sys/devices/system/node/node#/cpulist", node);
        if (read_text(path, list, sizeof list))
            add_listed(&cmgs[cmg_count], list);
        cmg_count += cmgs[cmg_count].count > 0;
    }
    if (!cmg_count) {
        add_listed(&cmgs[0], "0-1023");
        cmg_count = cmgs[0].count > 0;
    }
    for (unsigned i = 0; i < cmg_count; i++)
        largest = cmgs[i].count > largest ? cmgs[i].count : largest;
    for (unsigned i = 0; i < cmg_count; i++)
        if (cmgs[i].count >= largest / 2)
            copy(&cmgs[kept++], &cmgs[i]);
    cmg_count = kept;
}

static void put_file(const char *key, const char *path)
{
    static char content[1024];
    put(", ");
    put_quoted(key);
    put(": ");
    if (read_text(path, content, sizeof content))
        put_quoted(content);
    else
        put("null");
}

static void put_count(const char *key, uint64_t value)
{
    put(", ");
    put_quoted(key);
    put(": ");
    put_decimal(value);
}

/* The fields of `uname`. */
struct names {
    char system[NAME_BYTES], node[NAME_BYTES], release[NAME_BYTES], version[NAME_BYTES], machine[NAME_BYTES],
        domain[NAME_BYTES];
};

static void put_cmgs(void)
{
    put(", \"cmgs\": [");
    for (unsigned i = 0; i < cmg_count; i++) {
        put(i ? ", [" : "[");
        for (unsigned k = 0; k < cmgs[i].count; k++) {
            put(k ? ", " : "");
            put_decimal(cmgs[i].cpus[k]);
        }
        put("]");
    }
    put("]");
}

void put_host(uint64_t page, int64_t counter_error)
{
    static struct names names;
    char path[96];
    unsigned cpu = cmg_count ? cmgs[0].cpus[0] : 0;
    linux_call((long)&names, 0, 0, 0, 0, 0, NAMES);
    put("{\"name\": ");
    put_quoted(names.node);
    put(", \"kernel\": ");
    put_quoted(names.release);
    put_count("page_bytes", page);
    put_count("vector_bits", svcntb() * 8);
    put_count("counter_hz", counter_hz());
    put_count("counter_error", (uint64_t)counter_error);
    put_cmgs();
    numbered(path, "/sys/devices/system/cpu/cpu#/regs/identification/midr_el1", cpu);
    put_file("midr", path);
    numbered(path, "/sys/devices/system/cpu/cpu#/cpufreq/scaling_cur_freq", cpu);
    put_file("frequency_khz", path);
    numbered(path, "/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor", cpu);
    put_file("governor", path);
    put_file("transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled");
    put_file("perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid");
    put("}");
}
