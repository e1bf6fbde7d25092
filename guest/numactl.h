/* What numactl and its display share. */
#ifndef GUEST_NUMACTL_H
#define GUEST_NUMACTL_H

#include "sets.h"

/* Modes of memory policies (Linux, include/uapi/linux/mempolicy.h). */
enum { POLICY_DEFAULT, POLICY_PREFERRED, POLICY_BIND, POLICY_INTERLEAVE, POLICY_LOCAL };

/* Nodes that exist, and processors of a node. */
bool all_nodes(struct set *nodes);
bool cpus_of(unsigned node, struct set *cpus);

/* `numactl --hardware` and `numactl --show`; they return the exit status. */
int show_hardware(void);
int show_policy(void);

#endif
