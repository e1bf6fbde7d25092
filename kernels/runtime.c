#include "runtime.h"

#include "fxscope_roi.h"

struct timespec {
    int64_t seconds, nanoseconds;
};

long linux_write(int fd, const void *bytes, unsigned long count);
long linux_clock_gettime(int clock, struct timespec *now);
_Noreturn void linux_exit(int status);

enum { STANDARD_OUTPUT = 1, STANDARD_ERROR = 2, CLOCK_MONOTONIC = 1 };

/* Text is buffered here and written with one system call. */
static char line[512];
static size_t line_length;

static bool show_time;
static struct timespec started;
static uint64_t elapsed_ns;

static void put_char(char c)
{
    if (line_length < sizeof line)
        line[line_length++] = c;
}

static void put_text(const char *text)
{
    while (*text)
        put_char(*text++);
}

static void put_number(uint64_t value)
{
    char digits[20];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        put_char(digits[--n]);
}

/* Returns the word with this index in "a|b|c". */
static void put_word(const char *words, uint64_t index)
{
    for (; index; words++)
        index -= *words == '|';
    while (*words && *words != '|')
        put_char(*words++);
}

static void write_line(int fd)
{
    put_char('\n');
    linux_write(fd, line, line_length);
    line_length = 0;
}

static void put_value(const struct option *option)
{
    put_text(option->name);
    put_char('=');
    if (option->words)
        put_word(option->words, option->value);
    else
        put_number(option->value);
}

_Noreturn void cannot_run(const char *why)
{
    put_text(PROGRAM ": ");
    put_text(why);
    write_line(STANDARD_ERROR);
    linux_exit(CANNOT_RUN);
}

static _Noreturn void usage(const char *argument, const struct option *options, unsigned count)
{
    put_text(PROGRAM ": bad argument '");
    put_text(argument);
    put_text("'; usage: " PROGRAM " [-t] [NAME=VALUE]... with these defaults:");
    for (unsigned i = 0; i < count; i++) {
        put_text("\n  ");
        put_value(&options[i]);
        put_text("  (");
        if (options[i].words) {
            put_text(options[i].words);
        } else {
            put_number(options[i].low);
            put_text(" to ");
            put_number(options[i].high);
        }
        put_char(')');
    }
    write_line(STANDARD_ERROR);
    linux_exit(CANNOT_RUN);
}

/* Returns the text after `prefix=` in `text`, or NULL. */
static const char *after_name(const char *text, const char *name)
{
    while (*name)
        if (*text++ != *name++)
            return NULL;
    return *text == '=' ? text + 1 : NULL;
}

static bool parse_number(const char *text, const struct option *option, uint64_t *value)
{
    uint64_t number = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || number > UINT64_MAX / 10 - 1)
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    *value = number;
    return number >= option->low && number <= option->high;
}

static bool parse_word(const char *text, const char *words, uint64_t *index)
{
    for (uint64_t i = 0;; i++) {
        const char *t = text;
        while (*t && *t == *words)
            t++, words++;
        if (!*t && (!*words || *words == '|')) {
            *index = i;
            return true;
        }
        while (*words && *words != '|')
            words++;
        if (!*words++)
            return false;
    }
}

void parse_options(int argc, char **argv, struct option *options, unsigned count)
{
    unsigned position = 0;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (text[0] == '-' && text[1] == 't' && !text[2]) {
            show_time = true;
            continue;
        }
        unsigned which = position;
        const char *value = NULL;
        for (unsigned o = 0; o < count && !value; o++) {
            value = after_name(text, options[o].name);
            which = value ? o : which;
        }
        if (!value) {
            value = text;
            position++;
        }
        if (which >= count)
            usage(text, options, count);
        struct option *option = &options[which];
        uint64_t parsed;
        if (!(option->words ? parse_word(value, option->words, &parsed) : parse_number(value, option, &parsed)))
            usage(text, options, count);
        option->value = parsed;
    }
}

void measure_begin(const char *region)
{
    if (show_time)
        linux_clock_gettime(CLOCK_MONOTONIC, &started);
    fxscope_roi_begin(region);
}

void measure_end(void)
{
    fxscope_roi_end();
    if (show_time) {
        struct timespec now;
        linux_clock_gettime(CLOCK_MONOTONIC, &now);
        elapsed_ns = (uint64_t)((now.seconds - started.seconds) * 1000000000 + now.nanoseconds - started.nanoseconds);
    }
}

int finish(bool ok, const struct option *options, unsigned count)
{
    put_text(ok ? PROGRAM " ok" : PROGRAM " FAILED");
    for (unsigned i = 0; i < count; i++) {
        put_char(' ');
        put_value(&options[i]);
    }
    put_text(" vl=");
    put_number(svcntb() * 8);
    if (show_time) {
        put_text(" ns=");
        put_number(elapsed_ns);
    }
    write_line(STANDARD_OUTPUT);
    return ok ? PASSED : FAILED;
}

void place_arrays(unsigned char *pool, size_t pool_bytes, size_t bytes, unsigned count, double **arrays)
{
    size_t pitch = (bytes + LINE - 1) / LINE * LINE;
    if (pitch > pool_bytes / count)
        cannot_run("the arrays do not fit into this build");
    for (unsigned i = 0; i < count; i++)
        arrays[i] = (double *)(pool + i * pitch);
}
