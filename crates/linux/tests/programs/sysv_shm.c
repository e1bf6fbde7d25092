/* System V shared memory: segments, keys, attachments, their end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 65536ul
#define KEY 0x5eed

static const char *result(long value)
{
    return value < 0 ? strerrorname_np(errno) : "done";
}

static unsigned long attachments(int id)
{
    struct shmid_ds status;
    return shmctl(id, IPC_STAT, &status) ? 99 : status.shm_nattch;
}

static void of_keys(void)
{
    printf("no such key: %s\n", result(shmget(KEY, PAGE, 0600)));
    int id = shmget(KEY, PAGE + 1, IPC_CREAT | 0640);
    printf("created: %s, the same: %d\n", result(id), shmget(KEY, PAGE, 0) == id);
    printf("exclusive: %s\n", result(shmget(KEY, PAGE, IPC_CREAT | IPC_EXCL | 0600)));
    printf("too large for it: %s\n", result(shmget(KEY, 3 * PAGE, 0600)));
    printf("empty: %s\n", result(shmget(IPC_PRIVATE, 0, 0600)));
    int private[] = {shmget(IPC_PRIVATE, 1, 0600), shmget(IPC_PRIVATE, 1, 0600)};
    printf("without a key twice: %d\n", private[0] != private[1]);
    shmctl(private[0], IPC_RMID, 0), shmctl(private[1], IPC_RMID, 0);
    struct shmid_ds status;
    shmctl(id, IPC_STAT, &status);
    printf("key %x, size %zu, mode %o, attached %lu, creator %d, times %d %d %d\n", status.shm_perm.__key, status.shm_segsz,
           status.shm_perm.mode, status.shm_nattch, status.shm_cpid == getpid(), status.shm_atime == 0, status.shm_dtime == 0,
           status.shm_ctime != 0);
    status.shm_perm.mode = 0604;
    printf("set: %s\n", result(shmctl(id, IPC_SET, &status)));
    shmctl(id, IPC_STAT, &status);
    printf("mode %o\n", status.shm_perm.mode);
    printf("unknown operation: %s\n", result(shmctl(id, 77, &status)));
    printf("unknown segment: %s\n", result(shmctl(id + (1 << 20), IPC_STAT, &status)));
    printf("removed: %s\n", result(shmctl(id, IPC_RMID, 0)));
    printf("again: %s\n", result(shmctl(id, IPC_RMID, 0)));
    printf("its key: %s\n", result(shmget(KEY, PAGE, 0600)));
}

static void of_attachments(void)
{
    int id = shmget(KEY, 2 * PAGE, IPC_CREAT | 0600), status;
    char *first = shmat(id, 0, 0), *second = shmat(id, 0, SHM_RDONLY);
    strcpy(first + PAGE, "shared");
    printf("attached %lu times: %s\n", attachments(id), second + PAGE);
    printf("make the second writable: %s\n", result(mprotect(second, PAGE, PROT_READ | PROT_WRITE)));
    if (!fork()) {
        printf("in a child: %lu\n", attachments(id));
        strcpy(first, "from the child");
        char *third = shmat(id, 0, 0);
        printf("its own: %s, %lu\n", third, attachments(id));
        _exit(shmdt(first));
    }
    wait(&status);
    printf("after it: %lu, %s\n", attachments(id), second);
    printf("where something is: %s\n", result((long)shmat(id, second, 0) == -1 ? -1 : 0));
    printf("over it: %d\n", shmat(id, second, SHM_REMAP) == second);
    printf("not aligned: %s\n", result((long)shmat(id, second + 1, 0) == -1 ? -1 : 0));
    printf("rounded: %d\n", shmat(id, second + 1, SHM_RND | SHM_REMAP) == second);
    printf("detach something else: %s\n", result(shmdt(first + PAGE)));

    printf("removed: %s\n", result(shmctl(id, IPC_RMID, 0)));
    printf("still %lu, %s\n", attachments(id), first + PAGE);
    printf("its key: %s\n", result(shmget(KEY, PAGE, 0600)));
    struct shmid_ds now;
    shmctl(id, IPC_STAT, &now);
    printf("key %x, mode %o\n", now.shm_perm.__key, now.shm_perm.mode);
    munmap(first, PAGE);
    printf("detached: %s\n", result(shmdt(first)));
    printf("again: %s\n", result(shmdt(first)));
    printf("the last: %s\n", result(shmdt(second)));
    printf("gone: %s\n", result(shmctl(id, IPC_STAT, &now)));
}

/* A segment outlives the process that created it. */
static void of_processes(void)
{
    int status;
    if (!fork()) {
        int id = shmget(KEY, PAGE, IPC_CREAT | 0600);
        strcpy(shmat(id, 0, 0), "left behind");
        _exit(0);
    }
    wait(&status);
    int id = shmget(KEY, 0, 0);
    char *at = shmat(id, 0, 0);
    printf("found: %s, attached %lu\n", at, attachments(id));
    shmctl(id, IPC_RMID, 0);
    shmdt(at);
    printf("gone: %d\n", shmctl(id, IPC_STAT, &(struct shmid_ds){}) < 0 && errno == EINVAL);
}

/* Only here: other segments may exist on a host. */
static void of_all(void)
{
    int ids[3], status_of_child;
    for (int i = 0; i < 3; i++) ids[i] = shmget(i ? IPC_PRIVATE : KEY, (i + 1) * PAGE - 5, IPC_CREAT | 0600);
    char *at = shmat(ids[1], 0, 0), line[256];
    at[PAGE] = 1;
    if (!fork()) execl("/proc/self/exe", "attached", "attached", 0);
    wait(&status_of_child);
    printf("attached after another program: %lu\n", attachments(ids[1]));
    struct shm_info use;
    struct shminfo limits;
    struct shmid_ds status;
    int highest = shmctl(0, SHM_INFO, (void *)&use);
    printf("highest %d, used %d, total %lu, resident %lu\n", highest, use.used_ids, use.shm_tot, use.shm_rss);
    highest = shmctl(0, IPC_INFO, (void *)&limits);
    printf("highest %d, smallest %lu, most %lu\n", highest, limits.shmmin, limits.shmmni);
    shmctl(ids[1], IPC_RMID, 0);
    shmdt(at);
    printf("at index 2: %d, at 1: %s\n", shmctl(2, SHM_STAT, &status) == ids[2], result(shmctl(1, SHM_STAT, &status)));
    int again = shmget(IPC_PRIVATE, 1, 0600);
    printf("at index 1 again: %d, another identifier: %d\n", shmctl(1, SHM_STAT, &status) == again, again != ids[1]);
    const char *files[] = {"/proc/sysvipc/shm", "/proc/sys/kernel/shmmax", "/proc/sys/kernel/shmmni"};
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(files[i], "r");
        while (fgets(line, sizeof line, file)) {
            int key, id, used;
            char *time = strstr(line, "600 ");
            if (i == 0 && time && sscanf(line, "%d %d %n", &key, &id, &used) == 2) printf("%d %d %.31s\n", key, id, line + used);
            if (i > 0) printf("%s", line);
        }
        fclose(file);
    }
    long most = 0;
    while (shmget(IPC_PRIVATE, 1, 0600) >= 0) most++;
    printf("then %ld more: %s\n", most, strerrorname_np(errno));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, 0, _IONBF, 0);
    if (argc > 1 && !strcmp(argv[1], "all")) {
        of_all();
    } else if (argc > 1) {
        puts("another program has nothing attached");
    } else {
        of_keys();
        of_attachments();
        of_processes();
    }
    return 0;
}
