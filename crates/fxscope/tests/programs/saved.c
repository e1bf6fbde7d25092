/* Work that is saved and continued: threads or processes, a file that is appended to, one that is written in place, input that is
 * read bit by bit, and output in between. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1 << 11, MOST = 12 };

static unsigned table[MOST][WORDS];
static int workers, rounds, grows;
static pthread_barrier_t together;

static unsigned work(int own, int round) {
    unsigned sum = own;
    for (int i = 0; i < WORDS; i++)
        sum += table[own][i] = table[own][(i * 7 + round) % WORDS] * 5 + i;
    return sum;
}

static void *thread(void *argument) {
    int own = (int)(long)argument;
    for (int round = 0; round < rounds; round++) {
        unsigned sum = work(own, round);
        if (grows) {
            int words = round < 48 ? WORDS : 32 * WORDS;
            unsigned *more = malloc(words * sizeof *more);
            for (int i = 0; i < words; i++)
                sum += more[i] = (sum + i) * 2654435761u ^ (sum >> 7);
        }
        pthread_barrier_wait(&together);
        if (own == 0) {
            char line[64], text[8] = "";
            int bytes = read(0, text, 4);
            printf("round %d %08x %.*s\n", round, sum, bytes > 0 ? bytes : 0, text);
            fflush(stdout);
            int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
            bytes = snprintf(line, sizeof line, "%d\n", round);
            if (write(log, line, bytes) != bytes)
                exit(1);
            close(log);
        }
        pthread_barrier_wait(&together);
    }
    return NULL;
}

static int processes(void) {
    int ends[2], kept = open("sums", O_WRONLY | O_CREAT | O_APPEND, 0600);
    unsigned *shared = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pipe(ends) != 0)
        return 1;
    for (int own = 0; own < workers; own++)
        if (fork() == 0) {
            for (int round = 0; round < rounds; round++) {
                unsigned sum = work(own, round);
                shared[own] = sum;
                if (write(ends[1], &sum, sizeof sum) != sizeof sum)
                    _exit(1);
            }
            _exit(own);
        }
    close(ends[1]);
    unsigned sum, all = 0;
    while (read(ends[0], &sum, sizeof sum) == sizeof sum) {
        all += sum;
        dprintf(kept, "%08x\n", all);
    }
    for (int own = 0, status; own < workers; own++)
        all += wait(&status) > 0 ? (unsigned)WEXITSTATUS(status) + shared[own] : 1000;
    printf("all %08x\n", all);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    workers = atoi(argv[2]);
    rounds = atoi(argv[3]);
    grows = strcmp(argv[1], "grow") == 0;
    if (strcmp(argv[1], "lock") == 0 && lockf(open("locked", O_RDWR | O_CREAT, 0600), F_LOCK, 0) < 0)
        return 3;
    if (strcmp(argv[1], "spoil") == 0)
        printf("spoil %d %d %d %d\n", open(argv[4], O_WRONLY | O_CREAT, 0600) < 0, rename(argv[5], "elsewhere") < 0,
               unlink(argv[4]) < 0, mkdir(argv[6], 0700) < 0);
    if (strcmp(argv[1], "processes") == 0)
        return processes();
    pthread_t threads[MOST];
    pthread_barrier_init(&together, NULL, workers);
    for (int own = 0; own < workers; own++)
        pthread_create(&threads[own], NULL, thread, (void *)(long)own);
    for (int own = 0; own < workers; own++)
        pthread_join(threads[own], NULL);
    return 0;
}
