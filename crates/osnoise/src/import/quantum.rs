//! Imports FTQ, FWQ and netgauge files: work or time per quantum.

use std::collections::BTreeMap;

use super::{Error, Imported, Source, lines, quoted, wrong_file, wrong_line};
use crate::trace::{Cause, CoreSummary};

/// Minimum share of a quantum for a detour, since work is counted in whole units.
const PART: f64 = 0.02;

/// A line number and its values.
type Row = (usize, Vec<f64>);

/// Detours (start and length) and the core's summary.
type Found = (Vec<(u64, u64)>, CoreSummary);

/// The rows of numbers in a file, and its comments.
struct Rows {
    rows: Vec<Row>,
    comments: Vec<String>,
}

fn rows(source: &Source<'_>, columns: usize, what: &str) -> Result<Rows, Error> {
    let mut found = Rows { rows: Vec::new(), comments: Vec::new() };
    for (number, line) in lines(source) {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            found.comments.push(comment.trim().to_owned());
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let values: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let sound = |values: &Vec<f64>| {
            values.len() == columns && values.iter().all(|v| v.is_finite() && *v >= 0.0 && *v < 1e18)
        };
        match values.filter(sound) {
            Some(values) => found.rows.push((number, values)),
            None => return Err(wrong_line(source, number, format!("{} is not {what}", quoted(line)))),
        }
    }
    if found.rows.is_empty() {
        return Err(wrong_file(source, format!("is empty: lines with {what} were expected")));
    }
    Ok(found)
}

/// The core of a file: from a comment, the last number in its name, or its position among the files.
fn core(source: &Source<'_>, comments: &[String], place: usize) -> u32 {
    let in_comment = comments.iter().find_map(|comment| comment.split_once("core ")?.1.trim().parse().ok());
    let in_name = || {
        let name = source.name.rsplit('/').next()?;
        let name = name.trim_end_matches(".dat").trim_end_matches("_times").trim_end_matches("_counts");
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        name[name.len() - digits..].parse().ok()
    };
    in_comment.or_else(in_name).unwrap_or(place as u32)
}

fn add(imported: &mut Imported, source: &Source<'_>, core: u32, found: Found) -> Result<(), Error> {
    let detours = found.0.into_iter().map(|(start, length)| (start, length, Cause::unknown())).collect();
    if imported.cores.insert(core, detours).is_some() {
        return Err(wrong_file(
            source,
            format!("is the second one of core {core}; use names such as ftq_3.dat to distinguish cores"),
        ));
    }
    imported.summary.duration = imported.summary.duration.max(found.1.total as u64);
    imported.summary.cores.push(CoreSummary { core, ..found.1 });
    Ok(())
}

/// Detours in pieces of equal work, from the time of each, ns.
fn detours_of_work(pieces: impl Iterator<Item = f64> + Clone) -> Found {
    let minimum = pieces.clone().fold(f64::INFINITY, f64::min);
    let (mut detours, mut now, mut iterations) = (Vec::new(), 0.0, 0);
    for piece in pieces {
        let excess = piece - minimum;
        if excess > minimum * PART {
            detours.push((now as u64, excess.round() as u64));
        }
        now += piece;
        iterations += 1;
    }
    (detours, CoreSummary { iterations, minimum, total: now, ..CoreSummary::default() })
}

/// Detours in intervals, from the end (ns) and the work of each.
fn detours_of_time(samples: &[(f64, f64)]) -> Option<(Found, f64)> {
    let most = samples.iter().map(|sample| sample.1).fold(0.0, f64::max);
    let mut lengths: Vec<f64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    if most <= 0.0 || lengths.is_empty() || lengths.iter().any(|&length| length < 0.0) {
        return None;
    }
    lengths.sort_by(f64::total_cmp);
    let quantum = lengths[lengths.len() / 2];
    let mut detours = Vec::new();
    let mut before = samples[0].0 - quantum;
    let begin = before;
    for &(end, work) in samples {
        let lost = (end - before) - quantum * work / most;
        if lost > quantum * PART {
            detours.push(((before - begin) as u64, lost.round() as u64));
        }
        before = end;
    }
    let iterations = samples.len() as u64;
    let summary = CoreSummary { iterations, minimum: quantum, total: before - begin, ..CoreSummary::default() };
    Some(((detours, summary), quantum))
}

const NO_WORK: &str = "has no two consecutive intervals with work";

/// Imports FTQ: lines with time (ns) and count, or a pair of single-column files with times in ticks.
pub fn ftq(sources: &[Source<'_>], hz: f64) -> Result<Imported, Error> {
    let mut imported = Imported { program: "FTQ".to_owned(), ..Imported::default() };
    let stem = |name: &str, end: &str| name.strip_suffix(end).map(str::to_owned);
    let counts: BTreeMap<String, &Source<'_>> =
        sources.iter().filter_map(|source| Some((stem(source.name, "_counts.dat")?, source))).collect();
    for (place, source) in sources.iter().enumerate() {
        if stem(source.name, "_counts.dat")
            .is_some_and(|stem| sources.iter().any(|s| s.name == format!("{stem}_times.dat")))
        {
            continue;
        }
        let (samples, comments) = match stem(source.name, "_times.dat") {
            Some(stem) => {
                let other = counts
                    .get(&stem)
                    .ok_or_else(|| wrong_file(source, format!("needs {stem}_counts.dat in the same folder")))?;
                let (times, counts) = (rows(source, 1, "a time in ticks")?, rows(other, 1, "a count")?);
                if times.rows.len() != counts.rows.len() {
                    let what = format!("has {} counts for {} times", counts.rows.len(), times.rows.len());
                    return Err(wrong_file(other, what));
                }
                let pair = |(time, count): (&Row, &Row)| (time.1[0] * 1e9 / hz, count.1[0]);
                (times.rows.iter().zip(&counts.rows).map(pair).collect::<Vec<_>>(), times.comments)
            }
            None => {
                let both = rows(source, 2, "a time in ns and a count")?;
                (both.rows.iter().map(|row| (row.1[0], row.1[1])).collect(), both.comments)
            }
        };
        let (found, quantum) = detours_of_time(&samples).ok_or_else(|| wrong_file(source, NO_WORK))?;
        imported.quantum = quantum as u64;
        imported.threshold = (quantum * PART) as u64;
        let core = core(source, &comments, place);
        add(&mut imported, source, core, found)?;
    }
    Ok(imported)
}

/// Imports FWQ: the time of each piece of work in ticks.
pub fn fwq(sources: &[Source<'_>], hz: f64) -> Result<Imported, Error> {
    let mut imported = Imported { program: "FWQ".to_owned(), ..Imported::default() };
    for (place, source) in sources.iter().enumerate() {
        let times = rows(source, 1, "a time in ticks")?;
        let found = detours_of_work(times.rows.iter().map(|row| row.1[0] * 1e9 / hz));
        imported.quantum = found.1.minimum as u64;
        imported.threshold = (found.1.minimum * PART) as u64;
        let core = core(source, &times.comments, place);
        add(&mut imported, source, core, found)?;
    }
    Ok(imported)
}

/// The number after a label in a comment.
fn labelled(comments: &[String], label: &str) -> Option<f64> {
    comments.iter().find_map(|comment| comment.split_once(label)?.1.split_whitespace().next()?.parse().ok())
}

/// Imports netgauge: one file per rank, whose comments name the benchmark.
pub fn netgauge(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "netgauge noise".to_owned(), ..Imported::default() };
    for (place, source) in sources.iter().enumerate() {
        let found = rows(source, 2, "two numbers")?;
        let is = |name: &str| found.comments.iter().any(|comment| comment.starts_with(name));
        let pairs = || found.rows.iter().map(|row| (row.1[0], row.1[1]));
        let core = core(source, &found.comments, place);
        let kept = if is("Selfish Benchmark") {
            let detours = pairs().map(|(start, length)| (start as u64, length as u64)).collect();
            let total = labelled(&found.comments, "Measurement period:").map_or(0.0, |seconds| seconds * 1e9);
            let minimum = labelled(&found.comments, "Minimal cycle length [ns]:").unwrap_or(0.0);
            (detours, CoreSummary { minimum, total, ..CoreSummary::default() })
        } else if is("Fixed Work Quantum") {
            let found = detours_of_work(pairs().map(|(_, us)| us * 1e3));
            imported.quantum = found.1.minimum as u64;
            found
        } else if is("Fixed Time Quantum") {
            let quantum =
                labelled(&found.comments, "Compute-Cycle Duration:").filter(|&us| us > 0.0).ok_or_else(|| {
                    wrong_file(source, "does not say how long an interval is (# Compute-Cycle Duration: N usec)")
                })? * 1e3;
            let samples: Vec<_> = pairs().zip(1u32..).map(|((_, work), i)| (f64::from(i) * quantum, work)).collect();
            let (found, _) = detours_of_time(&samples).ok_or_else(|| wrong_file(source, NO_WORK))?;
            imported.quantum = quantum as u64;
            found
        } else {
            let what = "does not say which benchmark it is; netgauge writes # Selfish Benchmark, # Fixed Work Quantum Benchmark \
                        or # Fixed Time Quantum Benchmark";
            return Err(wrong_file(source, what));
        };
        add(&mut imported, source, core, kept)?;
    }
    Ok(imported)
}
