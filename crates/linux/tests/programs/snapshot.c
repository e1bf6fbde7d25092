/* Uses everything that a snapshot must store: threads that wait for each other, a child process, a pipe with
 * contents, a file in memory that is mapped twice, a System V segment that is attached and removed, duplicated descriptors, a signal that is pending, a timer, memory from brk and
 * mmap, and vectors. What it prints depends on none of the times at which these happen. */
#define _GNU_SOURCE
#include <arm_sve.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 300, WORDS = 40000, ELEMENTS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static volatile sig_atomic_t alarms, wanted;

static void on_alarm(int signal) { alarms += signal == SIGALRM; }
static void on_wanted(int signal) { wanted += signal == SIGUSR1; }

static double vectors(double start) {
    static double data[ELEMENTS];
    svfloat64_t sum = svdup_f64(start);
    for (uint64_t i = 0; i < ELEMENTS; i += svcntd()) {
        svbool_t some = svwhilelt_b64(i, (uint64_t)ELEMENTS);
        svfloat64_t value = svadd_f64_x(some, svld1_f64(some, &data[i]), svdup_f64(0.5));
        sum = svadd_f64_m(some, sum, value);
    }
    return svaddv_f64(svptrue_b64(), sum);
}

static void *take_turns(void *argument) {
    int own = (int)(intptr_t)argument;
    double *result = malloc(sizeof(double));
    *result = own;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        while (turn % THREADS != own)
            pthread_cond_wait(&changed, &lock);
        turn++;
        *result = vectors(*result / 8);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return result;
}

static int child(int from, uint32_t *shared, uint32_t *attached) {
    uint32_t words[100], sum = 0;
    ssize_t bytes;
    while ((bytes = read(from, words, sizeof words)) > 0)
        for (ssize_t i = 0; i < bytes / 4; i++)
            sum += words[i];
    shared[1] = attached[0] = sum;
    return 17;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = on_wanted;
    sigaction(SIGUSR1, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    struct itimerval often = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, NULL);

    int text = open(argv[argc - 1], O_RDONLY), copy = dup(text);
    char first[5] = "", second[5] = "";
    read(text, first, 4);

    int memory = memfd_create("words", 0), ends[2];
    ftruncate(memory, 1 << 16);
    uint32_t *shared = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    uint32_t *again = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    int segment = shmget(IPC_PRIVATE, 1 << 17, 0600);
    uint32_t *attached = shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
    pipe(ends);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        exit(child(ends[0], shared, attached));
    }
    close(ends[0]);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_turns, (void *)(intptr_t)i);
    printf("started\n");
    fflush(stdout);

    uint32_t *grown = malloc(4096);
    for (uint32_t i = 0; i < WORDS; i++) {
        if (i % 1024 == 0)
            grown = realloc(grown, 4 * (i + 1024));
        grown[i] = i;
        if (write(ends[1], &grown[i], 4) != 4)
            return 1;
    }
    close(ends[1]);
    double sum = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += *(double *)result;
    }
    int status;
    waitpid(pid, &status, 0);
    read(copy, second, 4);
    often = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    int before = wanted;
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    msync(shared, 1 << 16, MS_SYNC);
    uint32_t written[2];
    pread(memory, written, sizeof written, 0);
    struct shmid_ds state;
    printf("again %u, attached %u %d\n", again[1], attached[0], shmctl(segment, IPC_STAT, &state) == 0 && state.shm_nattch == 1);
    printf("%s %s, child %d, sums %u %u %.6f, signals %d %d, alarms %s\n", first, second, WEXITSTATUS(status), shared[1],
           written[1], sum, before, (int)wanted, alarms > 3 ? "many" : "few");
    return 3;
}
