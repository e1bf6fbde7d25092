/* The hardware barrier's driver, and windows without it. argv[1]: "driver", "closed" or "undefined". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct blade {
    uint8_t cmg, number, unused[2];
    uint32_t size;
    unsigned long *mask;
};
struct window {
    uint8_t blade;
    int8_t number;
};
struct place {
    uint8_t cmg, core;
};

#define ALLOCATE _IOWR('F', 0, struct blade)
#define ASSIGN _IOWR('F', 1, struct window)
#define UNASSIGN _IOW('F', 2, struct window)
#define FREE _IOW('F', 3, struct blade)
#define PLACE _IOR('F', 4, struct place)

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "ok");
}

static void show(const char *name)
{
    char path[100], text[400];
    snprintf(path, sizeof path, "/sys/class/misc/fujitsu_hwb/%s", name);
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s: %s\n", name, strerrorname_np(errno));
        return;
    }
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = c[1] ? ',' : 0;
    printf("%s: %s\n", name, text);
}

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        perror("sched_setaffinity");
}

static struct blade blade_of(cpu_set_t *set, int first, int last)
{
    CPU_ZERO(set);
    for (int cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, set);
    return (struct blade){.size = sizeof *set, .mask = (unsigned long *)set};
}

static void driver(int fd)
{
    cpu_set_t set;
    struct blade blade = blade_of(&set, 12, 12);
    say("one core", ioctl(fd, ALLOCATE, &blade));
    blade = blade_of(&set, 12, 24);
    say("two CMGs", ioctl(fd, ALLOCATE, &blade));
    blade.mask = (unsigned long *)8;
    say("no mask", ioctl(fd, ALLOCATE, &blade));
    blade = blade_of(&set, 24, 25);
    say("two cores", ioctl(fd, ALLOCATE, &blade));
    printf("blade %d of CMG %d\n", blade.number, blade.cmg);

    struct window window = {blade.number, -1};
    say("not bound", ioctl(fd, ASSIGN, &window));
    run_on(25);
    say("assign", ioctl(fd, ASSIGN, &window));
    printf("window %d\n", window.number);
    window.number = 1;
    say("assign again", ioctl(fd, ASSIGN, &window));
    struct place place;
    say("place", ioctl(fd, PLACE, &place));
    printf("core %d of CMG %d\n", place.core, place.cmg);
    say("nowhere", ioctl(fd, PLACE, (struct place *)8));
    say("no such request", ioctl(fd, _IO('F', 9)));

    __asm__ volatile("msr S3_3_C15_C15_0, %0" : : "r"(1L));
    show("hwinfo");
    show("CMG1/core_map");
    show("CMG1/used_bb_bmap");
    show("CMG1/used_bw_bmap");
    show("CMG1/init_sync_bb0");
    show("CMG0/used_bb_bmap");
    say("unassign", ioctl(fd, UNASSIGN, &window));
    say("unassign again", ioctl(fd, UNASSIGN, &window));
    int other = open("/dev/fujitsu_hwb", O_RDONLY);
    say("free of another file", ioctl(other, FREE, &blade));
    say("free", ioctl(fd, FREE, &blade));
    say("free again", ioctl(fd, FREE, &blade));
    show("CMG1/init_sync_bb0");
}

static void closed(int fd)
{
    cpu_set_t set;
    struct blade blade = blade_of(&set, 12, 13);
    struct window window = {0, 0};
    say("allocate", ioctl(fd, ALLOCATE, &blade));
    run_on(12);
    say("assign", ioctl(fd, ASSIGN, &window));
    int second = dup(fd);
    close(fd);
    show("CMG0/used_bb_bmap");
    close(second);
    show("CMG0/used_bb_bmap");
    show("CMG0/used_bw_bmap");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    int fd = open("/dev/fujitsu_hwb", O_RDONLY);
    if (fd < 0) {
        printf("open: %s\n", strerrorname_np(errno));
        return 0;
    }
    struct stat stat;
    fstat(fd, &stat);
    printf("device: %d\n", S_ISCHR(stat.st_mode));
    if (argc > 1 && !strcmp(argv[1], "driver"))
        driver(fd);
    else if (argc > 1 && !strcmp(argv[1], "closed"))
        closed(fd);
    else
        __asm__ volatile("mrs %0, S3_3_C15_C15_0" : "=r"(fd));
    return 0;
}
