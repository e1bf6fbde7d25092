// Leaves an object in shared memory, which a child process writes and the parent reads.

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char name[32], path[64] = "";
    int value = 0;
    int fd = shm_open("/fxscope-test-object", O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return perror("shm_open"), 1;
    if (!fork()) {
        value = 42;
        _exit(write(shm_open("/fxscope-test-object", O_RDWR, 0), &value, sizeof value) != sizeof value);
    }
    wait(0);
    if (pread(fd, &value, sizeof value, 0) != sizeof value) return perror("pread"), 1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, path, sizeof path - 1) < 0) return perror("readlink"), 1;
    printf("%d %s %d\n", value, path, rmdir("/dev/shm"));
}
