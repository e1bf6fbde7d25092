/* Timers: alarms, intervals, values of POSIX timers, timers of CPU time. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms, profiled, last_value, last_code;

static void on_alarm(int signal) { alarms += signal == SIGALRM; }
static void on_profile(int signal) { profiled += signal == SIGPROF; }
static void on_timer(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    alarms++;
    last_value = info->si_value.sival_int;
    last_code = info->si_code;
}
static void on_thread(union sigval value) { alarms += value.sival_int; }

int main(void)
{
    signal(SIGALRM, on_alarm);
    signal(SIGPROF, on_profile);
    alarm(1);
    printf("pause %d %s %d\n", pause(), strerror(errno), (int)alarms);
    alarm(100);
    printf("left %d\n", alarm(0) >= 99);

    struct itimerval interval = { { 0, 20000 }, { 0, 20000 } };
    setitimer(ITIMER_REAL, &interval, NULL);
    while (alarms < 4)
        pause();
    struct itimerval none = { 0 }, old;
    setitimer(ITIMER_REAL, &none, &old);
    printf("interval %ld\n", (long)old.it_interval.tv_usec);
    alarms = 0;
    /* A program that does nothing but compute is interrupted, too. */
    setitimer(ITIMER_REAL, &interval, NULL);
    while (alarms < 2)
        ;
    setitimer(ITIMER_REAL, &none, NULL);
    setitimer(ITIMER_PROF, &interval, NULL);
    while (profiled < 2)
        ;
    setitimer(ITIMER_PROF, &none, NULL);
    printf("computed %d\n", (int)profiled >= 2);

    struct sigaction action = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO };
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77 };
    timer_t timer;
    printf("create %d\n", timer_create(CLOCK_MONOTONIC, &event, &timer));
    struct itimerspec when = { { 0, 5000000 }, { 0, 5000000 } }, left;
    timer_settime(timer, 0, &when, NULL);
    alarms = 0;
    while (alarms < 3)
        pause();
    timer_gettime(timer, &left);
    printf("value %d timer %d left %d\n", (int)last_value, last_code == SI_TIMER, left.it_value.tv_nsec <= 5000000);
    timer_delete(timer);
    printf("deleted %d\n", timer_gettime(timer, &left));

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec++;
    when = (struct itimerspec){ { 0, 0 }, now };
    timer_create(CLOCK_REALTIME, &event, &timer);
    timer_settime(timer, TIMER_ABSTIME, &when, NULL);
    struct timespec longer = { 5, 0 };
    printf("sleep %d", nanosleep(&longer, &longer));
    printf(" left %d\n", longer.tv_sec == 3 || longer.tv_sec == 4);
    timer_delete(timer);

    struct sigevent thread = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread,
                               .sigev_value.sival_int = 5 };
    alarms = 0;
    timer_create(CLOCK_MONOTONIC, &thread, &timer);
    when = (struct itimerspec){ { 0, 0 }, { 0, 1000000 } };
    timer_settime(timer, 0, &when, NULL);
    while (alarms == 0)
        usleep(1000);
    printf("thread %d\n", (int)alarms);
    struct sched_param parameters = { 99 };
    printf("scheduler %d %d %d\n", sched_getscheduler(0), sched_getparam(0, &parameters), parameters.sched_priority);
    printf("priorities %d %d\n", sched_get_priority_min(SCHED_FIFO), sched_get_priority_max(SCHED_FIFO));
    return 0;
}
