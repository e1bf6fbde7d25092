//! The summary of a trace.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fxscope_jitter::Time;
use fxscope_osnoise::trace::{BINS_PER_OCTAVE, Cause, Kind, Method, Reader, bin_begin};
use fxscope_osnoise::view::{self, Totals, View};
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::cells;
use crate::Error;

/// Causes with their own curve in plots.
const CURVES: usize = 7;
/// Rows of the table of kernel counts.
const COUNTED: usize = 12;
/// Rows of the table of periods.
const PERIODS: usize = 8;
/// Share of slow rounds from which the core's own speed, not the system, is the reason.
const UNEVEN: f64 = 0.1;
/// Rows of the table of frequencies.
const PEAKS: usize = 5;
/// Least power of a frequency in the table, relative to the largest.
const PEAK: f64 = 0.1;
/// Least power in the plot, relative to the largest.
const FAINT: f64 = 1e-6;
/// Bars of the plot over time.
const STRETCHES: usize = 12;

/// Opens a trace.
pub(super) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Error> {
    let fail = |why: &dyn std::fmt::Display| Error::from(format!("{}: {why}", path.display()));
    let file = fxscope_host::open(path, u64::MAX).map_err(|e| e.to_string())?;
    Reader::new(BufReader::new(file)).map_err(|e| fail(&e))
}

/// Summarises the trace in a file.
///
/// # Errors
/// If the file is not a trace.
pub fn look(path: &Path) -> Result<View, Error> {
    view::summarise(open(path)?).map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Returns the summary as a sheet; `name` is the name of the trace's file.
#[must_use]
pub fn sheet(view: &View, name: &str) -> Sheet {
    let cores = view.cores.len();
    let share = Cell::share(view.all.share(view.duration, cores)).text().to_owned();
    let time = Time(view.duration as f64);
    let of = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    let filled = |tables: [Table; 5]| tables.into_iter().filter(|table| !table.rows.is_empty()).collect();
    Sheet {
        title: format!("{name}: noise takes {share} of {of} over {time}"),
        tables: filled([by_core(view), by_cause(view), periods(view), spectrum(view), counted(view)]),
        bars: vec![("Time of detours by length", by_length(view)), ("Noise over time", over_time(view))],
        notes: vec![("Measured", measured(view)), ("Cost", cost(view)), ("Notes", notes(view))],
        plots: plots(view),
    }
}

fn rate(totals: &Totals, view: &View, cores: usize) -> Cell {
    let rate = totals.rate(view.duration, cores);
    let digits = if rate < 10.0 { 2 } else { 1 };
    Cell::number(rate, digits)
}

fn by_core(view: &View) -> Table {
    let waits = matches!(view.header.method, Method::Dgemm | Method::Barrier);
    let mut headings = vec!["core", "noise", "detours/s", "mean", "longest", "fastest round", "rounds"];
    headings.extend(waits.then_some("at barriers"));
    let mut table = Table::new("By core", headings.iter().copied());
    let summary = |core: u32| view.summary.as_ref().and_then(|s| s.cores.iter().find(|c| c.core == core));
    for (&core, part) in &view.cores {
        let known = summary(core);
        let mut cells = vec![
            Cell::share(part.share(view.duration, 1)),
            rate(part, view, 1),
            time_or_none(part.mean()),
            time_or_none(part.longest as f64),
            known.map_or(Cell::none(), |core| time_or_none(core.minimum)),
            known.filter(|core| core.iterations > 0).map_or(Cell::none(), |c| Cell::number(c.iterations as f64, 0)),
        ];
        let waiting = known.map_or(Cell::none(), |core| Cell::share(core.waiting / core.total.max(1.0)));
        cells.extend(waits.then_some(waiting));
        table.rows.push((core.to_string(), cells));
    }
    table
}

fn time_or_none(ns: f64) -> Cell {
    if ns > 0.0 { cells::about(ns) } else { Cell::none() }
}

fn by_cause(view: &View) -> Table {
    let headings = ["cause", "of all cores", "of the noise", "detours/s", "mean", "longest"];
    let mut table = Table::new("By cause", headings.iter().copied());
    let cores = view.cores.len();
    for (cause, part) in &view.causes {
        let cells = vec![
            Cell::share(part.share(view.duration, cores)),
            Cell::share(part.time as f64 / view.all.time.max(1) as f64),
            rate(part, view, cores),
            time_or_none(part.mean()),
            time_or_none(part.longest as f64),
        ];
        table.rows.push((cause.label(), cells));
    }
    table
}

fn periods(view: &View) -> Table {
    let mut table = Table::new("Periodic detours", ["cause", "every", "Hz", "of its detours"]);
    for (cause, period) in view.periods.iter().take(PERIODS) {
        let hz = Cell::number(1e9 / period.period, 1);
        table.rows.push((cause.label(), vec![cells::about(period.period), hz, Cell::share(period.share)]));
    }
    table
}

/// The frequencies with most power: local maxima.
fn spectrum(view: &View) -> Table {
    let mut table = Table::new("Frequencies with most power", ["frequency, Hz", "power"]);
    let points = &view.spectrum;
    let power = |i: usize| points.get(i).map_or(0.0, |point| point.1);
    let is_peak = |&i: &usize| power(i) >= PEAK && power(i) >= power(i + 1) && (i == 0 || power(i) > power(i - 1));
    let mut peaks: Vec<usize> = (0..points.len()).filter(is_peak).collect();
    // Among equals, as in the spectrum of pulses, the lowest.
    peaks.sort_by_key(|&i| (std::cmp::Reverse((power(i) * 100.0).round() as u32), i));
    for i in peaks.into_iter().take(PEAKS) {
        table.rows.push((format!("{:.1}", points[i].0), vec![Cell::share(power(i))]));
    }
    table
}

/// Events that the kernel counted on the cores during the measurement, whether or not detours are named.
fn counted(view: &View) -> Table {
    let headings = ["counted by the kernel", "all cores", "per second and core"];
    let mut table = Table::new("Counted by the kernel", headings.iter().copied());
    let mut sums: Vec<(&Cause, u64, bool)> = Vec::new();
    for counted in view.summary.iter().flat_map(|summary| &summary.cores).flat_map(|core| &core.counted) {
        match sums.iter_mut().find(|sum| *sum.0 == counted.cause) {
            Some(sum) => sum.1 = sum.1.saturating_add(counted.amount),
            None => sums.push((&counted.cause, counted.amount, counted.time)),
        }
    }
    sums.sort_by(|a, b| (b.2, b.1, a.0).cmp(&(a.2, a.1, b.0)));
    let whole = view.duration as f64 / 1e9 * view.cores.len().max(1) as f64;
    for (cause, amount, time) in sums.into_iter().take(COUNTED) {
        let per_second = amount as f64 / whole.max(f64::MIN_POSITIVE);
        let cells = match time {
            true => vec![cells::about(amount as f64), cells::about(per_second)],
            false => vec![Cell::number(amount as f64, 0), Cell::number(per_second, 2)],
        };
        table.rows.push((cause.label(), cells));
    }
    table
}

/// Share of the noise by length of detours, one row per doubling.
fn by_length(view: &View) -> Vec<(String, f64)> {
    let octaves = view.histogram.chunks(BINS_PER_OCTAVE as usize).enumerate();
    let middle = |bin: usize| bin_begin(bin) * f64::exp2(0.5 / f64::from(BINS_PER_OCTAVE));
    let rows: Vec<(usize, u64, f64)> = octaves
        .map(|(octave, counts)| {
            let first = octave * BINS_PER_OCTAVE as usize;
            let time = counts.iter().enumerate().map(|(i, &count)| count as f64 * middle(first + i)).sum();
            (first, counts.iter().sum(), time)
        })
        .skip_while(|row| row.1 == 0)
        .collect();
    let whole: f64 = rows.iter().map(|row| row.2).sum();
    let label = |first: usize, count: u64| format!("from {} ({count})", cells::about(bin_begin(first)).text());
    rows.into_iter().map(|(first, count, time)| (label(first, count), time / whole)).collect()
}

/// Share of the noise by stretch of time.
fn over_time(view: &View) -> Vec<(String, f64)> {
    let whole: f64 = view.time_line.iter().sum();
    if whole <= 0.0 {
        return Vec::new();
    }
    let join = view.time_line.len().div_ceil(STRETCHES);
    let label = |i: usize| format!("from {}", cells::about((i * join) as f64 * view.slice as f64).text());
    view.time_line.chunks(join).enumerate().map(|(i, part)| (label(i), part.iter().sum::<f64>() / whole)).collect()
}

fn measured(view: &View) -> Vec<String> {
    let header = &view.header;
    let mut out = Vec::new();
    if header.method == Method::Imported {
        out.push(format!("By {}, imported.", header.program));
    } else {
        let virtual_machine = if header.virtual_machine == Some(true) { ", a virtual machine" } else { "" };
        out.push(format!("{}: {}, {}{virtual_machine}.", header.host, header.processor, header.kernel));
        let quantum = match (header.quantum, header.method) {
            (0, _) => String::new(),
            (quantum, Method::Ftq) => format!(" in intervals of {}", Time(quantum as f64)),
            (quantum, _) => format!(", pieces of {}", Time(quantum as f64)),
        };
        let priority =
            header.priority.map_or("no real-time priority".to_owned(), |p| format!("real-time priority {p}"));
        out.push(format!("By {}{quantum}, {priority}, {}.", header.method.name(), header.program));
    }
    if header.threshold > 0 {
        out.push(format!("Detours of {} and longer are recorded.", Time(header.threshold as f64)));
    }
    out
}

/// Cost of the measurement itself.
fn cost(view: &View) -> Vec<String> {
    let header = &view.header;
    let Some(overhead) = header.overhead else { return Vec::new() };
    let mut out = vec![format!(
        "{} at {:.4} GHz; a read takes {}, recording a detour {}.",
        header.clock,
        header.clock_hz / 1e9,
        cells::about(overhead.read).text(),
        cells::about(overhead.record).text()
    )];
    if let Some(share) = overhead.share {
        let text = Cell::share(share).text().to_owned();
        let judged = if share < 0.01 { "" } else { ": more than 1 %, take a longer --quantum" };
        out.push(format!("Reading the clock and recording take {text} of a quantum{judged}."));
    }
    let own = view.causes.iter().filter(|(cause, _)| cause.kind == Kind::Own);
    let own = own.fold(Totals::default(), |sum, (_, part)| sum.with(part));
    let share = Cell::share(own.share(view.duration, view.cores.len())).text().to_owned();
    out.push(format!("Writing the trace took {share} of the cores' time; it has its own cause."));
    out
}

fn notes(view: &View) -> Vec<String> {
    let end = |text: &String| format!("{}.", sentence(text));
    let mut out: Vec<String> = view.damage.iter().map(|damage| format!("The trace {damage}.")).collect();
    out.extend(view.header.notes.iter().map(end));
    out.extend(view.summary.iter().flat_map(|summary| &summary.notes).map(end));
    out.extend(uneven(view));
    let unknown = view.causes.iter().find(|(cause, _)| cause.kind == Kind::Unknown);
    if let Some((_, part)) = unknown.filter(|(_, part)| part.time > 0) {
        let share = Cell::share(part.time as f64 / view.all.time.max(1) as f64).text().to_owned();
        out.push(format!("The cause of {share} of the noise is not known."));
    }
    out
}

/// Returns a sentence if more rounds are slow than the system can explain.
fn uneven(view: &View) -> Option<String> {
    let quanta = matches!(view.header.method, Method::Fwq | Method::Dgemm);
    let rounds: u64 = view.summary.iter().flat_map(|summary| &summary.cores).map(|core| core.iterations).sum();
    let share = view.all.detours as f64 / rounds.max(1) as f64;
    (quanta && rounds > 0 && share > UNEVEN).then(|| {
        let share = Cell::share(share).text().to_owned();
        format!(
            "{share} of the rounds are slower than the fastest by more than the threshold: the core's own speed changes \
             (clock frequency, its other hardware thread, a hypervisor); a higher --threshold leaves that out."
        )
    })
}

/// Capitalises the first letter.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

fn plots(view: &View) -> Vec<Plot> {
    let plot = |title: &str, across: &str, up: &str, logarithmic: (bool, bool), curves: Vec<Curve>| Plot {
        title: title.to_owned(),
        across: across.to_owned(),
        logarithmic: logarithmic.0,
        up: up.to_owned(),
        logarithmic_up: logarithmic.1,
        curves,
    };
    let seconds = |i: usize| (i as f64 + 0.5) * view.slice as f64 / 1e9;
    let line = view.time_line.iter().enumerate().map(|(i, share)| (seconds(i), share * 100.0)).collect();
    let seen = view.spectrum.iter().filter(|point| point.1 >= FAINT);
    let spectrum = seen.map(|&(hz, power)| (hz, power * 100.0)).collect();
    let all = [
        plot("Detours by length", "length, us", "detours in a quarter octave", (true, true), lengths(view)),
        plot(
            "Time in detours of a length or longer",
            "length, us",
            "share of the cores' time, %",
            (true, false),
            tail(view),
        ),
        plot(
            "Noise over time",
            "seconds",
            "share of the cores' time, %",
            (false, false),
            vec![curve("all cores", line)],
        ),
        plot(
            "Spectrum",
            "frequency, Hz",
            "power, % of the largest",
            (true, true),
            vec![curve("mean of the cores", spectrum)],
        ),
    ];
    all.into_iter().filter(|plot| plot.curves.iter().any(|curve| curve.points.len() > 1)).collect()
}

fn curve(label: &str, points: Vec<(f64, f64)>) -> Curve {
    Curve { label: label.to_owned(), points }
}

/// Number of detours by length, of all causes and of those with most time.
fn lengths(view: &View) -> Vec<Curve> {
    let points = |counts: &[u64]| {
        let bins = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        bins.map(|(bin, &count)| (bin_begin(bin) / 1e3, count as f64)).collect::<Vec<_>>()
    };
    let mut out = vec![curve("all", points(&view.histogram))];
    if view.causes.len() > 1 {
        let causes = view.causes.iter().zip(&view.by_cause).take(CURVES);
        out.extend(causes.map(|((cause, _), counts)| curve(&cause.label(), points(counts))));
    }
    out
}

/// Share of the time in detours of at least a length.
fn tail(view: &View) -> Vec<Curve> {
    let whole = view.duration as f64 * view.cores.len().max(1) as f64;
    let middle = f64::exp2(0.5 / f64::from(BINS_PER_OCTAVE));
    let mut sum = 0.0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (bin, &count) in view.histogram.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
        sum += count as f64 * bin_begin(bin) * middle;
        points.push((bin_begin(bin) / 1e3, sum / whole.max(1.0) * 100.0));
    }
    points.reverse();
    vec![curve("all cores", points)]
}
