/* The hardware barrier of CMGs: a blade for each CMG that has threads, window 0 for each thread. */
#ifndef FXSCOPE_KERNELS_BLADES_H
#define FXSCOPE_KERNELS_BLADES_H

#include "threads.h"

enum { CMGS = 4 };

/* The CMG of a thread. */
unsigned cmg_of(unsigned thread);

/* Gets a blade for each CMG that has some of the first `count` threads, or gives them back; ends the program where that cannot
 * be. Returns how many CMGs there are. */
unsigned allocate_blades(unsigned count);
void free_blades(void);

/* The calling thread gets its window, or gives it back. */
void assign_window(unsigned thread);
void unassign_window(unsigned thread);

/* One round at the barrier of the thread's CMG, asking again and again, or asleep until an event (barrier.S). */
void hardware_barrier_poll(void);
void hardware_barrier_wfe(void);

#endif
