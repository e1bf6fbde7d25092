/* The moment of inertia of particles. Each is a structure, so that vectors of coordinates must be gathered. -DCURED has an array for each
 * member. */
#include <stdio.h>

#include "fxscope.h"

enum { PARTICLES = 720, PASSES = 50 };

#ifdef CURED
static struct { double x[PARTICLES], y[PARTICLES], mass[PARTICLES], u[PARTICLES], v[PARTICLES], charge[PARTICLES]; } p;
#define OF(i, member) p.member[i]
#else
static struct { double x, y, mass, u, v, charge; } p[PARTICLES];
#define OF(i, member) p[i].member
#endif

static double __attribute__((noipa)) inertia(void)
{
    double sum = 0;
    for (int i = 0; i < PARTICLES; i++)
        sum += OF(i, mass) * (OF(i, x) * OF(i, x) + OF(i, y) * OF(i, y));
    return sum;
}

int main(void)
{
    for (int i = 0; i < PARTICLES; i++)
        OF(i, x) = 1, OF(i, y) = 2, OF(i, mass) = 3;
    double sum = 0;
    FXSCOPE_BEGIN("inertia");
    for (int pass = 0; pass < PASSES; pass++)
        sum += inertia();
    FXSCOPE_END("inertia");
    printf("inertia %.0f\n", sum);
    return sum != 15.0 * PARTICLES * PASSES;
}
