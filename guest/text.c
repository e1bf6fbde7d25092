#include "text.h"

#include "system.h"

/* The compiler calls these for structures and arrays. */
void *memset(void *at, int value, size_t bytes);
void *memcpy(void *to, const void *from, size_t bytes);

void *memset(void *at, int value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)at)[i] = (unsigned char)value;
    return at;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return to;
}

size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

bool equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool equal_in_any_case(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) == lower(*b);
}

const char *find_char(const char *text, char wanted)
{
    while (*text && *text != wanted)
        text++;
    return *text ? text : NULL;
}

const char *after_prefix(const char *text, const char *prefix)
{
    while (*prefix)
        if (*text++ != *prefix++)
            return NULL;
    return text;
}

/* Returns the value of a digit, or a large number. */
static unsigned digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c = lower(c);
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
}

bool parse_digits(const char **text, unsigned base, uint64_t *value)
{
    const char *start = *text;
    uint64_t number = 0;
    for (; digit(**text) < base; (*text)++) {
        if (number > (UINT64_MAX - digit(**text)) / base)
            return false;
        number = number * base + digit(**text);
    }
    *value = number;
    return *text != start;
}

bool parse_number(const char *text, uint64_t *value)
{
    return parse_digits(&text, 10, value) && !*text;
}

bool parse_any_number(const char *text, uint64_t *value)
{
    const char *hexadecimal = after_prefix(text, "0x");
    if (!hexadecimal)
        return parse_number(text, value);
    return parse_digits(&hexadecimal, 16, value) && !*hexadecimal;
}

static char buffer[4096];
static size_t buffered;
static int output = STANDARD_OUTPUT;

void flush(void)
{
    for (size_t written = 0; written < buffered;) {
        long bytes = call3(CALL_WRITE, output, (long)(buffer + written), (long)(buffered - written));
        if (bytes <= 0)
            break;
        written += (size_t)bytes;
    }
    buffered = 0;
}

void write_to(int file)
{
    flush();
    output = file;
}

void put_char(char c)
{
    if (buffered == sizeof buffer)
        flush();
    buffer[buffered++] = c;
}

void put_text(const char *text)
{
    while (*text)
        put_char(*text++);
}

static void put_blanks(size_t length, unsigned width)
{
    for (; length < width; length++)
        put_char(' ');
}

void put_left(const char *text, unsigned width)
{
    put_text(text);
    put_blanks(length_of(text), width);
}

void put_right(const char *text, unsigned width)
{
    put_blanks(length_of(text), width);
    put_text(text);
}

void put_number(uint64_t value)
{
    put_text(number_text(value, false));
}

void put_fixed(double value, unsigned digits)
{
    put_text(fixed_text(value, digits));
}

const char *number_text(uint64_t value, bool grouped)
{
    static char text[32];
    char *at = text + sizeof text - 1;
    unsigned digits = 0;
    do {
        if (grouped && digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + value % 10);
        value /= 10;
        digits++;
    } while (value);
    return at;
}

const char *fixed_text(double value, unsigned digits)
{
    static char text[48];
    uint64_t scale = 1;
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    uint64_t whole = (uint64_t)value;
    uint64_t part = (uint64_t)((value - (double)whole) * (double)scale + 0.5);
    if (part == scale) {
        part = 0;
        whole++;
    }
    char *at = text;
    for (const char *from = number_text(whole, false); *from;)
        *at++ = *from++;
    if (digits)
        *at++ = '.';
    for (scale /= 10; scale; scale /= 10)
        *at++ = (char)('0' + part / scale % 10);
    *at = 0;
    return text;
}

void complain(const char *const *parts)
{
    write_to(STANDARD_ERROR);
    for (; *parts; parts++)
        put_text(*parts);
    put_char('\n');
    write_to(STANDARD_OUTPUT);
}
