#include "sets.h"

#include "system.h"
#include "text.h"

bool has(const struct set *set, unsigned member)
{
    return set->words[member / 64] >> (member % 64) & 1;
}

void add(struct set *set, unsigned member)
{
    set->words[member / 64] |= (uint64_t)1 << (member % 64);
}

void add_all(struct set *set, const struct set *others)
{
    for (unsigned i = 0; i < SET_WORDS; i++)
        set->words[i] |= others->words[i];
}

bool is_empty(const struct set *set)
{
    return count_of(set) == 0;
}

bool is_within(const struct set *set, const struct set *all)
{
    for (unsigned i = 0; i < SET_WORDS; i++)
        if (set->words[i] & ~all->words[i])
            return false;
    return true;
}

unsigned count_of(const struct set *set)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SET_WORDS; i++)
        count += (unsigned)__builtin_popcountll(set->words[i]);
    return count;
}

unsigned first_of(const struct set *set)
{
    unsigned member = 0;
    while (member < MOST_MEMBERS && !has(set, member))
        member++;
    return member;
}

/* Parses one number or range of a list. */
static bool parse_range(const char **text, struct set *set)
{
    uint64_t first, last, stride = 1;
    if (!parse_digits(text, 10, &first))
        return false;
    last = first;
    if (**text == '-') {
        (*text)++;
        if (!parse_digits(text, 10, &last))
            return false;
        if (**text == ':') {
            (*text)++;
            if (!parse_digits(text, 10, &stride) || stride == 0)
                return false;
        }
    }
    if (last >= MOST_MEMBERS || first > last)
        return false;
    for (; first <= last; first += stride)
        add(set, (unsigned)first);
    return true;
}

bool parse_list(const char *text, struct set *set)
{
    *set = (struct set){0};
    for (;; text++) {
        if (!parse_range(&text, set))
            return false;
        if (*text != ',')
            return !*text;
    }
}

/* Sets the members of `all` at the places that `places` names; returns whether there are as many. */
static bool at_places(const struct set *places, const struct set *all, struct set *set)
{
    unsigned place = 0;
    *set = (struct set){0};
    for (unsigned member = 0; member < MOST_MEMBERS; member++)
        if (has(all, member) && has(places, place++))
            add(set, member);
    return count_of(set) == count_of(places);
}

bool parse_choice(const char *text, const struct set *all, struct set *set)
{
    struct set given, named;
    bool all_but = *text == '!';
    text += all_but;
    bool is_relative = *text == '+';
    text += is_relative;
    if (equal(text, "all"))
        given = *all;
    else if (!parse_list(text, &given))
        return false;
    named = given;
    if (is_relative && !at_places(&given, all, &named))
        return false;
    *set = named;
    if (all_but)
        for (unsigned i = 0; i < SET_WORDS; i++)
            set->words[i] = all->words[i] & ~named.words[i];
    return is_within(set, all) && !is_empty(set);
}

static int hexadecimal_digit(char c)
{
    const char one[] = {c, 0}, *text = one;
    uint64_t value;
    return parse_digits(&text, 16, &value) ? (int)value : -1;
}

bool parse_mask(const char *text, struct set *set)
{
    const char *digits = after_prefix(text, "0x");
    text = digits ? digits : text;
    *set = (struct set){0};
    unsigned bit = 0;
    for (size_t i = length_of(text); i-- > 0;) {
        if (text[i] == ',')
            continue;
        int value = hexadecimal_digit(text[i]);
        if (value < 0 || (value > 0 && bit + 4 > MOST_MEMBERS))
            return false;
        if (value > 0)
            set->words[bit / 64] |= (uint64_t)value << (bit % 64);
        bit += 4;
    }
    return bit > 0 && !is_empty(set);
}

void put_list(const struct set *set)
{
    const char *between = "";
    for (unsigned first = 0; first < MOST_MEMBERS; first++) {
        if (!has(set, first))
            continue;
        unsigned last = first;
        while (last + 1 < MOST_MEMBERS && has(set, last + 1))
            last++;
        put_text(between);
        put_number(first);
        if (last > first) {
            put_char(last == first + 1 ? ',' : '-');
            put_number(last);
        }
        between = ",";
        first = last;
    }
}

void put_mask(const struct set *set)
{
    bool any = false;
    for (unsigned digit = MOST_MEMBERS / 4; digit-- > 0;) {
        unsigned value = set->words[digit / 16] >> (digit % 16 * 4) & 15;
        any = any || value || digit == 0;
        if (any)
            put_char("0123456789abcdef"[value]);
    }
}

void put_members(const struct set *set)
{
    for (unsigned member = 0; member < MOST_MEMBERS; member++) {
        if (has(set, member)) {
            put_number(member);
            put_char(' ');
        }
    }
}

bool read_list(const char *path, struct set *set)
{
    char text[512];
    long length = read_file(path, text, sizeof text);
    if (length > 0 && text[length - 1] == '\n')
        text[length - 1] = 0;
    return length > 0 && parse_list(text, set);
}

long get_affinity(long id, struct set *set)
{
    *set = (struct set){0};
    long bytes = call3(CALL_SCHED_GETAFFINITY, id, sizeof *set, (long)set);
    return bytes < 0 ? -bytes : 0;
}

long set_affinity(long id, const struct set *set)
{
    return -call3(CALL_SCHED_SETAFFINITY, id, sizeof *set, (long)set);
}
