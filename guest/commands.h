/* The commands: each reads its arguments, its name first, and returns its exit status. */
#ifndef GUEST_COMMANDS_H
#define GUEST_COMMANDS_H

int numactl(int argc, char **argv);
int taskset(int argc, char **argv);
int nproc(int argc, char **argv);
int lscpu(int argc, char **argv);
int perf(int argc, char **argv);

#endif
