/* The Matrix Market exchange format: a banner, comments, a line with the sizes, and a line for each entry. */
#include "spmv.h"

long linux_openat(int folder, const char *path, int flags, int mode);
long linux_read(int fd, void *bytes, unsigned long count);

enum { CURRENT_FOLDER = -100, END = -1, WORD = 64 };

static const char *path;
static int file;
static unsigned char buffer[1 << 16];
static size_t filled, used;
static uint64_t line = 1;

enum field { REAL, INTEGER, PATTERN };
enum symmetry { GENERAL, SYMMETRIC, SKEW };

struct header {
    enum field field;
    enum symmetry symmetry;
    uint64_t n, entries;
};

/* Start of a message, which continues after the line number. */
static void say_where(void)
{
    say(PROGRAM ": ");
    say(path);
    say(", line ");
    say_number(line);
    say(": ");
}

static _Noreturn void malformed(const char *why)
{
    say_where();
    say(why);
    leave(CANNOT_RUN);
}

static _Noreturn void malformed_word(const char *why, const char *word)
{
    say_where();
    say(why);
    say(" '");
    say(word);
    say("'");
    leave(CANNOT_RUN);
}

static _Noreturn void cannot_read(long error)
{
    say(PROGRAM ": cannot read ");
    say(path);
    switch (-error) {
    case 2:
        say(": no such file");
        break;
    case 13:
        say(": permission denied");
        break;
    case 21:
        say(": it is a folder");
        break;
    default:
        say(": error ");
        say_number((uint64_t)-error);
        say(" of the system");
    }
    leave(CANNOT_RUN);
}

/* Returns the next character without consuming it. */
static int peek(void)
{
    if (used == filled) {
        long count = linux_read(file, buffer, sizeof buffer);
        if (count < 0)
            cannot_read(count);
        filled = (size_t)count;
        used = 0;
    }
    return used < filled ? buffer[used] : END;
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static int skip_blanks(void)
{
    while (is_blank(peek()))
        used++;
    return peek();
}

static bool at_line_end(void)
{
    int c = skip_blanks();
    return c == '\n' || c == END;
}

static void next_line(void)
{
    if (peek() == '\n') {
        used++;
        line++;
    }
}

static void skip_line(void)
{
    while (peek() != '\n' && peek() != END)
        used++;
    next_line();
}

/* Reads a word of the line; empty at the end of the line. */
static const char *take_word(void)
{
    static char word[WORD];
    size_t length = 0;
    skip_blanks();
    for (int c = peek(); !is_blank(c) && c != '\n' && c != END; c = peek()) {
        if (length == WORD - 1)
            malformed("a word of more than 63 characters");
        word[length++] = (char)(c > ' ' && c < 0x7f ? c : '?');
        used++;
    }
    word[length] = 0;
    return word;
}

static bool is(const char *word, const char *name)
{
    for (; *word && (*word | 0x20) == (*name | 0x20); word++)
        name++;
    return *word == *name;
}

/* Reads a word from a list; returns its index. */
static unsigned choose(const char *const *names, unsigned count, const char *why)
{
    const char *word = take_word();
    for (unsigned i = 0; i < count; i++)
        if (is(word, names[i]))
            return i;
    malformed_word(why, word);
}

static void end_line(const char *why)
{
    if (!at_line_end())
        malformed_word(why, take_word());
    next_line();
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads an integer up to `high`. */
static uint64_t take_count(uint64_t high, const char *what)
{
    const char *word = take_word(), *c = word;
    uint64_t number = 0;
    for (; is_digit(*c) && number <= high; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    if (c == word || *c || number > high) {
        say_where();
        say(what);
        say(" must be a number from 0 to ");
        say_number(high);
        say(", not '");
        say(word);
        say("'");
        leave(CANNOT_RUN);
    }
    return number;
}

/* Reads a row or column; returns it counted from 0. */
static int32_t take_index(uint64_t n, const char *what)
{
    const char *word = take_word(), *c = word;
    uint64_t number = 0;
    for (; is_digit(*c) && number <= n; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    if (c == word || *c || number < 1 || number > n) {
        say_where();
        say(what);
        say(" must be a number from 1 to ");
        say_number(n);
        say(", not '");
        say(word);
        say("'");
        leave(CANNOT_RUN);
    }
    return (int32_t)(number - 1);
}

static double power_of_ten(unsigned exponent)
{
    double power = 1, square = 10;
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1)
            power *= square;
    return power;
}

/* Reads the exponent after an e; false if there is none. */
static bool parse_exponent(const char *c, int64_t *exponent)
{
    bool negative = *c == '-';
    c += *c == '-' || *c == '+';
    const char *first = c;
    int64_t given = 0;
    for (; is_digit(*c); c++)
        given = given < 100000 ? given * 10 + (*c - '0') : given;
    *exponent += negative ? -given : given;
    return c > first && !*c;
}

/* A decimal number without its sign as a double, up to a few units in its last place; false if it is not a number. */
static bool parse_real(const char *c, double *value)
{
    /* 19 digits fit into 64 bits; the others only move the point. */
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    bool fraction = false, digits = false;
    for (; is_digit(*c) || (*c == '.' && !fraction); c++) {
        if (*c == '.') {
            fraction = true;
            continue;
        }
        digits = true;
        bool fits = mantissa < UINT64_MAX / 10 - 1;
        mantissa = fits ? mantissa * 10 + (uint64_t)(*c - '0') : mantissa;
        exponent += !fits - fraction;
    }
    /* FORTRAN writes a D. */
    bool has_exponent = (*c | 0x20) == 'e' || (*c | 0x20) == 'd';
    if (!digits || (has_exponent ? !parse_exponent(c + 1, &exponent) : *c != 0))
        return false;
    *value = (double)mantissa;
    if (mantissa && exponent > 0)
        *value *= power_of_ten((unsigned)exponent);
    /* In steps, since numbers smaller than one over the largest exist. */
    for (; exponent < 0 && *value != 0; exponent += 300)
        *value /= power_of_ten(exponent < -300 ? 300 : (unsigned)-exponent);
    return true;
}

static bool is_whole(const char *c)
{
    while (is_digit(*c))
        c++;
    return !*c;
}

static double take_value(enum field field)
{
    const char *word = take_word(), *unsigned_part = word + (*word == '-' || *word == '+');
    double value;
    if (!parse_real(unsigned_part, &value) || (field == INTEGER && !is_whole(unsigned_part)))
        malformed_word(field == INTEGER ? "the value must be an integer, not" : "the value must be a number, not", word);
    if (value > 0x1.fffffffffffffp1023)
        malformed_word("the value is too large for a double:", word);
    if (field == INTEGER && value >= 0x1p53)
        malformed_word("the value must be an integer below 2^53, not", word);
    return *word == '-' ? -value : value;
}

static struct header read_header(void)
{
    static const char *const OBJECTS[] = {"matrix"}, *const FORMATS[] = {"coordinate", "array"},
                             *const FIELDS[] = {"real", "integer", "pattern", "double"},
                             *const SYMMETRIES[] = {"general", "symmetric", "skew-symmetric"};
    struct header h;
    if (!is(take_word(), "%%MatrixMarket"))
        malformed("the file must begin with %%MatrixMarket");
    choose(OBJECTS, 1, "the banner must name a matrix, not");
    if (choose(FORMATS, 2, "the format must be coordinate, not") == 1)
        malformed("the format is array, of dense matrices; only coordinate is read");
    unsigned field = choose(FIELDS, 4, "values must be real, integer or pattern, not");
    h.field = field == 3 ? REAL : (enum field)field;
    h.symmetry = (enum symmetry)choose(SYMMETRIES, 3, "the matrix must be general, symmetric or skew-symmetric, not");
    end_line("the banner ends with the symmetry; behind it comes");
    while (skip_blanks() == '%' || peek() == '\n')
        skip_line();
    if (peek() == END)
        malformed("the file ends before the line with the sizes");
    h.n = take_count(MAX_INDEX - 1, "the number of rows");
    uint64_t columns = take_count(MAX_INDEX - 1, "the number of columns");
    h.entries = take_count(UINT64_MAX / 100, "the number of entries");
    if (h.n != columns || !h.n) {
        say_where();
        say_number(h.n);
        say(" rows and ");
        say_number(columns);
        say(" columns; only square matrices are read, of one row at least");
        leave(CANNOT_RUN);
    }
    end_line("the line with the sizes has three numbers; behind them comes");
    return h;
}

/* Entries in file order. */
struct entries {
    uint64_t count;
    int32_t *row, *column;
    double *value;
};

static void add_entry(struct entries *e, int32_t row, int32_t column, double value)
{
    e->row[e->count] = row;
    e->column[e->count] = column;
    e->value[e->count++] = value;
}

static void read_entry(const struct header *h, struct entries *e)
{
    int32_t row = take_index(h->n, "the row"), column = take_index(h->n, "the column");
    double value = h->field == PATTERN ? 1 : take_value(h->field);
    if (h->symmetry == SYMMETRIC && column > row)
        malformed("entries of a symmetric matrix lie on or below the diagonal, this one above");
    if (h->symmetry == SKEW && column >= row)
        malformed("entries of a skew-symmetric matrix lie below the diagonal, this one does not");
    end_line("behind the entry comes");
    add_entry(e, row, column, value);
    if (h->symmetry != GENERAL && row != column)
        add_entry(e, column, row, h->symmetry == SKEW ? -value : value);
}

/* Reads the entries of a file, which must have the stated number. */
static struct entries read_entries(const struct header *h)
{
    uint64_t room = h->symmetry == GENERAL ? h->entries : 2 * h->entries;
    struct entries e = {0};
    const struct product what = {room, " entries of ", 2 * sizeof(int32_t) + sizeof(double), " bytes"};
    claim("reading the file", (unsigned __int128)what.first * what.second, &what);
    e.row = take(room, sizeof *e.row);
    e.column = take(room, sizeof *e.column);
    e.value = take(room, sizeof *e.value);
    for (uint64_t read = 0;;) {
        bool empty = at_line_end();
        if (peek() == END) {
            if (read == h->entries)
                return e;
            say_where();
            say("the file ends behind ");
            say_number(read);
            say(" of ");
            say_number(h->entries);
            say(" entries");
            leave(CANNOT_RUN);
        }
        if (empty || peek() == '%') {
            skip_line();
            continue;
        }
        if (read++ == h->entries) {
            say_where();
            say("another entry behind the ");
            say_number(h->entries);
            say(" that the line with the sizes announces");
            leave(CANNOT_RUN);
        }
        read_entry(h, &e);
    }
}

/* Sums entries of the same row and column, which are adjacent. */
static void merge(struct matrix *a)
{
    int32_t to = 0, from = 0;
    for (uint64_t i = 0; i < a->n; i++) {
        int32_t first = to;
        for (; from < a->ptr[i + 1]; from++) {
            if (to > first && a->index[to - 1] == a->index[from]) {
                a->value[to - 1] += a->value[from];
                continue;
            }
            a->index[to] = a->index[from];
            a->value[to++] = a->value[from];
        }
        a->ptr[i + 1] = to;
    }
    a->nonzeros = (uint64_t)to;
}

static double largest_value(const struct matrix *a)
{
    double largest = 0;
    for (uint64_t k = 0; k < a->nonzeros; k++) {
        double size = a->value[k] < 0 ? -a->value[k] : a->value[k];
        if (size >= 0x1p53 || size != (double)(int64_t)size)
            return __builtin_inf();
        largest = size > largest ? size : largest;
    }
    return largest;
}

struct matrix read_market(const char *name)
{
    path = name;
    long opened = linux_openat(CURRENT_FOLDER, name, 0, 0);
    if (opened < 0)
        cannot_read(opened);
    file = (int)opened;
    struct header h = read_header();
    struct entries e = read_entries(&h);
    /* By columns first, so that the columns of each row are in order when rows are built from that. */
    struct matrix by_columns = new_matrix(h.n);
    take_nonzeros(&by_columns, e.count);
    for (uint64_t k = 0; k < e.count; k++)
        by_columns.ptr[e.column[k] + 1]++;
    for (uint64_t j = 0; j < h.n; j++)
        by_columns.ptr[j + 1] += by_columns.ptr[j];
    for (uint64_t k = 0; k < e.count; k++) {
        int32_t at = by_columns.ptr[e.column[k]]++;
        by_columns.index[at] = e.row[k];
        by_columns.value[at] = e.value[k];
    }
    for (uint64_t j = h.n; j > 0; j--)
        by_columns.ptr[j] = by_columns.ptr[j - 1];
    by_columns.ptr[0] = 0;
    struct matrix a = transposed(&by_columns);
    merge(&a);
    a.largest = largest_value(&a);
    return a;
}
