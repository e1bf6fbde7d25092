/* Threads acquire a lock in the order of arrival (a ticket lock), and increment a counter inside. */
#include "threads.h"

enum { WAITING, THREADS, ROUNDS };
enum { POLL, WFE };

static struct option options[] = {
    [WAITING] = {"waiting", POLL, 0, 0, "poll|wfe"},
    [THREADS] = {"threads", 4, 1, MAX_THREADS, NULL},
    [ROUNDS] = {"rounds", 100, 1, 1000000000, NULL},
};

/* Each on a separate line. */
static struct {
    _Alignas(LINE) uint64_t next_ticket;
    _Alignas(LINE) uint64_t now_served;
} lock;
static _Alignas(LINE) uint64_t count;

/* lock.S */
uint64_t take_ticket_and_poll(uint64_t *next_ticket, uint64_t *now_served);
uint64_t take_ticket_and_sleep(uint64_t *next_ticket, uint64_t *now_served);
void serve_next(uint64_t *now_served, uint64_t ticket);

static void take_turns(unsigned thread)
{
    bool sleeps = options[WAITING].value == WFE;
    measure_begin_together(thread, "lock");
    for (uint64_t i = 0; i < options[ROUNDS].value; i++) {
        uint64_t ticket = sleeps ? take_ticket_and_sleep(&lock.next_ticket, &lock.now_served)
                                 : take_ticket_and_poll(&lock.next_ticket, &lock.now_served);
        /* Not atomic: the lock excludes the others. */
        *(volatile uint64_t *)&count += 1;
        serve_next(&lock.now_served, ticket);
    }
    measure_end_together(thread);
}

int program(int argc, char **argv)
{
    argc = choose_cpus(argc, argv);
    parse_options(argc, argv, options, COUNT_OF(options));
    run_threads((unsigned)options[THREADS].value, take_turns);
    return finish(count == options[THREADS].value * options[ROUNDS].value, options, COUNT_OF(options));
}
