// Small benchmarks of graphs, trees, texts, fields and particles, each with a printed checksum. None is in small.c.
// usage: unseen NAME SIZE [ROUNDS]
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 0x2545f4914f6cdd1du;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// A random number below n, from the upper half of the state.
static uint32_t below(uint32_t n) { return (next_random() >> 32) * n >> 32; }

static void *blocks[16];
static size_t block_count;

// Zeroed memory, which main frees.
static void *zeros(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory || block_count == sizeof blocks / sizeof *blocks) {
        fprintf(stderr, "unseen: no memory\n");
        exit(2);
    }
    return blocks[block_count++] = memory;
}

// Breadth-first search over a graph of n vertices with one to eleven edges each, half of them to near vertices.
static double bfs(long n, long rounds) {
    uint32_t *begin = zeros(n + 1, sizeof *begin), *level = zeros(n, sizeof *level), *queue = zeros(n, sizeof *queue);
    for (long i = 0; i < n; i++) begin[i + 1] = begin[i] + 1 + below(11);
    uint32_t *edges = zeros(begin[n], sizeof *edges);
    for (long i = 0; i < n; i++)
        for (uint32_t k = begin[i]; k < begin[i + 1]; k++) edges[k] = k % 2 ? below(n) : (i + 1 + below(64)) % n;
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        memset(level, 0, n * sizeof *level);
        long head = 0, tail = 0;
        queue[tail++] = round % n;
        level[round % n] = 1;
        while (head < tail) {
            uint32_t at = queue[head++];
            sum += level[at];
            for (uint32_t k = begin[at]; k < begin[at + 1]; k++)
                if (!level[edges[k]]) {
                    level[edges[k]] = level[at] + 1;
                    queue[tail++] = edges[k];
                }
        }
    }
    return sum;
}

struct place {
    uint32_t distance, slot;
    uint8_t cost[4];
    char rest[52];
};

// Moves a place up a heap of the nearest ones.
static void rise(struct place *places, uint32_t *heap, uint32_t slot, uint32_t at) {
    while (slot > 1 && places[heap[slot / 2]].distance > places[at].distance) {
        heap[slot] = heap[slot / 2];
        places[heap[slot]].slot = slot;
        slot /= 2;
    }
    heap[slot] = at;
    places[at].slot = slot;
}

// Dijkstra's shortest ways from a corner of an n by n grid, with a binary heap.
static double dijkstra(long n, long rounds) {
    struct place *places = zeros(n * n, sizeof *places);
    uint32_t *heap = zeros(n * n + 1, sizeof *heap);
    for (long i = 0; i < n * n; i++) {
        uint64_t random = next_random();
        for (int side = 0; side < 4; side++) places[i].cost[side] = 1 + (random >> 8 * side & 127);
    }
    const int dx[] = {1, -1, 0, 0}, dy[] = {0, 0, 1, -1};
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < n * n; i++) places[i].distance = UINT32_MAX, places[i].slot = 0;
        uint32_t count = 1, far = 0;
        places[0].distance = 0;
        rise(places, heap, 1, 0);
        while (count > 0) {
            uint32_t at = heap[1], last = heap[count--], slot = 1;
            far = places[at].distance;
            while (2 * slot <= count) {
                uint32_t child = 2 * slot;
                if (child < count && places[heap[child + 1]].distance < places[heap[child]].distance) child++;
                if (places[heap[child]].distance >= places[last].distance) break;
                heap[slot] = heap[child];
                places[heap[slot]].slot = slot;
                slot = child;
            }
            heap[slot] = last;
            places[last].slot = slot;
            for (int side = 0; side < 4; side++) {
                long x = at % n + dx[side], y = at / n + dy[side], next = y * n + x;
                if (x < 0 || y < 0 || x >= n || y >= n) continue;
                uint32_t distance = far + places[at].cost[side];
                if (distance >= places[next].distance) continue;
                if (!places[next].slot) places[next].slot = ++count;
                places[next].distance = distance;
                rise(places, heap, places[next].slot, next);
            }
        }
        sum += far;
    }
    return sum;
}

// The first columns of an LU factorisation of an n by n matrix with partial pivoting, one a round.
static double lu(long n, long rounds) {
    double *a = zeros(n * n, sizeof *a), determinant = 0;
    for (long i = 0; i < n * n; i++) a[i] = below(2001) / 1000.0 - 1;
    for (long k = 0; k < rounds && k < n; k++) {
        long pivot = k;
        for (long i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        for (long j = 0; pivot != k && j < n; j++) {
            double swap = a[k * n + j];
            a[k * n + j] = a[pivot * n + j], a[pivot * n + j] = swap;
        }
        determinant += log(fabs(a[k * n + k]));
        for (long i = k + 1; i < n; i++) {
            double factor = a[i * n + k] /= a[k * n + k];
            for (long j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return determinant;
}

// Conway's game of life on a torus of n rows of n cells, 64 cells a word.
static double life(long n, long rounds) {
    long width = (n + 63) / 64;
    uint64_t *now = zeros(n * width, sizeof *now), *then = zeros(n * width, sizeof *then);
    for (long i = 0; i < n * width; i++) now[i] = next_random() & next_random();
    for (long round = 0; round < rounds; round++) {
        for (long y = 0; y < n; y++) {
            const uint64_t *rows[] = {now + (y + n - 1) % n * width, now + y * width, now + (y + 1) % n * width};
            for (long x = 0; x < width; x++) {
                long before = x ? x - 1 : width - 1, after = x + 1 < width ? x + 1 : 0;
                uint64_t ones[3], twos[3];
                for (int row = 0; row < 3; row++) {
                    uint64_t here = rows[row][x];
                    uint64_t west = here << 1 | rows[row][before] >> 63, east = here >> 1 | rows[row][after] << 63;
                    uint64_t middle = row == 1 ? 0 : here;
                    ones[row] = west ^ east ^ middle;
                    twos[row] = (west & east) | ((west ^ east) & middle);
                }
                uint64_t odd = ones[0] ^ ones[1] ^ ones[2];
                uint64_t carry = (ones[0] & ones[1]) | ((ones[0] ^ ones[1]) & ones[2]);
                uint64_t pair = twos[0] ^ twos[1] ^ twos[2] ^ carry;
                pair &= ~((twos[0] & twos[1]) | (twos[2] & carry));
                then[y * width + x] = pair & (odd | rows[1][x]);
            }
        }
        uint64_t *swap = now;
        now = then, then = swap;
    }
    uint64_t sum = 0;
    for (long i = 0; i < n * width; i++) sum = sum * 3 + now[i];
    return sum >> 40;
}

// Compression of n bytes of text by LZ77, with chains of equal hashes.
static double lz(long n, long rounds) {
    uint8_t *text = zeros(n + 16, 1), *out = zeros(2 * n + 16, 1);
    uint32_t *heads = zeros(32768, sizeof *heads), *chain = zeros(n, sizeof *chain);
    uint8_t words[512][12];
    for (int i = 0; i < 512; i++)
        for (int j = 0; j < 12; j++) words[i][j] = 'a' + below(20);
    for (long i = 0; i < n;) {
        uint32_t pick = below(512), word = pick * pick / 512;
        for (uint32_t j = 0; j < 2 + word % 9 && i < n; j++) text[i++] = words[word][j];
        if (i < n) text[i++] = ' ';
    }
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        long written = 0;
        memset(heads, 0, 32768 * sizeof *heads);
        for (long at = 0; at < n;) {
            long best = 0, from = 0, next = at + 1;
            uint32_t hash = (text[at] | text[at + 1] << 8 | text[at + 2] << 16) * 2654435761u >> 17;
            long candidate = heads[hash];
            for (int tries = 0; candidate && at - candidate < 65535 && tries < 3; tries++) {
                long length = 0;
                while (length < 130 && at + length < n && text[candidate - 1 + length] == text[at + length]) length++;
                if (length > best) best = length, from = candidate - 1;
                candidate = chain[candidate - 1];
            }
            if (best > 3) {
                out[written++] = 128 | (best - 4);
                out[written++] = at - from, out[written++] = (at - from) >> 8;
                next = at + best;
            } else {
                out[written++] = text[at];
            }
            for (; at < next; at++) {
                hash = (text[at] | text[at + 1] << 8 | text[at + 2] << 16) * 2654435761u >> 17;
                chain[at] = heads[hash];
                heads[hash] = at + 1;
            }
        }
        sum += written + out[written / 2];
    }
    return sum;
}

struct record {
    struct record *next;
    uint64_t key;
    char rest[48];
};

static struct record *merged(struct record *a, struct record *b) {
    struct record *first = 0, **end = &first;
    while (a && b) {
        struct record **less = a->key <= b->key ? &a : &b;
        *end = *less;
        end = &(*less)->next;
        *less = (*less)->next;
    }
    *end = a ? a : b;
    return first;
}

// Merge sort of a list of n records of 64 bytes, with other keys each round.
static double merge(long n, long rounds) {
    struct record *records = zeros(n, sizeof *records), *list = 0;
    double sum = 0;
    for (long i = 0; i < n; i++) records[i].next = list, list = &records[i];
    for (long round = 0; round < rounds; round++) {
        struct record *sorted[40] = {0};
        for (struct record *record = list, *next; record; record = next) {
            int level = 0;
            next = record->next;
            record->next = 0;
            record->key = next_random();
            for (; sorted[level]; level++) {
                record = merged(sorted[level], record);
                sorted[level] = 0;
            }
            sorted[level] = record;
        }
        list = 0;
        for (int level = 0; level < 40; level++) list = merged(sorted[level], list);
        sum += list->key % 1000 + list->next->key % 1000;
    }
    return sum;
}

static void sort_names(char **names, long n) {
    while (n > 8) {
        char *swap = names[0], *pivot;
        names[0] = names[n / 2], names[n / 2] = swap;
        pivot = names[0];
        long low = 0, high = n;
        for (;;) {
            do low++; while (low < n && strcmp(names[low], pivot) < 0);
            do high--; while (strcmp(names[high], pivot) > 0);
            if (low >= high) break;
            swap = names[low];
            names[low] = names[high], names[high] = swap;
        }
        names[0] = names[high], names[high] = pivot;
        sort_names(names, high);
        names += high + 1, n -= high + 1;
    }
    for (long i = 1; i < n; i++) {
        char *name = names[i];
        long j = i;
        for (; j > 0 && strcmp(names[j - 1], name) > 0; j--) names[j] = names[j - 1];
        names[j] = name;
    }
}

// Quicksort of n strings, of one of 16 beginnings each, through pointers.
static double names(long n, long rounds) {
    char **all = zeros(n, sizeof *all);
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < n; i++) {
            size_t length = 64 + below(256);
            all[i] = malloc(length + 1);
            if (!all[i]) exit(2);
            memset(all[i], 'x', length);
            memset(all[i], 'a' + below(16), 6);
            for (uint64_t j = 6, random = next_random(); j < 18; j++, random >>= 5) all[i][j] = 'a' + random % 26;
            all[i][length] = 0;
        }
        sort_names(all, n);
        for (long i = 0; i < n; i++) sum += i % 7 * all[i][8], free(all[i]);
    }
    return sum;
}

struct complex { double re, im; };

// Fast Fourier transforms, in place, of n numbers, a power of two.
static double fft(long n, long rounds) {
    struct complex *a = zeros(n, sizeof *a), *roots = zeros(n / 2, sizeof *roots);
    for (long i = 0; i < n; i++) a[i].re = (i * 37 % 101) / 101.0;
    for (long i = 0; i < n / 2; i++) roots[i] = (struct complex){cos(-6.283185307179586 * i / n), sin(-6.283185307179586 * i / n)};
    for (long round = 0; round < rounds; round++) {
        for (long i = 1, j = 0; i < n; i++) {
            long bit = n / 2;
            for (; j & bit; bit /= 2) j ^= bit;
            j ^= bit;
            struct complex swap = a[i];
            if (i < j) a[i] = a[j], a[j] = swap;
        }
        for (long half = 1; half < n; half *= 2)
            for (long i = 0; i < n; i += 2 * half)
                for (long j = 0; j < half; j++) {
                    struct complex root = roots[j * (n / 2 / half)], *x = &a[i + j], *y = x + half;
                    double re = y->re * root.re - y->im * root.im, im = y->re * root.im + y->im * root.re;
                    y->re = x->re - re, y->im = x->im - im;
                    x->re += re, x->im += im;
                }
    }
    double sum = 0;
    for (long i = 0; i < n; i++) sum += fabs(a[i].re) + fabs(a[i].im);
    return sum;
}

enum { DIMENSIONS = 16, MEANS = 4 };

// Means of four groups of n points in 16 dimensions.
static double kmeans(long n, long rounds) {
    float *points = zeros(n * DIMENSIONS, sizeof *points), means[MEANS][DIMENSIONS];
    uint8_t *group = zeros(n, 1);
    for (long i = 0; i < n * DIMENSIONS; i += 8) {
        uint64_t random = next_random();
        for (int j = 0; j < 8; j++) points[i + j] = (random >> 8 * j & 127) + i / 16 * 7 % 4 * 40;
    }
    for (int k = 0; k < MEANS; k++) memcpy(means[k], points + k * DIMENSIONS, sizeof means[k]);
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        float sums[MEANS][DIMENSIONS] = {0}, counts[MEANS] = {0};
        for (long i = 0; i < n; i++) {
            const float *point = points + i * DIMENSIONS;
            float nearest = INFINITY;
            for (int k = 0; k < MEANS; k++) {
                float distance = 0;
                for (int d = 0; d < DIMENSIONS; d++) distance += (point[d] - means[k][d]) * (point[d] - means[k][d]);
                if (distance < nearest) nearest = distance, group[i] = k;
            }
            counts[group[i]]++;
            for (int d = 0; d < DIMENSIONS; d++) sums[group[i]][d] += point[d];
        }
        for (int k = 0; k < MEANS; k++)
            for (int d = 0; d < DIMENSIONS; d++) sum += means[k][d] = sums[k][d] / fmaxf(counts[k], 1);
    }
    return sum;
}

// Metropolis updates at random sites of an n by n Ising lattice, 60,000 a round.
static double ising(long n, long rounds) {
    int32_t *spins = zeros(n * n, sizeof *spins);
    uint32_t accept[5];
    for (int i = 0; i < 5; i++) accept[i] = i < 3 ? UINT32_MAX : UINT32_MAX * exp(-0.44 * (4 * i - 8));
    for (long i = 0; i < n * n; i++) spins[i] = i >> 3 & 1 ? 1 : -1;
    double sum = 0;
    for (long i = 0; i < 60000 * rounds; i++) {
        long x = below(n), y = below(n), at = y * n + x;
        int32_t around = spins[y * n + (x ? x - 1 : n - 1)] + spins[y * n + (x + 1 < n ? x + 1 : 0)];
        around += spins[(y ? y - 1 : n - 1) * n + x] + spins[(y + 1 < n ? y + 1 : 0) * n + x];
        if ((uint32_t)state <= accept[(spins[at] * around + 4) / 2]) {
            spins[at] = -spins[at];
            sum += spins[at] * around;
        }
    }
    return sum;
}

// A Bloom filter of n bytes: 25,000 keys inserted a round, twice as many looked up.
static double bloom(long n, long rounds) {
    uint8_t *bits = zeros(n, 1);
    double found = 0;
    for (long i = 0; i < 75000 * rounds; i++) {
        uint64_t key = (i % 3 ? i : i / 3) * 0x9e3779b97f4a7c15u, hash = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
        uint32_t step = hash | 1, at = hash >> 32;
        int present = 1;
        for (int probe = 0; probe < 4; probe++, at += step) {
            uint64_t bit = (uint64_t)at * (8 * n) >> 32;
            if (i % 3 == 0) bits[bit / 8] |= 1 << bit % 8;
            else if (!(present = bits[bit / 8] >> bit % 8 & 1)) break;
        }
        found += present;
    }
    return found;
}

struct entry {
    uint32_t key, chain, newer, older;
    uint64_t value[6];
};

// 40,000 requests a round to a cache of n entries that gives up the least recently used one.
static double lru(long n, long rounds) {
    uint32_t mask = 1, used = 0;
    while (mask < n) mask *= 2;
    uint32_t *heads = zeros(mask--, sizeof *heads);
    struct entry *entries = zeros(n + 1, sizeof *entries); // the first is the end of both directions
    double sum = 0;
    for (long i = 0; i < 40000 * rounds; i++) {
        uint32_t a = below(3 * n), b = below(3 * n), key = a < b ? a : b, *head = &heads[key * 2654435761u >> 7 & mask];
        uint32_t at = *head;
        while (at && entries[at].key != key) at = entries[at].chain;
        if (at) {
            sum += entries[at].value[0]++;
            entries[entries[at].newer].older = entries[at].older;
            entries[entries[at].older].newer = entries[at].newer;
        } else {
            if (used < n) {
                at = ++used;
            } else {
                at = entries[0].newer;
                uint32_t *link = &heads[entries[at].key * 2654435761u >> 7 & mask];
                while (*link != at) link = &entries[*link].chain;
                *link = entries[at].chain;
                entries[0].newer = entries[at].newer;
                entries[entries[at].newer].older = 0;
            }
            entries[at] = (struct entry){.key = key, .chain = *head, .value = {key % 16}};
            *head = at;
        }
        entries[at].newer = 0;
        entries[at].older = entries[0].older;
        entries[entries[0].older].newer = at;
        entries[0].older = at;
    }
    return sum;
}

// The best value of 30 things that weigh at most n together, from the whole table of partial answers.
static double knapsack(long n, long rounds) {
    uint32_t *table = zeros(31 * (n + 1), sizeof *table), *best = table, weights[30], taken = 0;
    for (long round = 0; round < rounds; round++) {
        best = table;
        for (int i = 0; i < 30; i++, best += n + 1) {
            uint32_t weight = weights[i] = n / 40 + below(n / 6), value = weight + below(n / 12);
            memcpy(best + n + 1, best, weight * sizeof *best);
            for (long room = weight; room <= n; room++) {
                uint32_t with = best[room - weight] + value;
                best[n + 1 + room] = with > best[room] ? with : best[room];
            }
        }
        for (long i = 29, room = n; i >= 0; i--)
            if (table[(i + 1) * (n + 1) + room] != table[i * (n + 1) + room]) taken++, room -= weights[i];
    }
    return best[n] + taken;
}

struct atom {
    double x, y, fx, fy;
    int64_t next, rest[3];
};

// Forces between n particles closer than 1 in a plane with two of them for each unit, through lists of cells.
static double cells(long n, long rounds) {
    long side = sqrt(n / 2.0), first[] = {0, 1, -1, 0, 1};
    struct atom *atoms = zeros(n + 1, sizeof *atoms);
    uint32_t *heads = zeros((side + 2) * (side + 2), sizeof *heads);
    for (long i = 1; i <= n; i++) {
        atoms[i].x = 1 + below(side * 1024) / 1024.0, atoms[i].y = 1 + below(side * 1024) / 1024.0;
        long cell = (long)atoms[i].y * (side + 2) + (long)atoms[i].x;
        atoms[i].next = heads[cell];
        heads[cell] = i;
    }
    double sum = 0;
    for (long round = 0; round < rounds; round++)
        for (long cell = side + 3; cell < (side + 1) * (side + 2) - 1; cell++)
            for (long i = heads[cell]; i; i = atoms[i].next)
                for (int k = 0; k < 5; k++)
                    for (long j = k ? heads[cell + first[k] + (k > 1) * (side + 2)] : atoms[i].next; j; j = atoms[j].next) {
                        double dx = atoms[i].x - atoms[j].x, dy = atoms[i].y - atoms[j].y, square = dx * dx + dy * dy;
                        if (square >= 1) continue;
                        atoms[i].fx += (1 - square) * dx, atoms[i].fy += (1 - square) * dy;
                        atoms[j].fx -= (1 - square) * dx, atoms[j].fy -= (1 - square) * dy;
                    }
    for (long i = 1; i <= n; i++) sum += fabs(atoms[i].fx) + fabs(atoms[i].fy);
    return sum;
}

// Moves n particles through a field with one cell each, and adds their charge to the four nearest points.
static double deposit(long n, long rounds) {
    struct { double x, y, vx, vy; } *particles = zeros(n, sizeof *particles), *p;
    long side = sqrt(n);
    double *charge = zeros((side + 1) * (side + 1), sizeof *charge), *field = zeros((side + 1) * (side + 1), sizeof *field), sum = 0;
    for (long i = 0; i < side * side; i++) field[i] = (i % 9 - 4) / 64.0;
    for (p = particles; p < particles + n; p++) p->x = below(side * 256) / 256.0, p->y = below(side * 256) / 256.0;
    for (long round = 0; round < rounds; round++)
        for (p = particles; p < particles + n; p++) {
            long at = (long)p->y * (side + 1) + (long)p->x;
            p->vx += field[at], p->vy += field[at + 1];
            p->x = fmin(fmax(p->x + p->vx, 0), side - 0.5), p->y = fmin(fmax(p->y + p->vy, 0), side - 0.5);
            double dx = p->x - (long)p->x, dy = p->y - (long)p->y, *point = &charge[(long)p->y * (side + 1) + (long)p->x];
            point[0] += (1 - dx) * (1 - dy), point[1] += dx * (1 - dy);
            point[side + 1] += (1 - dx) * dy, point[side + 2] += dx * dy;
        }
    for (long i = 0; i < side * side; i++) sum += charge[i] * charge[i];
    return sum;
}

// Gauss-Seidel sweeps over an n by n field, in place.
static double seidel(long n, long rounds) {
    double *field = zeros(n * n, sizeof *field), sum = 0;
    for (long i = 0; i < n; i++) field[i] = field[i * n] = i % 10;
    for (long round = 0; round < rounds; round++)
        for (long at = n + 1; at < n * (n - 1); at++)
            field[at] = 0.25 * (field[at - n] + field[at - 1] + field[at + 1] + field[at + n]);
    for (long i = 0; i < n * n; i += n + 1) sum += field[i];
    return sum;
}

// The product of a transposed n by n matrix, itself and a vector, column by column.
static double gram(long n, long rounds) {
    double *a = zeros(n * n, sizeof *a), *x = zeros(n, sizeof *x), *y = zeros(n, sizeof *y);
    for (long i = 0; i < n * n; i++) a[i] = (i & 31) - 15;
    for (long i = 0; i < n; i++) x[i] = 1.0 / (i + 1);
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) y[i] += a[i * n + j] * x[j];
        for (long j = 0; j < n; j++)
            for (long i = 0; i < n; i++) x[j] += a[i * n + j] * y[i] / (n * n);
    }
    return x[0] + x[n / 2] + x[n - 1];
}

struct letter { uint32_t next[26], words; };

// A tree of the letters of n words, in which 20,000 of them a round are looked up.
static double trie(long n, long rounds) {
    struct letter *letters = zeros(10 * n + 1, sizeof *letters);
    char (*words)[12] = zeros(n, sizeof *words);
    uint32_t used = 0;
    double sum = 0;
    for (long i = 0; i < n + 20000 * rounds; i++) {
        char *word = words[i < n ? i : below(n)];
        for (long j = 0, length = 3 + below(8); i < n && j < length; j++) word[j] = 'a' + below(26);
        uint32_t at = 0;
        for (; *word; word++) {
            uint32_t *next = &letters[at].next[*word - 'a'];
            at = *next ? *next : (*next = ++used);
        }
        sum += letters[at].words++;
    }
    return sum + used;
}

// Connected components of n vertices, by union and find, with 50,000 random edges a round.
static double components(long n, long rounds) {
    struct { uint32_t parent, size; } *sets = zeros(n, sizeof *sets);
    double count = n;
    for (long i = 0; i < n; i++) sets[i].parent = i, sets[i].size = 1;
    for (long i = 0; i < 50000 * rounds; i++) {
        uint32_t a = below(n), b = below(n);
        while (sets[a].parent != a) a = sets[a].parent = sets[sets[a].parent].parent;
        while (sets[b].parent != b) b = sets[b].parent = sets[sets[b].parent].parent;
        if (a == b) continue;
        uint32_t large = sets[a].size < sets[b].size ? b : a, small = a ^ b ^ large;
        sets[small].parent = large;
        sets[large].size += sets[small].size;
        count--;
    }
    return count;
}

static const struct { const char *name; double (*run)(long, long); } programs[] = {
    {"bfs", bfs},     {"dijkstra", dijkstra}, {"lu", lu},           {"life", life},     {"lz", lz},       {"merge", merge},
    {"names", names}, {"fft", fft},           {"kmeans", kmeans},   {"ising", ising},   {"bloom", bloom}, {"lru", lru},
    {"cells", cells}, {"knapsack", knapsack}, {"deposit", deposit}, {"seidel", seidel}, {"gram", gram},   {"trie", trie},
    {"components", components},
};

int main(int count, char **words) {
    for (size_t i = 0; count > 2 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(words[1], programs[i].name) == 0) {
            printf("%s %.6g\n", words[1], programs[i].run(atol(words[2]), count > 3 ? atol(words[3]) : 1));
            while (block_count > 0) free(blocks[--block_count]);
            return 0;
        }
    fprintf(stderr, "usage: unseen NAME SIZE [ROUNDS]\n");
    return 1;
}
