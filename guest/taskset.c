/* taskset(1): runs a command on some processors, or shows and sets those of a running thread. */
#include "commands.h"
#include "options.h"
#include "sets.h"
#include "system.h"
#include "text.h"

enum { FAILED = 1, CANNOT_EXECUTE = 126, NOT_FOUND = 127 };

static const struct option known[] = {
    {'a', "all-tasks", 0}, {'c', "cpu-list", 0}, {'p', "pid", 0}, {'h', "help", 0},
};

/* What the options ask for. */
struct request {
    bool lists; /* processors are lists, not masks */
    bool all;   /* all threads of a process */
};

static void put_usage(void)
{
    put_text("Usage: taskset [OPTIONS] MASK COMMAND [ARGUMENTS]\n"
             "       taskset [OPTIONS] -p [MASK] PID\n"
             "Shows or sets the processors on which a command or a running thread may run.\n"
             "  -a, --all-tasks   all threads of the process, with -p\n"
             "  -c, --cpu-list    MASK is a list such as 12-23,36 or 12-58:2, not a number in hexadecimal\n"
             "  -p, --pid         a running thread\n"
             "  -h, --help        this text\n");
}

static int usage(void)
{
    write_to(STANDARD_ERROR);
    put_usage();
    write_to(STANDARD_OUTPUT);
    return FAILED;
}

static int parse(const struct request *request, const char *text, struct set *set)
{
    if (request->lists ? parse_list(text, set) : parse_mask(text, set))
        return 0;
    COMPLAIN("taskset: failed to parse CPU ", request->lists ? "list: " : "mask: ", text);
    return FAILED;
}

/* Shows the processors of a thread, which are its `state` ones. */
static int show(const struct request *request, uint64_t id, const char *state)
{
    struct set set;
    long error = get_affinity((long)id, &set);
    if (error) {
        COMPLAIN("taskset: failed to get pid ", number_text(id, false), "'s affinity: ", error_text(error));
        return FAILED;
    }
    put_text("pid ");
    put_number(id);
    put_text("'s ");
    put_text(state);
    put_text(request->lists ? " affinity list: " : " affinity mask: ");
    request->lists ? put_list(&set) : put_mask(&set);
    put_char('\n');
    return 0;
}

static int set(uint64_t id, const struct set *set)
{
    long error = set_affinity((long)id, set);
    if (!error)
        return 0;
    COMPLAIN("taskset: failed to set pid ", number_text(id, false), "'s affinity: ", error_text(error));
    return FAILED;
}

/* Shows a thread's processors, and sets others if `wanted`. */
static int one(const struct request *request, uint64_t id, const struct set *wanted)
{
    int status = show(request, id, "current");
    if (status || !wanted)
        return status;
    status = set(id, wanted);
    return status ? status : show(request, id, "new");
}

/* The same for all threads of a process, in the order of /proc. */
static int each(const struct request *request, uint64_t id, const struct set *wanted)
{
    char path[64] = "/proc/", entries[4096];
    size_t at = length_of(path);
    for (const char *from = number_text(id, false); *from;)
        path[at++] = *from++;
    for (const char *from = "/task"; *from;)
        path[at++] = *from++;
    long folder = open_to_read(path), bytes;
    if (folder < 0) {
        COMPLAIN("taskset: cannot obtain the list of tasks: ", error_text(-folder));
        return FAILED;
    }
    int status = 0;
    while ((bytes = call3(CALL_GETDENTS64, folder, (long)entries, sizeof entries)) > 0) {
        /* An entry: inode and offset of 8 bytes, its length in 2, its type in 1, its name. */
        for (long entry = 0; entry < bytes; entry += *(uint16_t *)(entries + entry + 16)) {
            uint64_t thread;
            if (parse_number(entries + entry + 19, &thread) && status == 0)
                status = one(request, thread, wanted);
        }
    }
    return status;
}

static int on_running(const struct request *request, int count, char **arguments)
{
    struct set wanted;
    uint64_t id;
    if (count < 1 || count > 2)
        return usage();
    if (count == 2 && parse(request, arguments[0], &wanted))
        return FAILED;
    const char *text = arguments[count - 1];
    if (!parse_number(text, &id)) {
        COMPLAIN("taskset: invalid PID argument: '", text, "'");
        return FAILED;
    }
    return (request->all ? each : one)(request, id, count == 2 ? &wanted : NULL);
}

static int on_command(const struct request *request, char **arguments)
{
    struct set wanted;
    if (parse(request, arguments[0], &wanted) || set(0, &wanted))
        return FAILED;
    long error = execute(arguments + 1);
    COMPLAIN("taskset: failed to execute ", arguments[1], ": ", error_text(error));
    return error == E_NOENT ? NOT_FOUND : CANNOT_EXECUTE;
}

int taskset(int argc, char **argv)
{
    struct options options = {.command = "taskset", .known = known, .count = COUNT_OF(known), .argc = argc, .argv = argv, .at = 1};
    struct request request = {0};
    bool running = false;
    int option;
    while ((option = next_option(&options)) != NO_MORE_OPTIONS) {
        switch (option) {
        case 'a': request.all = true; break;
        case 'c': request.lists = true; break;
        case 'p': running = true; break;
        case 'h': put_usage(); return 0;
        default: return usage();
        }
    }
    int count = argc - options.at;
    if (running)
        return on_running(&request, count, argv + options.at);
    return count < 2 ? usage() : on_command(&request, argv + options.at);
}
