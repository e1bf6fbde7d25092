/* Sets of processors or memory nodes. */
#ifndef GUEST_SETS_H
#define GUEST_SETS_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_MEMBERS = 1024, SET_WORDS = MOST_MEMBERS / 64 };

struct set {
    uint64_t words[SET_WORDS];
};

bool has(const struct set *set, unsigned member);
void add(struct set *set, unsigned member);
void add_all(struct set *set, const struct set *others);
bool is_empty(const struct set *set);
bool is_within(const struct set *set, const struct set *all);
unsigned count_of(const struct set *set);
unsigned first_of(const struct set *set);

/* Parses numbers and ranges, `0,5,8-11`, a range with a stride as `0-31:2` in addition. */
bool parse_list(const char *text, struct set *set);

/* Parses a list as numactl(8) writes it: `all`, members relative to `all` with `+` in front, all but those of a list with `!`. */
bool parse_choice(const char *text, const struct set *all, struct set *set);

/* Parses a mask in hexadecimal, with or without 0x, as one number or as Linux's 32-bit words with commas between them. */
bool parse_mask(const char *text, struct set *set);

/* Writes a set as `0-3,8`, as a mask, or as its members, each with a blank behind it. */
void put_list(const struct set *set);
void put_mask(const struct set *set);
void put_members(const struct set *set);

/* Reads the set in a file of /sys. Returns whether there is one. */
bool read_list(const char *path, struct set *set);

/* Processors that this process, or thread `id`, may run on. Returns an error number, or 0. */
long get_affinity(long id, struct set *set);
long set_affinity(long id, const struct set *set);

#endif
