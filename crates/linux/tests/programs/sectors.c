/* The window to the ways of L2's sectors and the register of L1's, seen by two threads. argv[1]: CPU of the second. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define READ(name) ({ uint64_t value; __asm__ volatile("mrs %0, " name : "=r"(value)); value; })
#define WRITE(name, value) __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)))
#define L1 "S3_3_C11_C8_2"
#define L2 "S3_3_C15_C8_2"

static void show(const char *who)
{
    printf("%s: L1 %#lx, L2 %#lx\n", who, READ(L1), READ(L2));
}

static void *second(void *argument)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(argument), &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
    sched_yield();
    show("second");
    WRITE(L1, 0x31);
    WRITE(L2, 0x0c02);
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    show("start");
    WRITE(L1, 0x22);
    WRITE(L2, 0x0a04);
    pthread_t thread;
    pthread_create(&thread, NULL, second, argv[1]);
    pthread_join(thread, NULL);
    show("first");
    return 0;
}
