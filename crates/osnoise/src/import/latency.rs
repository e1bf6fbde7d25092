//! Imports latencies of timers: rtla timerlat and cyclictest. They measure how late a thread wakes up.

use super::rtla::{duration, noise};
use super::{Error, Imported, Source, lines, quoted, wrong_file, wrong_line};
use crate::trace::{Cause, CoreSummary, Counted, Kind, bin};

/// What latencies are, beside noise.
pub const NOTE: &str =
    "each latency of a timer's thread is taken as a detour: noise while a program runs may be more or less";
/// The name of the time until a timer's interrupt.
pub const UNTIL_INTERRUPT: &str = "until the timer's interrupt";
/// The name of the time until a timer's thread is back in user space.
pub const UNTIL_USER: &str = "until the thread is in user space";

const US: u64 = 1000;

/// Lengths of samples by number.
#[derive(Debug, Default)]
pub struct Lengths {
    /// Length, ns, and number.
    buckets: Vec<(u64, u64)>,
    /// Samples beyond the buckets.
    pub over: u64,
    /// All samples, if known.
    pub samples: u64,
    /// The longest, ns, if known.
    pub longest: u64,
}

impl Lengths {
    /// Adds `number` samples of a length, ns. Fails if their time exceeds a counter.
    pub fn add(&mut self, length: u64, number: u64) -> Option<()> {
        length.checked_mul(number)?.checked_add(self.sum())?;
        self.buckets.push((length, number));
        Some(())
    }

    /// Counts the samples beyond the buckets: one with the longest length, the others with that of the last bucket. Returns
    /// a note about it.
    pub fn count_over(&mut self) -> Option<String> {
        if self.over == 0 {
            return None;
        }
        let last = self.buckets.last().map_or(0, |&(length, _)| length);
        let longest = self.longest.max(last);
        let (others, all) = (self.over - 1, std::mem::take(&mut self.over));
        self.add(longest, 1)?;
        self.add(last, others)?;
        let us = |ns: u64| ns as f64 / 1000.0;
        Some(match others {
            0 => format!("1 sample was beyond the histogram; it is counted with {} us", us(longest)),
            _ => format!(
                "{all} samples were beyond the histogram; the longest is counted with {} us, the others with {} us at least",
                us(longest),
                us(last)
            ),
        })
    }

    /// The time of all, ns.
    pub fn sum(&self) -> u64 {
        self.buckets.iter().fold(0, |sum: u64, &(length, number)| sum.saturating_add(length.saturating_mul(number)))
    }

    /// The summary of the core that these lengths are of.
    pub fn summary(&self, core: u32) -> CoreSummary {
        let mut histogram: Vec<u64> = Vec::new();
        for &(length, number) in &self.buckets {
            let bin = bin(length);
            histogram.resize(histogram.len().max(bin + 1), 0);
            histogram[bin] = histogram[bin].saturating_add(number);
        }
        let counted = vec![noise(self.sum())];
        CoreSummary {
            core,
            iterations: self.samples,
            longest: self.longest,
            histogram,
            counted,
            ..CoreSummary::default()
        }
    }
}

/// The title of `rtla timerlat top`.
const TITLE: &str = "Timer Latency";

/// Returns whether a file has the table of `rtla timerlat top`.
pub fn is_timerlat_top(source: &Source<'_>) -> bool {
    lines(source).any(|(_, line)| line.trim() == TITLE)
}

/// Imports the table of `rtla timerlat top`: the last one, if there are several.
pub fn timerlat_top(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "rtla timerlat top".to_owned(), ..Imported::default() };
    for source in sources {
        let (mut cores, mut unit) = (Vec::new(), US);
        for (number, line) in lines(source) {
            let line = line.trim();
            if line == TITLE {
                cores.clear();
            } else if let Some((time, _)) = line.split_once('|').filter(|(_, rest)| rest.contains("Latency (")) {
                unit = if line.contains("(ns)") { 1 } else { US };
                let time = duration(time.trim());
                let time =
                    time.ok_or_else(|| wrong_line(source, number, format!("{} has no duration", quoted(line))))?;
                imported.summary.duration = imported.summary.duration.max(time);
            } else if line.contains('#') && line.contains('|') {
                let what =
                    || format!("{} is not a row of the table: CPU #samples | 4 numbers | 4 numbers", quoted(line));
                cores.push(timerlat_row(line, unit).ok_or_else(|| wrong_line(source, number, what()))?);
            }
        }
        if cores.is_empty() {
            return Err(wrong_file(source, "has no row of rtla timerlat top (-q prints its table at the end)"));
        }
        imported.summary.cores.extend(cores);
    }
    imported.summary.notes.push(NOTE.to_owned());
    let note = "rtla timerlat top reports totals only: there are no individual detours to fit or replay";
    imported.summary.notes.push(note.to_owned());
    Ok(imported)
}

/// Parses `0 #6012 | cur min avg max | cur min avg max`: interrupt, then thread.
fn timerlat_row(line: &str, unit: u64) -> Option<CoreSummary> {
    let mut parts = line.split('|');
    let mut first = parts.next()?.split_whitespace();
    let core = first.next()?.parse().ok()?;
    let samples: u64 = first.next()?.strip_prefix('#')?.parse().ok()?;
    let numbers = |part: &str| -> Option<[u64; 4]> {
        let number = |word: &str| if word == "-" { Some(0) } else { word.parse().ok() };
        part.split_whitespace().map(number).collect::<Option<Vec<u64>>>()?.try_into().ok()
    };
    let time = |average: u64| average.checked_mul(samples)?.checked_mul(unit);
    let ([_, _, to_interrupt, _], [_, _, to_thread, longest]) = (numbers(parts.next()?)?, numbers(parts.next()?)?);
    let cause = Cause::new(Kind::Interrupt, UNTIL_INTERRUPT);
    let counted = vec![noise(time(to_thread)?), Counted { cause, amount: time(to_interrupt)?, time: true }];
    let longest = longest.checked_mul(unit)?;
    Some(CoreSummary { core, iterations: samples, longest, counted, ..CoreSummary::default() })
}

/// Imports output of cyclictest: the line of each thread, and its histogram if there is one.
pub fn cyclictest(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "cyclictest".to_owned(), ..Imported::default() };
    for source in sources {
        let mut test = Cyclictest::default();
        for (number, line) in lines(source) {
            let what = || wrong_line(source, number, format!("{} is not a line of cyclictest", quoted(&line)));
            test.line(&line).ok_or_else(what)?;
        }
        if test.threads.is_empty() {
            return Err(wrong_file(
                source,
                "has no line of a thread of cyclictest, such as T: 0 ( 1234) P:95 I:1000 C:10000 …",
            ));
        }
        test.finish(&mut imported);
    }
    let note = "threads of cyclictest are taken as the cores of their numbers (-S or -a binds them)";
    imported.summary.notes.extend([note, NOTE].map(str::to_owned));
    if imported.summary.duration == 0 {
        let note = "the file does not have the interval of the timers (the lines T: have): shares of time are unknown";
        imported.summary.notes.push(note.to_owned());
    }
    Ok(imported)
}

/// What a file of cyclictest has so far.
#[derive(Default)]
struct Cyclictest {
    threads: Vec<Thread>,
}

/// A thread of cyclictest.
#[derive(Default)]
struct Thread {
    lengths: Lengths,
    /// The mean, ns, if known.
    average: u64,
    /// The time between its timers, ns; 0 if unknown.
    interval: u64,
}

impl Cyclictest {
    fn thread(&mut self, number: usize) -> Option<&mut Thread> {
        /// More threads than a computer has cores.
        const MOST: usize = 1 << 16;
        if number >= MOST {
            return None;
        }
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, Thread::default);
        }
        self.threads.get_mut(number)
    }

    /// Reads a line; `None` if it is damaged.
    fn line(&mut self, line: &str) -> Option<()> {
        // On a terminal, lines begin with movements of the cursor.
        if let Some(rest) = line.find("T:").map(|at| &line[at + 2..]).filter(|rest| rest.contains(" C:")) {
            return self.of_thread(rest);
        }
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let (name, values) = comment.split_once(':').unwrap_or((comment, ""));
            return self.of_all(name.trim(), values);
        }
        let mut words = line.split_whitespace();
        let Some(length) = words.next().and_then(|word| word.parse::<u64>().ok()) else { return Some(()) };
        for (number, count) in words.enumerate() {
            self.thread(number)?.lengths.add(length.checked_mul(US)?, count.parse().ok()?)?;
        }
        Some(())
    }

    /// Parses ` 0 ( 1234) P:95 I:1000 C:  10000 Min:      2 Act:    3 Avg:    4 Max:      57`.
    fn of_thread(&mut self, rest: &str) -> Option<()> {
        let number = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        let value = |key: &str| -> Option<u64> {
            let (_, rest) = rest.split_once(&format!(" {key}:"))?;
            rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let thread = self.thread(number)?;
        thread.interval = value("I").unwrap_or(0).checked_mul(US)?;
        thread.lengths.samples = value("C")?;
        thread.average = value("Avg")?.checked_mul(US)?;
        thread.lengths.longest = value("Max")?.checked_mul(US)?;
        Some(())
    }

    /// Reads values of all threads: `# Max Latencies: 00057 00031`.
    fn of_all(&mut self, name: &str, values: &str) -> Option<()> {
        let known = ["Total", "Avg Latencies", "Max Latencies", "Histogram Overflows"];
        if !known.contains(&name) {
            return Some(());
        }
        for (number, word) in values.split_whitespace().enumerate() {
            let value: u64 = word.parse().ok()?;
            let thread = self.thread(number)?;
            match name {
                "Total" => thread.lengths.samples = value,
                "Avg Latencies" => thread.average = value.checked_mul(US)?,
                "Max Latencies" => thread.lengths.longest = value.checked_mul(US)?,
                _ => thread.lengths.over = value,
            }
        }
        Some(())
    }

    fn finish(self, imported: &mut Imported) {
        for (core, mut thread) in (0..).zip(self.threads) {
            let lengths = &mut thread.lengths;
            imported.summary.notes.extend(lengths.count_over().map(|note| format!("thread {core}: {note}")));
            let mut summary = lengths.summary(core);
            if lengths.sum() == 0 {
                summary.counted = vec![noise(thread.average.saturating_mul(lengths.samples))];
            }
            let time = thread.interval.saturating_mul(lengths.samples);
            imported.summary.duration = imported.summary.duration.max(time);
            imported.summary.cores.push(summary);
        }
    }
}
