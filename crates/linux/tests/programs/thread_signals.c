/* Signals and threads: directed ones, process-wide ones, masks, alternate stacks, waiting for signals. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_t main_thread, worker;
static volatile sig_atomic_t by_main, by_worker, on_stack;
static sem_t ready;
static __thread char *stack_low;

static void count(int signal)
{
    (void)signal;
    if (pthread_equal(pthread_self(), main_thread))
        by_main++;
    else
        by_worker++;
}

static void on_alternate(int signal)
{
    char here;
    (void)signal;
    on_stack = stack_low && &here > stack_low && &here < stack_low + 65536;
}

static void *wait_for_signals(void *argument)
{
    static char alternate[65536];
    stack_low = alternate;
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    sigaltstack(&stack, NULL);
    sem_post(&ready);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    siginfo_t info;
    while (sigwaitinfo(&set, &info) != SIGTERM)
        ;
    printf("worker: signal %d code %d from itself %d\n", info.si_signo, info.si_code, info.si_pid == getpid());
    sem_post(&ready);
    struct timespec hour = { 3600, 0 }, left;
    int result = nanosleep(&hour, &left);
    printf("sleep %d %s left %d\n", result, strerror(errno), left.tv_sec >= 3500 && left.tv_sec <= 3600);
    return argument;
}

static void *raise_usr1(void *argument)
{
    pthread_kill(main_thread, SIGUSR1);
    return argument;
}

int main(void)
{
    main_thread = pthread_self();
    sem_init(&ready, 0, 0);
    struct sigaction action = { .sa_handler = count }, stack = { .sa_handler = on_alternate, .sa_flags = SA_ONSTACK };
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &stack, NULL);
    sigset_t term, old;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &old);
    pthread_create(&worker, NULL, wait_for_signals, NULL);
    sem_wait(&ready);
    kill(getpid(), SIGTERM);
    sem_wait(&ready);
    usleep(200000); /* the worker sleeps by now */
    pthread_kill(worker, SIGUSR2);
    pthread_join(worker, NULL);
    printf("alternate stack %d\n", (int)on_stack);

    /* The first thread takes a process-wide signal unless it blocks it. */
    kill(getpid(), SIGUSR1);
    printf("main %d worker %d\n", (int)by_main, (int)by_worker);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    pthread_t sender;
    pthread_create(&sender, NULL, raise_usr1, NULL);
    pthread_join(sender, NULL);
    sigset_t pending;
    sigpending(&pending);
    printf("pending %d main %d\n", sigismember(&pending, SIGUSR1), (int)by_main);
    sigset_t none;
    sigemptyset(&none);
    printf("suspend %d %s main %d\n", sigsuspend(&none), strerror(errno), (int)by_main);

    /* Real-time signals queue, in order, with their values. */
    sigset_t realtime;
    sigemptyset(&realtime);
    sigaddset(&realtime, SIGRTMIN);
    sigaddset(&realtime, SIGRTMIN + 1);
    pthread_sigmask(SIG_BLOCK, &realtime, NULL);
    union sigval value;
    for (int i = 0; i < 3; i++) {
        value.sival_int = 10 + i;
        sigqueue(getpid(), SIGRTMIN + (i == 0), value);
    }
    for (int i = 0; i < 3; i++) {
        siginfo_t info;
        sigwaitinfo(&realtime, &info);
        printf("queued: %d value %d code %d\n", info.si_signo - SIGRTMIN, info.si_value.sival_int, info.si_code);
    }
    struct timespec soon = { 0, 1000000 };
    printf("timed wait %d %s\n", sigtimedwait(&realtime, NULL, &soon), strerror(errno));
    return 0;
}
