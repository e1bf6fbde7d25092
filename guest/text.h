/* Strings, numbers, and text output through a buffer. */
#ifndef GUEST_TEXT_H
#define GUEST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

size_t length_of(const char *text);
bool equal(const char *a, const char *b);
/* The same whatever the case of letters. */
bool equal_in_any_case(const char *a, const char *b);
/* Returns the first `wanted` in a text, or NULL. */
const char *find_char(const char *text, char wanted);
/* Returns the rest of a text that begins with `prefix`, or NULL. */
const char *after_prefix(const char *text, const char *prefix);

/* Parses the digits at `*text` in a base of 10 or 16, and moves `*text` behind them. Returns whether there is a number that fits. */
bool parse_digits(const char **text, unsigned base, uint64_t *value);
/* Parses a whole text as a decimal number. */
bool parse_number(const char *text, uint64_t *value);
/* Parses a whole text as a number, hexadecimal with 0x in front. */
bool parse_any_number(const char *text, uint64_t *value);

/* What is written goes to this file from now on. */
void write_to(int file);
void put_char(char c);
void put_text(const char *text);
/* Text in a field of this many characters, at its left or right end. */
void put_left(const char *text, unsigned width);
void put_right(const char *text, unsigned width);
void put_number(uint64_t value);
/* A number with this many digits after the point, rounded. */
void put_fixed(double value, unsigned digits);
/* Writes the buffer out. */
void flush(void);

/* The same numbers as strings, in a buffer that the next call overwrites: with commas between thousands if `grouped`. */
const char *number_text(uint64_t value, bool grouped);
const char *fixed_text(double value, unsigned digits);

/* Writes `parts`, ended by NULL, and a line feed to standard error. */
void complain(const char *const *parts);
#define COMPLAIN(...) complain((const char *const[]){__VA_ARGS__, NULL})

#endif
