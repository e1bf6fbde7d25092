//! A program's data as objects that can be placed.

use fxscope_latency::methods::tier::Traffic;
use fxscope_machine::Spec;
use fxscope_record::{DataObject, ObjectKind, Run};
use fxscope_session::{DataSeries, ObjectTraffic};

/// Most objects that are considered, the largest.
const MOST: usize = 256;

/// Data of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct TierObject {
    /// Its kind and name.
    pub title: String,
    /// Its name for `--place`, or why it stays where it is.
    pub place: Result<String, &'static str>,
    /// Most bytes of it at any time; 0: not known.
    pub bytes: u64,
    /// Its lines between L2 and memory.
    pub traffic: Traffic,
    /// Share of the time that is lost if it alone is in the tier, as predicted; `None`: it stays.
    pub loss: Option<f64>,
    /// The same as simulated.
    pub simulated: Option<f64>,
    /// Its index in the record.
    pub(super) index: usize,
}

/// Least number of pages of an object that can be placed: its first and last page may have other data as well.
const LEAST_PAGES: u64 = 2;

/// Returns the data of a run, the largest first.
pub(super) fn objects(run: &Run, series: &DataSeries, spec: &Spec) -> Vec<TierObject> {
    let of = |(index, object): (usize, &DataObject)| {
        let of_intervals = series.intervals.iter().filter_map(|interval| interval.get(&index));
        TierObject {
            title: title(object),
            place: place(object, spec),
            bytes: object.bytes,
            traffic: of_intervals.map(traffic).fold(Traffic::default(), Traffic::plus),
            loss: None,
            simulated: None,
            index,
        }
    };
    let mut all: Vec<_> = run.profile.data.objects.iter().enumerate().map(of).collect();
    all.sort_by_key(|object| (std::cmp::Reverse(object.bytes), object.index));
    all.truncate(MOST);
    all
}

/// Returns the lines of an object between L2 and memory. A line is written back at most once for each time that it came into L2, however
/// often L1D had it.
pub(super) fn traffic(of: &ObjectTraffic) -> Traffic {
    let written = of.written.min(of.demanded + of.prefetched + of.zeroed).max(of.zeroed);
    Traffic { demanded: of.demanded as f64, prefetched: of.prefetched as f64, written: written as f64 }
}

fn title(object: &DataObject) -> String {
    let line = object.source.as_ref().map(|source| format!(" ({}:{})", source.file, source.line));
    format!("{} {}{}", object.kind.name(), object.name, line.unwrap_or_default())
}

/// Returns the name of an object for `--place`, or why it cannot be placed.
fn place(object: &DataObject, spec: &Spec) -> Result<String, &'static str> {
    let pages = &spec.pages;
    let (name, page) = match object.kind {
        ObjectKind::Variable if object.name.ends_with("(thread-local)") => return Err("it is thread-local"),
        ObjectKind::Variable => (object.name.clone(), pages.bss.max(pages.data)),
        ObjectKind::Heap => (format!("malloc@{}", object.name), pages.mmap.max(pages.heap)),
        ObjectKind::Mapping => (format!("mmap@{}", object.name), pages.mmap),
        ObjectKind::Stack => return Err("it is a stack"),
        ObjectKind::Other => return Err("it is no variable, heap block or mapping of the program"),
    };
    let fills_pages = object.bytes / object.blocks.max(1) >= LEAST_PAGES * page;
    if fills_pages { Ok(name) } else { Err("its blocks fill fewer than two pages, which --pages can make smaller") }
}
