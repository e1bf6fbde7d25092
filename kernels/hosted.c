/* What start.S does for the freestanding programs, for those that use the C library. */
#include "runtime.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

long linux_write(int fd, const void *bytes, unsigned long count);
long linux_clock_gettime(int clock, struct timespec *now);
_Noreturn void linux_exit(int status);

long linux_write(int fd, const void *bytes, unsigned long count)
{
    return write(fd, bytes, count);
}

long linux_clock_gettime(int clock, struct timespec *now)
{
    return clock_gettime(clock, now);
}

void linux_exit(int status)
{
    _exit(status);
}

int main(int argc, char **argv)
{
    return program(argc, argv);
}
