/* Events as perf names them: perf-list(1). */
#include "perf.h"

#include "system.h"
#include "text.h"

#define DEVICES "/sys/bus/event_source/devices/"
/* The PMU of an arm64 processor, whose events need no prefix. */
#define PMU "armv8_pmuv3_0"

enum { MOST_NAME = 128 };

struct known {
    const char *name;
    uint32_t type;
    uint64_t config;
};

static const struct known known[] = {
    {"cpu-cycles", TYPE_HARDWARE, 0},
    {"cycles", TYPE_HARDWARE, 0},
    {"instructions", TYPE_HARDWARE, 1},
    {"cache-references", TYPE_HARDWARE, 2},
    {"cache-misses", TYPE_HARDWARE, 3},
    {"branch-instructions", TYPE_HARDWARE, 4},
    {"branches", TYPE_HARDWARE, 4},
    {"branch-misses", TYPE_HARDWARE, 5},
    {"bus-cycles", TYPE_HARDWARE, 6},
    {"stalled-cycles-frontend", TYPE_HARDWARE, 7},
    {"idle-cycles-frontend", TYPE_HARDWARE, 7},
    {"stalled-cycles-backend", TYPE_HARDWARE, 8},
    {"idle-cycles-backend", TYPE_HARDWARE, 8},
    {"ref-cycles", TYPE_HARDWARE, 9},
    {"cpu-clock", TYPE_SOFTWARE, 0},
    {"task-clock", TYPE_SOFTWARE, 1},
    {"page-faults", TYPE_SOFTWARE, 2},
    {"faults", TYPE_SOFTWARE, 2},
    {"context-switches", TYPE_SOFTWARE, 3},
    {"cs", TYPE_SOFTWARE, 3},
    {"cpu-migrations", TYPE_SOFTWARE, 4},
    {"migrations", TYPE_SOFTWARE, 4},
    {"minor-faults", TYPE_SOFTWARE, 5},
    {"major-faults", TYPE_SOFTWARE, 6},
    {"alignment-faults", TYPE_SOFTWARE, 7},
    {"emulation-faults", TYPE_SOFTWARE, 8},
    {"dummy", TYPE_SOFTWARE, 9},
    {"duration_time", TYPE_ELAPSED, 0},
};

/* Generic events of caches: byte 0 names the cache, byte 1 the operation, byte 2 whether misses are counted. */
static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"};
static const struct {
    const char *all, *misses;
} operations[] = {{"-loads", "-load-misses"}, {"-stores", "-store-misses"}, {"-prefetches", "-prefetch-misses"}};

/* Names of events as they are shown. */
static char names[16384];
static size_t named;

/* Returns a copy of `length` bytes with `suffix` behind them; NULL: there is no room. */
static const char *copy(const char *text, size_t length, const char *suffix)
{
    size_t more = length_of(suffix) + 1;
    if (named + length + more > sizeof names)
        return NULL;
    char *name = names + named;
    for (size_t i = 0; i < length; i++)
        name[i] = text[i];
    for (size_t i = 0; i < more; i++)
        name[length + i] = suffix[i];
    named += length + more;
    return name;
}

/* Reads the first line of a file of a PMU. */
static bool read_of_pmu(const char *pmu, const char *folder, const char *file, char *text, size_t room)
{
    char path[256];
    const char *const parts[] = {DEVICES, pmu, folder, file};
    size_t at = 0;
    for (unsigned part = 0; part < COUNT_OF(parts); part++)
        for (const char *from = parts[part]; *from; from++) {
            if (at == sizeof path - 1)
                return false;
            path[at++] = *from;
        }
    path[at] = 0;
    if (read_file(path, text, room) <= 0)
        return false;
    for (; *text; text++)
        if (*text == '\n')
            *text = 0;
    return true;
}

/* Parses the terms of an event of a PMU: `event=N` or `config=N`. */
static bool parse_terms(const char *terms, struct event *event)
{
    const char *value = after_prefix(terms, "event=");
    value = value ? value : after_prefix(terms, "config=");
    return value && parse_any_number(value, &event->config);
}

/* Finds an event by its name in the folder of a PMU, in any case of letters. */
static bool find_of_pmu(const char *pmu, const char *name, struct event *event)
{
    char terms[MOST_NAME], type[32], lower[MOST_NAME];
    size_t length = 0;
    for (; name[length] && length < sizeof lower - 1; length++)
        lower[length] = (char)(name[length] >= 'A' && name[length] <= 'Z' ? name[length] + 32 : name[length]);
    lower[length] = 0;
    uint64_t number;
    if (!read_of_pmu(pmu, "", "/type", type, sizeof type) || !parse_number(type, &number))
        return false;
    event->type = (uint32_t)number;
    return parse_terms(name, event) ||
           (read_of_pmu(pmu, "/events/", lower, terms, sizeof terms) && parse_terms(terms, event));
}

static bool find_of_cache(const char *name, struct event *event)
{
    for (unsigned cache = 0; cache < COUNT_OF(caches); cache++) {
        const char *rest = after_prefix(name, caches[cache]);
        for (unsigned operation = 0; rest && operation < COUNT_OF(operations); operation++) {
            bool misses = equal(rest, operations[operation].misses);
            if (misses || equal(rest, operations[operation].all)) {
                event->type = TYPE_CACHE;
                event->config = cache | operation << 8 | (uint32_t)misses << 16;
                return true;
            }
        }
    }
    return false;
}

/* Finds what an event counts by its name without modifiers: `PMU/TERMS/`, `rNUMBER`, or a name. */
static bool find(char *name, struct event *event)
{
    char *slash = (char *)find_char(name, '/');
    if (slash) {
        size_t length = length_of(slash + 1);
        *slash = 0;
        slash[length] = 0; /* the second slash */
        return find_of_pmu(name, slash + 1, event);
    }
    for (unsigned i = 0; i < COUNT_OF(known); i++) {
        if (equal(name, known[i].name)) {
            event->type = known[i].type;
            event->config = known[i].config;
            return true;
        }
    }
    const char *digits = name + 1;
    if (name[0] == 'r' && parse_digits(&digits, 16, &event->config) && !*digits) {
        event->type = TYPE_RAW;
        return true;
    }
    return find_of_cache(name, event) || find_of_pmu(PMU, name, event);
}

/* Applies modifiers, `u` and `k`: in which modes the processor counts. Returns whether all are known. */
static bool modify(struct event *event, const char *modifiers, size_t length)
{
    bool user = false, kernel = false;
    for (size_t i = 0; i < length; i++) {
        user |= modifiers[i] == 'u';
        kernel |= modifiers[i] == 'k';
        if (modifiers[i] != 'u' && modifiers[i] != 'k')
            return false;
    }
    if (length) {
        event->not_user = !user;
        event->not_kernel = !kernel;
    }
    return true;
}

/* Returns the end of an event's name. */
static const char *end_of_name(const char *text)
{
    const char *end = text;
    while (*end && *end != ',' && *end != ':' && *end != '{' && *end != '}' && *end != '/')
        end++;
    if (*end != '/')
        return end;
    const char *second = find_char(end + 1, '/');
    return second ? second + 1 : end;
}

/* Returns the end of what follows a colon, or a name in slashes. */
static const char *end_of_modifiers(const char *text)
{
    while (*text >= 'a' && *text <= 'z')
        text++;
    return text;
}

/* Adds the event at `*text`, and moves `*text` behind it. */
static bool add_event(struct events *events, const char **text, int leader, bool user_only)
{
    char name[MOST_NAME];
    const char *start = *text, *end = end_of_name(start);
    size_t length = (size_t)(end - start);
    bool in_slashes = length && end[-1] == '/';
    const char *modifiers = end + (*end == ':');
    bool has_modifiers = *end == ':' || in_slashes;
    const char *behind = has_modifiers ? end_of_modifiers(modifiers) : end;
    if (events->count == MOST_EVENTS || !length || length >= sizeof name)
        return false;
    for (size_t i = 0; i <= length; i++)
        name[i] = i < length ? start[i] : 0;
    struct event *event = &events->list[events->count];
    *event = (struct event){.leader = leader, .file = -1};
    if (!find(name, event) || !modify(event, modifiers, (size_t)(behind - modifiers)))
        return false;
    const char *suffix = "";
    if (user_only && behind == modifiers && event->type != TYPE_ELAPSED) {
        event->not_kernel = true;
        suffix = in_slashes ? "u" : ":u";
    }
    event->name = copy(start, (size_t)(behind - start), suffix);
    events->count++;
    *text = behind;
    return event->name != NULL;
}

/* Adds a group, from its opening brace on. */
static bool add_group(struct events *events, const char **text, bool user_only)
{
    unsigned first = events->count;
    do {
        (*text)++;
        int leader = events->count == first ? -1 : (int)first;
        if (!add_event(events, text, leader, user_only))
            return false;
    } while (**text == ',');
    if (**text != '}')
        return false;
    (*text)++;
    const char *modifiers = *text + (**text == ':');
    const char *behind = **text == ':' ? end_of_modifiers(modifiers) : modifiers;
    for (unsigned i = first; i < events->count; i++)
        if (!modify(&events->list[i], modifiers, (size_t)(behind - modifiers)))
            return false;
    *text = behind;
    return true;
}

/* Reports an event that there is not. */
static void complain_of(const char *event)
{
    const char *digits = after_prefix(event, "0x");
    if (digits)
        COMPLAIN("perf: event syntax error: '", event, "'; the number of an event is hexadecimal behind an r: r", digits);
    else
        COMPLAIN("perf: event syntax error or unknown event: '", event, "'; perf list shows those of this machine");
}

bool add_events(struct events *events, const char *text, bool user_only)
{
    for (const char *at = text;; at++) {
        const char *start = at;
        bool added = *at == '{' ? add_group(events, &at, user_only) : add_event(events, &at, -1, user_only);
        if (!added || (*at && *at != ',')) {
            complain_of(*start ? start : text);
            return false;
        }
        if (!*at)
            return true;
    }
}

static void list_of_pmu(void)
{
    char entries[4096];
    long folder = open_to_read(DEVICES PMU "/events"), bytes;
    while (folder >= 0 && (bytes = call3(CALL_GETDENTS64, folder, (long)entries, sizeof entries)) > 0) {
        /* An entry: inode and offset of 8 bytes, its length in 2, its type in 1, its name. */
        for (long entry = 0; entry < bytes; entry += *(uint16_t *)(entries + entry + 16)) {
            const char *name = entries + entry + 19;
            if (name[0] == '.')
                continue;
            put_text("  " PMU "/");
            put_text(name);
            put_text("/\n");
        }
    }
}

int list_events(void)
{
    put_text("Generic events:\n");
    for (unsigned i = 0; i < COUNT_OF(known); i++) {
        put_text("  ");
        put_text(known[i].name);
        put_char('\n');
    }
    put_text("Generic events of caches: CACHE-OPERATION, such as L1-dcache-load-misses, dTLB-loads\n"
             "Numbers: rHEX, such as r11\n"
             "Events of the machine, also by the name alone:\n");
    list_of_pmu();
    return 0;
}
