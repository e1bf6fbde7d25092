/* lscpu(1): what the processors are, by /proc/cpuinfo and /sys. */
#include "commands.h"
#include "options.h"
#include "sets.h"
#include "system.h"
#include "text.h"

enum { VALUES_AT = 26, HELP = 'h' };

#define CPUS "/sys/devices/system/cpu/"
#define NODES "/sys/devices/system/node/"

static const struct option known[] = {{HELP, "help", 0}};

/* Names of processors by the numbers of their MIDR_EL1, as lscpu has them. */
static const struct {
    const char *implementer, *part, *vendor, *model;
} models[] = {{"0x46", "0x001", "FUJITSU", "A64FX"}};

static void put_usage(void)
{
    put_text("Usage: lscpu\n"
             "Shows processors and memory nodes.\n"
             "  -h, --help   this text\n");
}

static int usage(void)
{
    write_to(STANDARD_ERROR);
    put_usage();
    write_to(STANDARD_OUTPUT);
    return 1;
}

static void put_field(const char *name)
{
    put_left(name, VALUES_AT);
}

static void put_text_field(const char *name, const char *value)
{
    put_field(name);
    put_text(value);
    put_char('\n');
}

static void put_number_field(const char *name, uint64_t value)
{
    put_text_field(name, number_text(value, false));
}

/* Joins parts of a path and a number between them. */
static void join(char *path, const char *before, unsigned number, const char *behind)
{
    const char *const parts[] = {before, number_text(number, false), behind};
    for (unsigned part = 0; part < COUNT_OF(parts); part++)
        for (const char *from = parts[part]; *from;)
            *path++ = *from++;
    *path = 0;
}

/* Copies what /proc/cpuinfo says about the first processor behind a name; empty: nothing. */
static void first_of_cpuinfo(const char *name, char *value, size_t room)
{
    char text[4096];
    value[0] = 0;
    if (read_file("/proc/cpuinfo", text, sizeof text) <= 0)
        return;
    for (const char *line = text; line; line = find_char(line, '\n')) {
        line += *line == '\n';
        const char *rest = after_prefix(line, name);
        if (!rest || !(rest = find_char(rest, ':')))
            continue;
        size_t length = 0;
        for (rest += 2; rest[length] && rest[length] != '\n' && length + 1 < room; length++)
            value[length] = rest[length];
        value[length] = 0;
        return;
    }
}

static void put_model(void)
{
    char implementer[16], part[16];
    first_of_cpuinfo("CPU implementer", implementer, sizeof implementer);
    first_of_cpuinfo("CPU part", part, sizeof part);
    const char *vendor = implementer, *model = part;
    for (unsigned i = 0; i < COUNT_OF(models); i++) {
        if (equal(implementer, models[i].implementer) && equal(part, models[i].part)) {
            vendor = models[i].vendor;
            model = models[i].model;
        }
    }
    if (vendor[0] && model[0]) {
        put_text_field("Vendor ID:", vendor);
        put_text_field("Model name:", model);
    }
}

static void put_threads(unsigned cpu)
{
    char path[128];
    struct set siblings = {0};
    join(path, CPUS "cpu", cpu, "/topology/thread_siblings_list");
    if (read_list(path, &siblings))
        put_number_field("Thread(s) per core:", count_of(&siblings));
}

/* A clock in MHz from a file with kHz. */
static void put_clock(const char *name, unsigned cpu, const char *file)
{
    char path[128], text[32];
    uint64_t khz = 0;
    const char *at = text;
    join(path, CPUS "cpu", cpu, file);
    if (read_file(path, text, sizeof text) <= 0 || !parse_digits(&at, 10, &khz))
        return;
    put_field(name);
    put_fixed((double)khz / 1000, 4);
    put_char('\n');
}

static void put_line_of_cpuinfo(const char *name, const char *of_cpuinfo)
{
    char value[2048];
    first_of_cpuinfo(of_cpuinfo, value, sizeof value);
    if (value[0])
        put_text_field(name, value);
}

static void put_nodes(void)
{
    struct set nodes = {0};
    if (!read_list(NODES "has_memory", &nodes))
        return;
    put_number_field("NUMA node(s):", count_of(&nodes));
    for (unsigned node = 0; node < MOST_MEMBERS; node++) {
        char path[128], name[32];
        struct set cpus = {0};
        if (!has(&nodes, node))
            continue;
        join(path, NODES "node", node, "/cpulist");
        read_list(path, &cpus);
        join(name, "NUMA node", node, " CPU(s):");
        put_field(name);
        put_list(&cpus);
        put_char('\n');
    }
}

int lscpu(int argc, char **argv)
{
    struct options options = {.command = "lscpu", .known = known, .count = COUNT_OF(known), .argc = argc, .argv = argv, .at = 1};
    struct set online = {0};
    int option = next_option(&options);
    if (option == HELP) {
        put_usage();
        return 0;
    }
    if (option != NO_MORE_OPTIONS || options.at < argc) {
        if (option == NO_MORE_OPTIONS)
            COMPLAIN("lscpu: bad usage: '", argv[options.at], "'");
        return usage();
    }
    if (!read_list(CPUS "online", &online)) {
        COMPLAIN("lscpu: cannot read " CPUS "online");
        return 1;
    }
    unsigned first = first_of(&online);
    put_text_field("Architecture:", "aarch64");
    put_text_field("Byte Order:", "Little Endian");
    put_number_field("CPU(s):", count_of(&online));
    put_field("On-line CPU(s) list:");
    put_list(&online);
    put_char('\n');
    put_model();
    put_threads(first);
    put_clock("CPU max MHz:", first, "/cpufreq/cpuinfo_max_freq");
    put_clock("CPU min MHz:", first, "/cpufreq/cpuinfo_min_freq");
    put_line_of_cpuinfo("BogoMIPS:", "BogoMIPS");
    put_line_of_cpuinfo("Flags:", "Features");
    put_nodes();
    return 0;
}
