/* One program for all commands: the name by which it is called says which it is. */
#include "commands.h"

#include "system.h"
#include "text.h"

_Noreturn void begin(int argc, char **argv, char **variables);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"numactl", numactl},
    {"taskset", taskset},
    {"nproc", nproc},
    {"lscpu", lscpu},
    {"perf", perf},
};

enum { UNKNOWN = 127 };

/* Returns the part of a path behind its last slash. */
static const char *file_name(const char *path)
{
    for (const char *slash = find_char(path, '/'); slash; slash = find_char(path, '/'))
        path = slash + 1;
    return path;
}

_Noreturn void begin(int argc, char **argv, char **variables)
{
    environment = variables;
    const char *name = argc > 0 ? file_name(argv[0]) : "";
    for (unsigned i = 0; i < COUNT_OF(commands); i++) {
        if (equal(name, commands[i].name)) {
            int status = commands[i].run(argc, argv);
            flush();
            leave(status);
        }
    }
    COMPLAIN("fxscope has no command '", name, "'");
    leave(UNKNOWN);
}
