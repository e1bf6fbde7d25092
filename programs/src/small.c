// Small benchmarks of the kinds that compare languages and data structures, each with a checked or printed result.
// usage: small NAME SIZE [PASSES]
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *zeros(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory) {
        perror("calloc");
        exit(2);
    }
    return memory;
}

struct node { struct node *left, *right; };

static struct node *tree(long depth) {
    struct node *node = zeros(1, sizeof *node);
    if (depth > 0) {
        node->left = tree(depth - 1);
        node->right = tree(depth - 1);
    }
    return node;
}

static double count_nodes(const struct node *node) {
    return node ? 1 + count_nodes(node->left) + count_nodes(node->right) : 0;
}

// Binary trees of this depth.
static double trees(long depth, long passes) {
    double nodes = 0;
    for (long pass = 0; pass < passes; pass++) nodes += count_nodes(tree(depth));
    return nodes;
}

// Primes below n.
static double sieve(long n, long passes) {
    char *composite = zeros(n, 1);
    double primes = 0;
    for (long pass = 0; pass < passes; pass++) {
        memset(composite, 0, n);
        for (long i = 2; i < n; i++) {
            if (composite[i]) continue;
            primes++;
            for (long j = 2 * i; j < n; j += i) composite[j] = 1;
        }
    }
    return primes;
}

// Product of n by n matrices in the order of the textbook.
static double matrices(long n, long passes) {
    double *a = zeros(n * n, sizeof *a), *b = zeros(n * n, sizeof *b), *c = zeros(n * n, sizeof *c);
    for (long i = 0; i < n * n; i++) a[i] = b[i] = i % 7;
    for (long pass = 0; pass < passes; pass++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                double sum = 0;
                for (long k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
                c[i * n + j] += sum;
            }
    return c[n * n - 1];
}

// Transposition of an n by n matrix.
static double transpose(long n, long passes) {
    double *a = zeros(n * n, sizeof *a), *b = zeros(n * n, sizeof *b);
    for (long i = 0; i < n * n; i++) a[i] = i;
    for (long pass = 0; pass < passes; pass++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) b[j * n + i] += a[i * n + j];
    return b[n];
}

// A hash table with open addresses: n insertions, then look-ups.
static double hash(long n, long passes) {
    size_t mask = 1;
    while (mask < 2 * (size_t)n) mask *= 2;
    uint64_t *keys = zeros(mask--, sizeof *keys);
    for (long i = 0; i < n; i++) {
        uint64_t key = next_random() | 1, place = key * 0x9e3779b97f4a7c15u >> 20 & mask;
        while (keys[place]) place = (place + 1) & mask;
        keys[place] = key;
    }
    double found = 0;
    for (long i = 0; i < n * passes; i++) {
        uint64_t key = next_random() | 1, place = key * 0x9e3779b97f4a7c15u >> 20 & mask;
        while (keys[place] && keys[place] != key) place = (place + 1) & mask;
        found += keys[place] == key;
    }
    return found;
}

// Updates at random places of a table.
static double updates(long n, long passes) {
    uint64_t *table = zeros(n, sizeof *table);
    for (long i = 0; i < n * passes; i++) {
        uint64_t value = next_random();
        table[value % n] ^= value;
    }
    return table[0] % 1000;
}

// PageRank of a random graph with eight links a page.
static double ranks(long n, long passes) {
    uint32_t *links = zeros(8 * n, sizeof *links);
    double *now = zeros(n, sizeof *now), *then = zeros(n, sizeof *then);
    for (long i = 0; i < 8 * n; i++) links[i] = next_random() % n;
    for (long i = 0; i < n; i++) now[i] = 1.0 / n;
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 0; i < n; i++) {
            double sum = 0;
            for (long k = 0; k < 8; k++) sum += now[links[8 * i + k]];
            then[i] = 0.15 / n + 0.85 / 8 * sum;
        }
        double *swap = now;
        now = then, then = swap;
    }
    return now[0] * n;
}

// A sum over a list whose nodes lie in random order.
static double list(long n, long passes) {
    struct link { struct link *next; double value; char rest[48]; } *links = zeros(n, sizeof *links);
    uint32_t *order = zeros(n, sizeof *order);
    for (long i = 0; i < n; i++) order[i] = i;
    for (long i = n - 1; i > 0; i--) {
        long j = next_random() % (i + 1);
        uint32_t swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    for (long i = 0; i < n; i++) links[order[i]] = (struct link){.next = i + 1 < n ? &links[order[i + 1]] : 0, .value = i};
    double sum = 0;
    for (long pass = 0; pass < passes; pass++)
        for (struct link *link = &links[order[0]]; link; link = link->next) sum += link->value;
    return sum;
}

// Searches in a sorted array.
static double search(long n, long passes) {
    uint64_t *keys = zeros(n, sizeof *keys);
    for (long i = 0; i < n; i++) keys[i] = 3 * i;
    double found = 0;
    for (long i = 0; i < 20000 * passes; i++) {
        uint64_t key = next_random() % (3 * n);
        long low = 0, high = n;
        while (low < high) {
            long middle = (low + high) / 2;
            if (keys[middle] < key) low = middle + 1; else high = middle;
        }
        found += low < n && keys[low] == key;
    }
    return found;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// qsort of n numbers.
static double sorted(long n, long passes) {
    uint64_t *keys = zeros(n, sizeof *keys);
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 0; i < n; i++) keys[i] = next_random();
        qsort(keys, n, sizeof *keys, ascending);
    }
    return keys[0] < keys[n - 1];
}

// Radix sort of n numbers, eight bits at a time.
static double radix(long n, long passes) {
    uint64_t *from = zeros(n, sizeof *from), *to = zeros(n, sizeof *to);
    for (long i = 0; i < n; i++) from[i] = next_random();
    for (long pass = 0; pass < passes; pass++) {
        size_t begin[257] = {0};
        for (long i = 0; i < n; i++) begin[(from[i] >> 8 * pass & 255) + 1]++;
        for (int i = 0; i < 256; i++) begin[i + 1] += begin[i];
        for (long i = 0; i < n; i++) to[begin[from[i] >> 8 * pass & 255]++] = from[i];
        uint64_t *swap = from;
        from = to, to = swap;
    }
    return from[0] % 256;
}

// Heat in a plate of n by n points.
static double heat(long n, long passes) {
    double *now = zeros(n * n, sizeof *now), *then = zeros(n * n, sizeof *then);
    now[n * n / 2] = 1;
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++) {
                long at = i * n + j;
                then[at] = 0.2 * (now[at] + now[at - 1] + now[at + 1] + now[at - n] + now[at + n]);
            }
        double *swap = now;
        now = then, then = swap;
    }
    return now[n * n / 2];
}

// The edit distance of two strings of n characters, with the whole table.
static double distance(long n, long passes) {
    char *a = zeros(n, 1), *b = zeros(n, 1);
    int32_t *table = zeros((n + 1) * (n + 1), sizeof *table);
    for (long i = 0; i < n; i++) a[i] = next_random() % 4, b[i] = next_random() % 4;
    for (long pass = 0; pass < passes; pass++)
        for (long i = 1; i <= n; i++)
            for (long j = 1; j <= n; j++) {
                int32_t *cell = &table[i * (n + 1) + j];
                int32_t change = cell[-n - 2] + (a[i - 1] != b[j - 1]);
                int32_t drop = cell[-1] < cell[-n - 1] ? cell[-1] + 1 : cell[-n - 1] + 1;
                *cell = change < drop ? change : drop;
            }
    return table[(n + 1) * (n + 1) - 1];
}

// Shortest ways between n places.
static double ways(long n, long passes) {
    float *way = zeros(n * n, sizeof *way);
    for (long i = 0; i < n * n; i++) way[i] = 1 + next_random() % 1000;
    for (long pass = 0; pass < passes; pass++)
        for (long k = 0; k < n; k++)
            for (long i = 0; i < n; i++)
                for (long j = 0; j < n; j++) way[i * n + j] = fminf(way[i * n + j], way[i * n + k] + way[k * n + j]);
    return way[1];
}

// A histogram of random numbers with n classes.
static double histogram(long n, long passes) {
    uint32_t *counts = zeros(n, sizeof *counts);
    for (long i = 0; i < 200000 * passes; i++) counts[next_random() >> 11 & (n - 1)]++;
    double most = 0;
    for (long i = 0; i < n; i++) most = counts[i] > most ? counts[i] : most;
    return most;
}

// n strings of random length, allocated, compared and freed.
static double strings(long n, long passes) {
    char **all = zeros(n, sizeof *all);
    double equal = 0;
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 0; i < n; i++) {
            size_t length = 16 + next_random() % 100;
            all[i] = malloc(length + 1);
            memset(all[i], 'a' + next_random() % 26, length);
            all[i][length] = 0;
        }
        for (long i = 0; i < n; i++) equal += strcmp(all[i], all[next_random() % n]) == 0;
        for (long i = 0; i < n; i++) free(all[i]);
    }
    return equal > 0;
}

static const struct { const char *name; double (*run)(long, long); } programs[] = {
    {"trees", trees},       {"sieve", sieve},   {"matrices", matrices}, {"transpose", transpose}, {"hash", hash},
    {"updates", updates},   {"ranks", ranks},   {"list", list},         {"search", search},       {"sorted", sorted},
    {"radix", radix},       {"heat", heat},     {"distance", distance}, {"ways", ways},           {"histogram", histogram},
    {"strings", strings},
};

int main(int count, char **words) {
    for (size_t i = 0; count > 2 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(words[1], programs[i].name) == 0) {
            printf("%s %.6g\n", words[1], programs[i].run(atol(words[2]), count > 3 ? atol(words[3]) : 1));
            return 0;
        }
    fprintf(stderr, "usage: small NAME SIZE [PASSES]\n");
    return 1;
}
