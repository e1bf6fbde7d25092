/* The C library: formatted output, allocation, sorting, strings, mathematics. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static jmp_buf back;

static void deep(int n)
{
    volatile char local[256];
    memset((char *)local, n, sizeof local);
    if (n == 0)
        longjmp(back, local[0] + 42);
    deep(n - 1);
}

int main(int argc, char **argv)
{
    printf("%d arguments, last %s\n", argc, argv[argc - 1]);
    printf("%5d|%-5d|%05d|%x|%o|%c|%s|%%\n", 42, 42, 42, 255u, 8u, 'c', "string");
    printf("%.17g %.3e %10.4f %a %Lf\n", 0.1, 12345.678, M_PI, 1.0 / 3, 2.5L);
    printf("%ld %lu %lld %zu %p\n", -1L, ~0UL, INT64_MIN, sizeof(int), (void *)0);

    double *v = malloc(10000 * sizeof *v);
    uint64_t state = 1;
    for (int i = 0; i < 10000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[i] = (double)(state >> 11) / (1ull << 53);
    }
    double sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += v[i] * v[i];
    qsort(v, 10000, sizeof *v, compare);
    printf("%.15g %.15g %.15g %.15g\n", v[0], v[5000], v[9999], sum);

    char *text = NULL;
    for (int i = 1; i <= 20; i++) {
        text = realloc(text, (size_t)i * 100000);
        memset(text + (size_t)(i - 1) * 100000, 'a' + i, 100000);
    }
    unsigned long hash = 5381;
    for (size_t i = 0; i < 2000000; i += 7)
        hash = hash * 33 + (unsigned char)text[i];
    printf("hash %lu\n", hash);
    void *many[1000];
    for (int i = 0; i < 1000; i++)
        many[i] = calloc(1, (size_t)(i * 37 % 5000 + 1));
    for (int i = 0; i < 1000; i += 2)
        free(many[i]);
    for (int i = 0; i < 1000; i += 2)
        many[i] = malloc((size_t)(i * 91 % 9000 + 1));
    printf("%d\n", many[999] != NULL);

    char line[100] = "one,two;three four";
    for (char *t = strtok(line, ",; "); t; t = strtok(NULL, ",; "))
        printf("[%s:%zu]", t, strlen(t));
    printf(" %d %d %s %s\n", strcmp("abc", "abd") < 0, memcmp("x", "x", 1), strstr("haystack", "st"), strchr("a.b", '.'));

    double x[] = { 0.5, 1.0, 2.25, 10.0, 1e-3, 1e10, -0.75 };
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        printf("%.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", sin(x[i]), cos(x[i]), exp(-fabs(x[i])), log(fabs(x[i])),
               sqrt(fabs(x[i])), pow(fabs(x[i]), 1.37), atan2(x[i], 2));
    printf("%.9g %.9g %.9g\n", (double)sinf(1.5f), (double)expf(2.5f), (double)powf(2.5f, 0.3f));
    printf("%g %g %g %d\n", floor(-2.5), fmod(7.5, 2), cbrt(27.0), (int)lround(2.5));
    printf("%g %g %g\n", strtod("1e308", NULL) * 10, strtod("nan", NULL), atof("-0x1.8p3"));
    errno = 0;
    printf("%ld %d\n", strtol("99999999999999999999", NULL, 10), errno == ERANGE);
    int jumped = setjmp(back);
    if (!jumped)
        deep(50);
    printf("longjmp %d\n", jumped);
    char input[100];
    while (fgets(input, sizeof input, stdin))
        printf("read: %s", input);
    fprintf(stderr, "to standard error\n");
    return 17;
}
