/* Output of perf stat, as perf 6.1 writes it. */
#include "perf.h"

#include "system.h"
#include "text.h"

/* Widths of fields. */
enum { COUNT_WIDTH = 18, NAME_WIDTH = 32, METRIC_WIDTH = 9, TIME_WIDTH = 17 };

static const double NS_PER_S = 1e9;

/* Something derived from counts: a number with its unit. */
struct metric {
    double value;
    unsigned digits;
    const char *unit; /* NULL: there is none */
};

static void put_time(uint64_t ns, unsigned width)
{
    put_right(fixed_text((double)(ns / 1000000000) + (double)(ns % 1000000000) / NS_PER_S, 9), width);
}

bool is_for_people(const struct layout *layout)
{
    return !layout->separator && !layout->as_json;
}

void put_title(char *const *command, const struct layout *layout)
{
    put_text("\n Performance counter stats for '");
    for (char *const *word = command; *word; word++) {
        put_text(word == command ? "" : " ");
        put_text(*word);
    }
    put_char('\'');
    if (layout->runs > 1) {
        put_text(" (");
        put_number(layout->runs);
        put_text(" runs)");
    }
    put_text(":\n\n");
}

void put_heading(void)
{
    put_text("#           time             counts unit events\n");
}

/* Returns the count of an event of this kind, or 0. */
static double count_of(const struct events *events, const struct result *result, uint32_t type, uint64_t config)
{
    for (unsigned i = 0; i < events->count; i++)
        if (events->list[i].type == type && events->list[i].config == config && events->list[i].file >= 0)
            return (double)result->counts[i].value;
    return 0;
}

static bool is_clock(const struct event *event)
{
    return event->type == TYPE_SOFTWARE && event->config <= SOFTWARE_TASK_CLOCK;
}

static struct metric rate(double count, double clock_ns)
{
    static const struct {
        double least;
        const char *unit;
    } units[] = {{1e9, "G/sec"}, {1e6, "M/sec"}, {1e3, "K/sec"}};
    double per_second = count / clock_ns * NS_PER_S;
    for (unsigned i = 0; i < COUNT_OF(units); i++)
        if (per_second >= units[i].least)
            return (struct metric){per_second / units[i].least, 3, units[i].unit};
    return (struct metric){per_second, 3, "/sec"};
}

static struct metric metric_of(const struct events *events, const struct result *result, unsigned i)
{
    const struct event *event = &events->list[i];
    double count = (double)result->counts[i].value;
    double clock = count_of(events, result, TYPE_SOFTWARE, SOFTWARE_TASK_CLOCK);
    double cycles = count_of(events, result, TYPE_HARDWARE, HARDWARE_CYCLES);
    double branches = count_of(events, result, TYPE_HARDWARE, HARDWARE_BRANCHES);
    bool is_hardware = event->type == TYPE_HARDWARE;
    if (is_clock(event))
        return (struct metric){count / (double)result->elapsed_ns, 3, "CPUs utilized"};
    if (is_hardware && event->config == HARDWARE_INSTRUCTIONS && cycles > 0)
        return (struct metric){count / cycles, 2, "insn per cycle"};
    if (is_hardware && event->config == HARDWARE_BRANCH_MISSES && branches > 0)
        return (struct metric){100 * count / branches, 2, "% of all branches"};
    if (is_hardware && event->config == HARDWARE_CYCLES && clock > 0)
        return (struct metric){count / clock, 3, "GHz"};
    return clock > 0 ? rate(count, clock) : (struct metric){0, 0, NULL};
}

/* Returns the unit of an event's count. */
static const char *unit_of(const struct event *event)
{
    if (event->type == TYPE_ELAPSED)
        return "ns";
    return is_clock(event) ? "msec" : "";
}

/* Returns the count of an event as text. */
static const char *count_text(const struct event *event, const struct count *count, bool grouped)
{
    if (event->file < 0)
        return "<not supported>";
    if (count->enabled == 0)
        return "<not counted>";
    return is_clock(event) ? fixed_text((double)count->value / 1e6, 2) : number_text(count->value, grouped);
}

static void put_deviation(double percent)
{
    put_text("  ( +-");
    put_right(fixed_text(percent, 2), 6);
    put_text("% )");
}

static void put_line(const struct events *events, const struct result *result, const struct layout *layout, unsigned i)
{
    const struct event *event = &events->list[i];
    const struct count *count = &result->counts[i];
    struct metric metric = metric_of(events, result, i);
    bool is_counted = event->file >= 0 && count->enabled > 0;
    put_right(count_text(event, count, layout->groups_digits), COUNT_WIDTH);
    put_char(' ');
    put_left(unit_of(event), 4);
    put_char(' ');
    if (!is_counted || (!metric.unit && layout->runs == 1)) {
        put_text(event->name);
        put_char('\n');
        return;
    }
    put_left(event->name, NAME_WIDTH);
    if (metric.unit) {
        put_text(" #");
        put_right(fixed_text(metric.value, metric.digits), METRIC_WIDTH);
        put_text(metric.unit[0] == '%' ? "" : " ");
        if (layout->runs > 1)
            put_left(metric.unit, 23);
        else
            put_text(metric.unit);
    }
    if (layout->runs > 1)
        put_deviation(result->deviations[i]);
    put_char('\n');
}

/* Returns a metric's unit for programs. */
static const char *short_unit(const struct metric *metric)
{
    return metric->unit + (metric->unit[0] == '%' ? 2 : 0);
}

static double running_percent(const struct count *count)
{
    return count->enabled ? 100.0 * (double)count->running / (double)count->enabled : 100.0;
}

static void put_values(const struct events *events, const struct result *result, const struct layout *layout, unsigned i)
{
    const struct event *event = &events->list[i];
    const struct count *count = &result->counts[i];
    const char *between = layout->separator;
    bool is_counted = event->file >= 0 && count->enabled > 0;
    struct metric metric = is_counted ? metric_of(events, result, i) : (struct metric){0, 0, NULL};
    put_text(count_text(event, count, false));
    put_text(between);
    put_text(unit_of(event));
    put_text(between);
    put_text(event->name);
    put_text(between);
    if (layout->runs > 1) {
        put_fixed(result->deviations[i], 2);
        put_char('%');
        put_text(between);
    }
    put_number(count->running);
    put_text(between);
    put_fixed(running_percent(count), 2);
    put_text(between);
    if (metric.unit)
        put_fixed(metric.value, metric.digits);
    put_text(between);
    put_text(metric.unit ? short_unit(&metric) : "");
    put_char('\n');
}

static void put_json(const struct events *events, const struct result *result, const struct layout *layout, unsigned i, uint64_t end_ns)
{
    const struct event *event = &events->list[i];
    const struct count *count = &result->counts[i];
    bool is_counted = event->file >= 0 && count->enabled > 0;
    struct metric metric = is_counted ? metric_of(events, result, i) : (struct metric){0, 0, NULL};
    put_char('{');
    if (layout->by_interval) {
        put_text("\"interval\" : ");
        put_time(end_ns, 0);
        put_text(", ");
    }
    put_text("\"counter-value\" : \"");
    if (is_counted)
        put_fixed(is_clock(event) ? (double)count->value / 1e6 : (double)count->value, 6);
    else
        put_text(count_text(event, count, false));
    put_text("\", \"unit\" : \"");
    put_text(unit_of(event));
    put_text("\", \"event\" : \"");
    put_text(event->name);
    put_text("\", ");
    if (layout->runs > 1) {
        put_text("\"variance\" : ");
        put_fixed(result->deviations[i], 2);
        put_text(", ");
    }
    put_text("\"event-runtime\" : ");
    put_number(count->running);
    put_text(", \"pcnt-running\" : ");
    put_fixed(running_percent(count), 2);
    if (metric.unit) {
        put_text(", \"metric-value\" : ");
        put_fixed(metric.value, 6);
        put_text(", \"metric-unit\" : \"");
        put_text(short_unit(&metric));
        put_char('"');
    }
    put_text("}\n");
}

void put_counts(const struct events *events, const struct result *result, const struct layout *layout, uint64_t end_ns)
{
    for (unsigned i = 0; i < events->count; i++) {
        if (layout->as_json) {
            put_json(events, result, layout, i, end_ns);
            continue;
        }
        if (layout->by_interval) {
            put_time(end_ns, 16);
            put_text(layout->separator ? layout->separator : " ");
        }
        (layout->separator ? put_values : put_line)(events, result, layout, i);
    }
}

void put_times(const struct result *result, const struct layout *layout)
{
    put_char('\n');
    put_time(result->elapsed_ns, TIME_WIDTH);
    if (layout->runs > 1) {
        put_text(" +- ");
        put_fixed((double)result->elapsed_ns / NS_PER_S * result->elapsed_deviation / 100, 9);
    }
    put_text(" seconds time elapsed");
    if (layout->runs > 1)
        put_deviation(result->elapsed_deviation);
    put_text("\n\n");
    if (layout->runs == 1) {
        put_time(result->user_ns, TIME_WIDTH);
        put_text(" seconds user\n");
        put_time(result->system_ns, TIME_WIDTH);
        put_text(" seconds sys\n\n");
    }
}

/* A day as the calendar has it. */
struct date {
    uint64_t year;
    unsigned month, day;
};

/* Returns the date of a day counted from 1970-01-01. */
static struct date date_of(uint64_t days)
{
    static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    struct date date = {1970, 0, 0};
    for (;; date.year++) {
        bool is_leap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);
        for (date.month = 0; date.month < 12; date.month++) {
            unsigned length = lengths[date.month] + (is_leap && date.month == 1);
            if (days < length) {
                date.day = (unsigned)days + 1;
                return date;
            }
            days -= length;
        }
    }
}

void put_start_time(void)
{
    static const char *const weekdays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct timespec now = {0};
    call2(CALL_CLOCK_GETTIME, CLOCK_REALTIME, (long)&now);
    uint64_t days = (uint64_t)now.seconds / 86400, seconds = (uint64_t)now.seconds % 86400;
    struct date date = date_of(days);
    put_text("# started on ");
    put_text(weekdays[days % 7]);
    put_char(' ');
    put_text(months[date.month]);
    put_char(' ');
    put_right(number_text(date.day, false), 2);
    const uint64_t parts[] = {seconds / 3600, seconds / 60 % 60, seconds % 60};
    for (unsigned i = 0; i < COUNT_OF(parts); i++) {
        put_char(i ? ':' : ' ');
        put_text(parts[i] < 10 ? "0" : "");
        put_number(parts[i]);
    }
    put_char(' ');
    put_number(date.year);
    put_text("\n\n");
}
