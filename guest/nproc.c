/* nproc(1): the number of processors that the process may use. */
#include "commands.h"
#include "options.h"
#include "sets.h"
#include "system.h"
#include "text.h"

enum { ALL = 256, IGNORE, HELP };

static const struct option known[] = {{ALL, "all", 0}, {IGNORE, "ignore", 1}, {HELP, "help", 0}};

static void put_usage(void)
{
    put_text("Usage: nproc [OPTIONS]\n"
             "Prints the number of processors that this process may use.\n"
             "  --all        all that the machine has\n"
             "  --ignore=N   fewer by N, but at least one\n"
             "  --help       this text\n");
}

static int usage(void)
{
    write_to(STANDARD_ERROR);
    put_usage();
    write_to(STANDARD_OUTPUT);
    return 1;
}

/* Returns the positive number at the start of a variable, or 0. OMP_NUM_THREADS may be a list for nested parallel regions. */
static uint64_t number_in(const char *name)
{
    const char *text = variable(name);
    uint64_t number = 0;
    return text && parse_digits(&text, 10, &number) && (!*text || *text == ',') ? number : 0;
}

/* Returns the processors of the affinity, as OpenMP's variables change them. */
static uint64_t usable(void)
{
    struct set cpus;
    get_affinity(0, &cpus);
    uint64_t wanted = number_in("OMP_NUM_THREADS"), limit = number_in("OMP_THREAD_LIMIT");
    uint64_t count = wanted ? wanted : count_of(&cpus);
    return limit && limit < count ? limit : count;
}

int nproc(int argc, char **argv)
{
    struct options options = {.command = "nproc", .known = known, .count = COUNT_OF(known), .argc = argc, .argv = argv, .at = 1};
    struct set online = {0};
    uint64_t ignored = 0;
    bool all = false;
    int option;
    while ((option = next_option(&options)) != NO_MORE_OPTIONS) {
        switch (option) {
        case ALL: all = true; break;
        case IGNORE:
            if (!parse_number(options.value, &ignored)) {
                COMPLAIN("nproc: invalid number: '", options.value, "'");
                return 1;
            }
            break;
        case HELP: put_usage(); return 0;
        default: return usage();
        }
    }
    if (options.at < argc) {
        COMPLAIN("nproc: extra operand '", argv[options.at], "'");
        return usage();
    }
    if (all)
        read_list("/sys/devices/system/cpu/online", &online);
    uint64_t count = all ? count_of(&online) : usable();
    put_number(count > ignored ? count - ignored : 1);
    put_char('\n');
    return 0;
}
