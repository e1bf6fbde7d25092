/* perf(1): `stat` and `list`. */
#include "perf.h"

#include "commands.h"
#include "text.h"
#include "system.h"

enum { WRONG = 129 };

static void put_usage(void)
{
    put_text("usage: perf stat [OPTIONS] [--] COMMAND [ARGUMENTS]   counts events while a command runs\n"
             "       perf list                                     lists the events of this machine\n"
             "This is fxscope's own perf. Others of its commands, such as record, need perf in the sysroot.\n");
}

int perf(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "--help";
    if (equal(command, "stat"))
        return perf_stat(argc - 1, argv + 1);
    if (equal(command, "list") && argc == 2)
        return list_events();
    if (equal(command, "--help") || equal(command, "-h") || equal(command, "help")) {
        put_usage();
        return 0;
    }
    COMPLAIN("perf: '", command, "' is not a command of this perf");
    write_to(STANDARD_ERROR);
    put_usage();
    return WRONG;
}
