/* numactl(8): runs a command with a memory policy, and with processors of its own. */
#include "numactl.h"

#include "commands.h"
#include "options.h"
#include "system.h"
#include "text.h"

enum { FAILED = 1 };

static const struct option known[] = {
    {'a', "all", 0},        {'i', "interleave", 1},  {'p', "preferred", 1},  {'C', "physcpubind", 1},
    {'N', "cpunodebind", 1}, {'m', "membind", 1},     {'l', "localalloc", 0}, {'s', "show", 0},
    {'H', "hardware", 0},   {'h', "help", 0},
};

/* What the options ask for. */
struct request {
    bool any_cpu;  /* also processors outside the current affinity */
    int policy;    /* -1: none */
    struct set nodes;
    bool binds;
    struct set cpus;
};

static void put_usage(void)
{
    put_text("usage: numactl [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
             "       numactl --show | -s        the policy, processors and nodes of this process\n"
             "       numactl --hardware | -H    the nodes, their processors, memory and distances\n"
             "  --interleave=NODES  | -i NODES  interleave the command's pages over nodes\n"
             "  --membind=NODES     | -m NODES  allocate its memory on these nodes only\n"
             "  --preferred=NODE    | -p NODE   allocate its memory on this node if there is room\n"
             "  --localalloc        | -l        allocate its memory on the node that touches it first\n"
             "  --cpunodebind=NODES | -N NODES  run it on the processors of these nodes\n"
             "  --physcpubind=CPUS  | -C CPUS   run it on these processors\n"
             "  --all               | -a        processors may be outside the present affinity\n"
             "NODES and CPUS are written 4, 4,6, 4-6, all, +0 (relative to those allowed) or !4 (all but).\n");
}

static int usage(void)
{
    write_to(STANDARD_ERROR);
    put_usage();
    write_to(STANDARD_OUTPUT);
    return FAILED;
}

static int invalid(const char *what, const char *value)
{
    COMPLAIN("numactl: ", what, " <", value, "> is invalid");
    return usage();
}

bool all_nodes(struct set *nodes)
{
    return read_list("/sys/devices/system/node/online", nodes);
}

bool cpus_of(unsigned node, struct set *cpus)
{
    char path[64] = "/sys/devices/system/node/node";
    size_t at = length_of(path);
    for (const char *from = number_text(node, false); *from;)
        path[at++] = *from++;
    for (const char *from = "/cpulist"; *from;)
        path[at++] = *from++;
    path[at] = 0;
    return read_list(path, cpus);
}

/* Adds a memory policy; returns 0 or an exit status. */
static int add_policy(struct request *request, int policy, const char *nodes)
{
    struct set all;
    if (request->policy >= 0) {
        COMPLAIN("numactl: only one of --interleave, --membind, --preferred and --localalloc can be given");
        return usage();
    }
    request->policy = policy;
    if (!nodes)
        return 0;
    if (!all_nodes(&all) || !parse_choice(nodes, &all, &request->nodes))
        return invalid("node argument", nodes);
    if (policy == POLICY_PREFERRED && count_of(&request->nodes) != 1)
        return invalid("--preferred takes one node:", nodes);
    return 0;
}

/* Adds the processors of nodes; returns 0 or an exit status. */
static int bind_to_nodes(struct request *request, const char *text)
{
    struct set all, nodes, cpus;
    if (!all_nodes(&all) || !parse_choice(text, &all, &nodes))
        return invalid("node argument", text);
    for (unsigned node = 0; node < MOST_MEMBERS; node++)
        if (has(&nodes, node) && cpus_of(node, &cpus))
            add_all(&request->cpus, &cpus);
    request->binds = true;
    return 0;
}

/* Adds processors; returns 0 or an exit status. */
static int bind_to_cpus(struct request *request, const char *text)
{
    struct set all, cpus;
    bool known_all =
        request->any_cpu ? read_list("/sys/devices/system/cpu/online", &all) : get_affinity(0, &all) == 0;
    if (!known_all || !parse_choice(text, &all, &cpus))
        return invalid("cpu argument", text);
    add_all(&request->cpus, &cpus);
    request->binds = true;
    return 0;
}

/* Sets affinity and policy for the command; returns 0 or an exit status. */
static int apply(const struct request *request)
{
    long error = request->binds ? set_affinity(0, &request->cpus) : 0;
    if (error) {
        COMPLAIN("numactl: sched_setaffinity: ", error_text(error));
        return FAILED;
    }
    if (request->policy >= 0) {
        bool has_nodes = !is_empty(&request->nodes);
        long bits = has_nodes ? MOST_MEMBERS + 1 : 0;
        long set = has_nodes ? (long)&request->nodes : 0;
        error = -call3(CALL_SET_MEMPOLICY, request->policy, set, bits);
    }
    if (error) {
        COMPLAIN("numactl: set_mempolicy: ", error_text(error));
        return FAILED;
    }
    return 0;
}

/* Executes the command behind the options. */
static int run(const struct request *request, char **command)
{
    int status = apply(request);
    if (status)
        return status;
    long error = execute(command);
    COMPLAIN("numactl: execution of `", command[0], "': ", error_text(error));
    return FAILED;
}

int numactl(int argc, char **argv)
{
    struct options options = {.command = "numactl", .known = known, .count = COUNT_OF(known), .argc = argc, .argv = argv, .at = 1};
    struct request request = {.policy = -1};
    int option, status = 0;
    while (status == 0 && (option = next_option(&options)) != NO_MORE_OPTIONS) {
        switch (option) {
        case 'a': request.any_cpu = true; break;
        case 'i': status = add_policy(&request, POLICY_INTERLEAVE, options.value); break;
        case 'm': status = add_policy(&request, POLICY_BIND, options.value); break;
        case 'p': status = add_policy(&request, POLICY_PREFERRED, options.value); break;
        case 'l': status = add_policy(&request, POLICY_LOCAL, NULL); break;
        case 'N': status = bind_to_nodes(&request, options.value); break;
        case 'C': status = bind_to_cpus(&request, options.value); break;
        case 's': return show_policy();
        case 'H': return show_hardware();
        case 'h': put_usage(); return 0;
        default: status = usage();
        }
    }
    if (status)
        return status;
    if (options.at >= argc) {
        COMPLAIN("numactl: no command given");
        return usage();
    }
    return run(&request, argv + options.at);
}
