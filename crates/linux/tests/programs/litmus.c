/* Litmus tests between two processes that map the same file: message passing, store buffering, load buffering and two pairs of writes,
   each with accesses that order (seq_cst) and with barriers (dmb). Prints for each the rounds, and the outcomes that the architecture
   forbids (Arm Architecture Reference Manual, section B2.3). */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 16, TESTS = 4, FORMS = 2 };
enum { MESSAGE, STORES, LOADS, WRITES };

struct round {
    _Alignas(256) _Atomic int x;
    _Alignas(256) _Atomic int y;
    _Alignas(256) int read[2][2];
};

struct shared {
    _Alignas(256) _Atomic int arrived;
    struct round rounds[TESTS][FORMS][ROUNDS];
};

static int file;

static struct shared *map(void)
{
    return mmap(0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void meet(struct shared *s, int *meetings)
{
    atomic_fetch_add(&s->arrived, 1);
    for (++*meetings; atomic_load(&s->arrived) < 2 * *meetings;) {}
}

#define BARRIER __asm__ volatile("dmb ish" ::: "memory")
#define LOAD(place) (dmb ? atomic_load_explicit(place, memory_order_relaxed) : atomic_load(place))
#define STORE(place, value) \
    (dmb ? atomic_store_explicit(place, value, memory_order_relaxed) : atomic_store(place, value))

static inline __attribute__((always_inline)) void play(struct round *r, int test, int dmb, int who)
{
    _Atomic int *first = who ? &r->y : &r->x, *second = who ? &r->x : &r->y;
    int *read = r->read[who];
    switch (test) {
    case MESSAGE:
        if (who) read[0] = LOAD(first);
        else STORE(first, 1);
        if (dmb) BARRIER;
        if (who) read[1] = LOAD(second);
        else STORE(second, 1);
        break;
    case STORES:
        STORE(first, 1);
        if (dmb) BARRIER;
        read[0] = LOAD(second);
        break;
    case LOADS:
        read[0] = LOAD(first);
        if (dmb) BARRIER;
        STORE(second, 1);
        break;
    case WRITES:
        STORE(first, 1);
        if (dmb) BARRIER;
        STORE(second, 2);
        break;
    }
}

static void play_all(struct shared *s, int who)
{
    int meetings = 0;
    for (int test = 0; test < TESTS; test++)
        for (int i = 0; i < ROUNDS; i++) {
            meet(s, &meetings);
            play(&s->rounds[test][0][i], test, 0, who);
            meet(s, &meetings);
            play(&s->rounds[test][1][i], test, 1, who);
        }
    meet(s, &meetings);
}

static int is_forbidden(const struct round *r, int test)
{
    switch (test) {
    case MESSAGE: return r->read[1][0] == 1 && r->read[1][1] == 0;
    case STORES: return r->read[0][0] == 0 && r->read[1][0] == 0;
    case LOADS: return r->read[0][0] == 1 && r->read[1][0] == 1;
    default: return r->x == 1 && r->y == 1;
    }
}

int main(void)
{
    file = memfd_create("shared", 0);
    if (ftruncate(file, sizeof(struct shared))) return 1;
    struct shared *s = map();
    if (!fork()) {
        play_all(map(), 1);
        _exit(0);
    }
    play_all(s, 0);
    wait(0);
    const char *names[] = {"MP", "SB", "LB", "2+2W"};
    for (int test = 0; test < TESTS; test++)
        for (int form = 0; form < FORMS; form++) {
            int forbidden = 0, played = 0;
            for (int i = 0; i < ROUNDS; i++) {
                const struct round *r = &s->rounds[test][form][i];
                forbidden += is_forbidden(r, test);
                played += r->x | r->y ? 1 : 0;
            }
            printf("%s %s %d %d\n", names[test], form ? "dmb" : "ordered", played, forbidden);
        }
    return 0;
}
