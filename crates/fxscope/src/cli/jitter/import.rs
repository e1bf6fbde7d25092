//! `fxscope jitter import`: traces of other programs.

use std::io::BufWriter;
use std::path::PathBuf;

use fxscope::lab::collect::{Recorded, recorded_text};
use fxscope::lab::jitter;
use fxscope::osnoise::import::{self, Source};

use super::super::Outcome;
use super::super::form::show;
use super::super::output::{failure, replaceable};

/// Make a trace from the measurements of another program, and show it.
#[derive(clap::Args)]
pub struct Args {
    /// The program that wrote the files.
    #[arg(value_enum)]
    format: Format,
    /// Files; several files are those of several cores.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ticks per second, for files that have times in ticks (fwq, pairs of ftq).
    #[arg(long, value_name = "HZ", default_value_t = 1e9, value_parser = rate)]
    hz: f64,
    /// perf program that reads recordings of perf record (tracer).
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// The trace to write, a file that is replaced atomically.
    #[arg(short, long, value_name = "FILE.fxn")]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text of the kernel's tracers, perf script or trace-cmd report, or a recording of perf record: osnoise (also with
    /// rtla's -t), irq, irq_vectors and sched events; or the sums of the osnoise tracer.
    Tracer,
    /// The table of rtla osnoise top -q or rtla timerlat top -q.
    RtlaTop,
    /// The histogram of rtla osnoise hist or rtla timerlat hist.
    RtlaHist,
    /// Output of cyclictest, with a histogram (-h) or without.
    Cyclictest,
    /// FTQ: a file of times and counts, or *_times.dat and *_counts.dat.
    Ftq,
    /// FWQ: one time per piece of work.
    Fwq,
    /// netgauge -x noise: selfish, fwq, ftq; one file per rank.
    Netgauge,
}

/// Largest file, bytes.
const MOST_BYTES: u64 = 4 << 30;

fn rate(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|hz| (1.0..=1e12).contains(hz)).ok_or_else(|| format!("'{text}' is not from 1 to 1e12"))
}

/// Reads the files, writes the trace, and shows it.
pub(super) fn import(args: &Args) -> Outcome {
    let Some(output) = replaceable(&args.output)? else {
        return Err(
            format!("{}: is not a regular file; give the path of a file for the trace", args.output.display()).into()
        );
    };
    let names: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
    let contents = args.files.iter().map(|path| fxscope::host::read(path, MOST_BYTES));
    let mut contents: Vec<Vec<u8>> = contents.collect::<Result<_, _>>()?;
    if args.format == Format::Tracer {
        let text = |(path, bytes): (&PathBuf, _)| recorded_text(&args.perf, path, bytes, Recorded::Events);
        contents = args.files.iter().zip(contents).map(text).collect::<Result<_, _>>()?;
    }
    let sources: Vec<Source<'_>> = names.iter().zip(&contents).map(|(name, bytes)| Source { name, bytes }).collect();
    let format = match args.format {
        Format::Tracer => import::Format::Trace,
        Format::RtlaTop => import::Format::RtlaTop,
        Format::RtlaHist => import::Format::RtlaHist,
        Format::Cyclictest => import::Format::Cyclictest,
        Format::Ftq => import::Format::Ftq,
        Format::Fwq => import::Format::Fwq,
        Format::Netgauge => import::Format::Netgauge,
    };
    let imported = import::read(format, &sources, args.hz)?;
    let written = output.replace(|file| imported.write(BufWriter::new(file)).map(drop));
    written.map_err(|e| failure(output.path(), &e))?;
    let view = jitter::look(output.path())?;
    show(&jitter::trace_sheet(&view, &args.output.display().to_string()))
}
