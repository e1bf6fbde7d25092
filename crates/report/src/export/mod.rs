//! Runs in the formats of other tools' viewers.
//!
//! Where a run has sampled call stacks, they are what profiles consist of, thread by thread. Otherwise profiles have each function in the
//! contexts of its callers, with its loops and the cycles of each thread, which are not sampled; of records without calls, each function
//! with its loops and the cycles of all threads.

mod calls;
mod firefox;
mod folded;
mod perfetto;
mod pprof;
mod speedscope;
mod stacks;

use fxscope_record::Run;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON of speedscope (<https://www.speedscope.app/file-format-schema.json>).
    Speedscope,
    /// JSON of the Firefox Profiler, in its processed form.
    Firefox,
    /// The JSON trace event format, which Perfetto and Chrome read: a time line.
    Perfetto,
    /// The protocol buffer of pprof, compressed.
    Pprof,
    /// A line for each call stack: functions from the outermost inwards, separated by semicolons, a space and a number. Flame graphs
    /// are made from it.
    Folded,
}

impl Format {
    /// The formats by name, each with the viewer that opens it.
    pub const NAMED: &[(&str, Format, &str)] = &[
        ("speedscope", Format::Speedscope, "speedscope, <https://www.speedscope.app>"),
        ("firefox", Format::Firefox, "The Firefox Profiler, <https://profiler.firefox.com>"),
        (
            "perfetto",
            Format::Perfetto,
            "Perfetto, <https://ui.perfetto.dev>, and Chrome's tracing: a time line of threads, calls of MPI and intervals",
        ),
        ("pprof", Format::Pprof, "pprof, compressed with gzip"),
        ("folded", Format::Folded, "A line for each call stack, for flame graphs"),
    ];
}

/// Returns a run in a format.
///
/// # Errors
/// If the run has nothing to show in it; the message says what to record.
pub fn export(run: &Run, format: Format) -> Result<Vec<u8>, String> {
    if format == Format::Perfetto {
        return perfetto::trace(run).map(|trace| trace.to_string().into_bytes());
    }
    if run.hot_spots.is_empty() && run.profile.stacks.samples.is_empty() {
        return Err("the run has neither cycles by instruction nor call stacks, as it was made in functional mode or executed nothing; \
                    repeat it in timing mode"
            .to_owned());
    }
    let stacks = stacks::Stacks::of(run);
    match format {
        Format::Speedscope => Ok(speedscope::profile(run, &stacks).to_string().into_bytes()),
        Format::Firefox => firefox::profile(run, &stacks),
        Format::Pprof => pprof::profile(run, &stacks),
        Format::Folded | Format::Perfetto => Ok(folded::lines(&stacks).into_bytes()),
    }
}
