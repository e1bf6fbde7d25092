//! Imports traces of other programs: the kernel's osnoise tracer and rtla, cyclictest, FTQ and FWQ, netgauge.

mod latency;
mod quantum;
mod rtla;
mod tracer;

use std::collections::BTreeMap;
use std::io::{self, Write};

use fxscope_host::text::printable;
use thiserror::Error;

use crate::trace::{Cause, CoreHeader, CoreSummary, Detour, Header, Method, Summary, Writer};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of the kernel's tracers (`trace`, `trace_pipe`, `rtla osnoise -t`).
    Trace,
    /// The table of `rtla osnoise top -q` or `rtla timerlat top -q`.
    RtlaTop,
    /// The histogram of `rtla osnoise hist` or `rtla timerlat hist`.
    RtlaHist,
    /// Output of cyclictest, with a histogram (`-h`) or without.
    Cyclictest,
    /// Files of FTQ: time and count in one file, or `*_times.dat` and `*_counts.dat`.
    Ftq,
    /// Files of FWQ: the time of each piece of work, in ticks.
    Fwq,
    /// Output of netgauge's `noise` pattern: selfish, fwq, ftq.
    Netgauge,
}

impl Format {
    /// The formats by name, each with the programs that write it.
    pub const NAMED: &[(&str, Format, &str)] = &[
        (
            "tracer",
            Format::Trace,
            "Text of the kernel's tracers, perf script or trace-cmd report, or a recording of perf record: osnoise (also with \
             rtla's -t), irq, irq_vectors and sched events; or the sums of the osnoise tracer",
        ),
        ("rtla-top", Format::RtlaTop, "The table of rtla osnoise top -q or rtla timerlat top -q"),
        ("rtla-hist", Format::RtlaHist, "The histogram of rtla osnoise hist or rtla timerlat hist"),
        ("cyclictest", Format::Cyclictest, "Output of cyclictest, with a histogram (-h) or without"),
        ("ftq", Format::Ftq, "FTQ: a file of times and counts, or *_times.dat and *_counts.dat"),
        ("fwq", Format::Fwq, "FWQ: one time per piece of work"),
        ("netgauge", Format::Netgauge, "netgauge -x noise: selfish, fwq, ftq; one file per rank"),
    ];
}

/// Parses a number of ticks per second.
///
/// # Errors
/// If the text is none, or the number is out of range.
pub fn ticks_per_second(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|hz| (1.0..=1e12).contains(hz)).ok_or_else(|| format!("'{text}' is not from 1 to 1e12"))
}

/// An input file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// File name.
    pub name: &'a str,
    /// Contents.
    pub bytes: &'a [u8],
}

/// An error in an input file.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// An error in a line.
    #[error("{file}, line {line}: {what}")]
    Line {
        /// File name.
        file: String,
        /// Line number, counted from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// An error of the whole file.
    #[error("{file}: {what}")]
    File {
        /// File name.
        file: String,
        /// The error, and how to fix it.
        what: String,
    },
}

/// Imported data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The program that wrote the files.
    pub program: String,
    /// The quantum, ns; 0 if there is none.
    pub quantum: u64,
    /// Shortest detour, ns; 0 if unknown.
    pub threshold: u64,
    /// Detours by core: start and length in ns, and cause.
    pub cores: BTreeMap<u32, Vec<(u64, u64, Cause)>>,
    /// Summary of the measurement.
    pub summary: Summary,
}

/// Parses files. `hz` is the number of ticks per second, for times in ticks.
///
/// # Errors
/// Errors in the files, with file and line.
pub fn read(format: Format, sources: &[Source<'_>], hz: f64) -> Result<Imported, Error> {
    let mut imported = match format {
        Format::Trace => tracer::read(sources),
        Format::RtlaTop => rtla::top(sources),
        Format::RtlaHist => rtla::hist(sources),
        Format::Cyclictest => latency::cyclictest(sources),
        Format::Ftq => quantum::ftq(sources, hz),
        Format::Fwq => quantum::fwq(sources, hz),
        Format::Netgauge => quantum::netgauge(sources),
    }?;
    for detours in imported.cores.values_mut() {
        detours.sort();
    }
    let ends = imported.cores.values().flatten().map(|(start, length, _)| start.saturating_add(*length));
    imported.summary.duration = imported.summary.duration.max(ends.max().unwrap_or(0));
    for &core in imported.cores.keys() {
        if !imported.summary.cores.iter().any(|summary| summary.core == core) {
            imported.summary.cores.push(CoreSummary { core, ..CoreSummary::default() });
        }
    }
    imported.summary.cores.sort_by_key(|core| core.core);
    Ok(imported)
}

impl Imported {
    /// Writes the data as a trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write<W: Write>(&self, out: W) -> io::Result<W> {
        let core = |core: &CoreSummary| CoreHeader { core: core.core, minimum: core.minimum };
        let header = Header {
            host: String::new(),
            kernel: String::new(),
            processor: String::new(),
            virtual_machine: None,
            method: Method::Imported,
            program: self.program.clone(),
            clock: "as imported".to_owned(),
            clock_hz: 0.0,
            quantum: self.quantum,
            threshold: self.threshold,
            wanted: 0,
            monotonic_start: 0,
            unix_start: 0,
            priority: None,
            overhead: None,
            cores: self.summary.cores.iter().map(core).collect(),
            notes: Vec::new(),
        };
        let mut writer = Writer::new(out, &header)?;
        for (&core, detours) in &self.cores {
            for (start, length, cause) in detours {
                let cause = writer.cause(cause);
                writer.push(core, Detour { start: *start, length: *length, cause })?;
            }
        }
        writer.finish(&self.summary)
    }
}

/// The lines of a file with their numbers.
fn lines<'a>(source: &Source<'a>) -> impl Iterator<Item = (usize, std::borrow::Cow<'a, str>)> {
    source.bytes.split(|&b| b == b'\n').enumerate().map(|(i, line)| (i + 1, String::from_utf8_lossy(line)))
}

fn wrong_line(source: &Source<'_>, line: usize, what: impl Into<String>) -> Error {
    Error::Line { file: source.name.to_owned(), line, what: what.into() }
}

fn wrong_file(source: &Source<'_>, what: impl Into<String>) -> Error {
    Error::File { file: source.name.to_owned(), what: what.into() }
}

/// The beginning of a text, safe to quote.
fn quoted(text: &str) -> String {
    let mut short: String = printable(text.trim()).chars().take(40).collect();
    if text.trim().chars().nth(40).is_some() {
        short.push('…');
    }
    format!("'{short}'")
}
