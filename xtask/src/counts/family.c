// Two children that share a page with their parent: each adds up numbers, the parent adds up theirs.

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    long *sums = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sums == MAP_FAILED) return 1;
    for (int child = 0; child < 2; child++) {
        if (fork() == 0) {
            for (volatile long i = 0; i < 20000; i++) sums[child] += i;
            _exit(0);
        }
    }
    while (wait(0) > 0) {}
    printf("%ld\n", sums[0] + sums[1]);
    return sums[0] + sums[1] == 399980000L ? 0 : 1;
}
