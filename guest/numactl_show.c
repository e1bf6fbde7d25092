/* The displays of numactl(8). */
#include "numactl.h"

#include "system.h"
#include "text.h"

/* Bits of get_mempolicy(2). */
enum { GET_NODE = 1, GET_ALLOWED = 4 };

static const char *const names[] = {"default", "preferred", "bind", "interleave", "local"};

/* Writes the path of a file of a node. */
static void path_of(unsigned node, const char *file, char *path)
{
    size_t at = 0;
    for (const char *from = "/sys/devices/system/node/node"; *from;)
        path[at++] = *from++;
    for (const char *from = number_text(node, false); *from;)
        path[at++] = *from++;
    while (*file)
        path[at++] = *file++;
    path[at] = 0;
}

/* Returns the KiB behind a name in a node's meminfo. */
static uint64_t kib_of(const char *text, const char *name)
{
    uint64_t value = 0;
    for (; text && *text; text = find_char(text, '\n')) {
        text += *text == '\n';
        const char *at = text;
        while (*at && *at != '\n' && !after_prefix(at, name))
            at++;
        const char *number = after_prefix(at, name);
        if (!number)
            continue;
        while (*number == ' ')
            number++;
        parse_digits(&number, 10, &value);
        break;
    }
    return value;
}

static void show_node(unsigned node)
{
    char path[96], text[2048];
    struct set cpus = {0};
    cpus_of(node, &cpus);
    put_text("node ");
    put_number(node);
    put_text(" cpus: ");
    put_members(&cpus);
    path_of(node, "/meminfo", path);
    if (read_file(path, text, sizeof text) < 0)
        text[0] = 0;
    static const char *const fields[][2] = {{" size: ", "MemTotal:"}, {" free: ", "MemFree:"}};
    for (unsigned i = 0; i < COUNT_OF(fields); i++) {
        put_text("\nnode ");
        put_number(node);
        put_text(fields[i][0]);
        put_number(kib_of(text, fields[i][1]) / 1024);
        put_text(" MB");
    }
    put_char('\n');
}

static void show_distances(const struct set *nodes)
{
    char path[96], text[256];
    put_text("node distances:\nnode ");
    for (unsigned node = 0; node < MOST_MEMBERS; node++) {
        if (has(nodes, node)) {
            put_right(number_text(node, false), 3);
            put_char(' ');
        }
    }
    put_char('\n');
    for (unsigned node = 0; node < MOST_MEMBERS; node++) {
        if (!has(nodes, node))
            continue;
        put_right(number_text(node, false), 3);
        put_text(": ");
        path_of(node, "/distance", path);
        const char *at = read_file(path, text, sizeof text) > 0 ? text : "";
        for (uint64_t distance; parse_digits(&at, 10, &distance); at += *at == ' ') {
            put_right(number_text(distance, false), 3);
            put_char(' ');
        }
        put_char('\n');
    }
}

int show_hardware(void)
{
    struct set nodes;
    if (!all_nodes(&nodes)) {
        COMPLAIN("numactl: no NUMA support available on this system.");
        return 1;
    }
    put_text("available: ");
    put_number(count_of(&nodes));
    put_text(" nodes (");
    put_list(&nodes);
    put_text(")\n");
    for (unsigned node = 0; node < MOST_MEMBERS; node++)
        if (has(&nodes, node))
            show_node(node);
    show_distances(&nodes);
    return 0;
}

static void put_set(const char *name, const struct set *set)
{
    put_text(name);
    put_text(": ");
    put_members(set);
    put_char('\n');
}

int show_policy(void)
{
    int mode = POLICY_DEFAULT, next = 0;
    struct set nodes = {0}, allowed = {0}, cpus = {0}, nodes_of_cpus = {0}, of_node, all;
    call(CALL_GET_MEMPOLICY, (long)&mode, (long)&nodes, MOST_MEMBERS, 0, 0, 0);
    call(CALL_GET_MEMPOLICY, 0, (long)&allowed, MOST_MEMBERS, 0, GET_ALLOWED, 0);
    get_affinity(0, &cpus);
    put_text("policy: ");
    put_text((unsigned)mode < COUNT_OF(names) ? names[mode] : "unknown");
    put_text("\npreferred node: ");
    if (mode == POLICY_INTERLEAVE && call(CALL_GET_MEMPOLICY, (long)&next, 0, 0, 0, GET_NODE, 0) == 0) {
        put_number((unsigned)next);
        put_text(" (interleave next)");
    } else if ((mode == POLICY_PREFERRED || mode == POLICY_BIND) && !is_empty(&nodes)) {
        put_number(first_of(&nodes));
    } else {
        put_text("current");
    }
    put_char('\n');
    if (mode == POLICY_INTERLEAVE)
        put_set("interleavemask", &nodes);
    put_set("physcpubind", &cpus);
    for (unsigned node = 0; all_nodes(&all) && node < MOST_MEMBERS; node++) {
        if (!has(&all, node) || !cpus_of(node, &of_node))
            continue;
        for (unsigned i = 0; i < SET_WORDS; i++)
            if (of_node.words[i] & cpus.words[i])
                add(&nodes_of_cpus, node);
    }
    put_set("cpubind", &nodes_of_cpus);
    put_set("nodebind", &nodes_of_cpus);
    put_set("membind", mode == POLICY_BIND ? &nodes : &allowed);
    return 0;
}
