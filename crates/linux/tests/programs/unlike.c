// Processes that execute different amounts of code: each calls more functions than the one before.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned sink;

#define WORK(n) static __attribute__((noinline)) void work##n(unsigned x) { for (unsigned i = 0; i < 60 + n; i++) sink += x ^ i; }
#define EACH(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
EACH(WORK)

int main(void)
{
    for (int process = 0; process < 3; process++) {
        if (fork() == 0) {
            for (unsigned round = 0; round < 300; round++) {
#define CALL(n) if (n <= 4 * (process + 1)) work##n(round);
                EACH(CALL)
            }
            printf("%d %u\n", process, sink);
            return 0;
        }
    }
    while (wait(0) > 0) ;
    return 0;
}
