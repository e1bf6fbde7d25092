//! The values of a region's metrics, for the whole and for its parts.

use fxscope_pmu::{Metrics, Values};
use fxscope_record::{Region, Run};

use crate::document::Place;

/// The values of metrics for a part of a region's work.
pub(crate) struct Part {
    pub place: Place,
    pub values: Values,
}

/// What a region's threads, CMGs and processes have.
pub(crate) struct Evaluated {
    /// One for each thread, in the order of the region.
    pub threads: Vec<Part>,
    /// One for each CMG that a thread runs on.
    pub cmgs: Vec<Part>,
    /// One for each process.
    pub processes: Vec<Part>,
    /// All threads together.
    pub total: Values,
}

impl Evaluated {
    pub fn of(run: &Run, region: &Region) -> Evaluated {
        let metrics = Metrics::built_in();
        let threads = region.threads.iter().map(|t| Part {
            place: Place::Thread { process: 0, thread: t.thread, cpu: t.cpu },
            values: metrics.of_region(&Region { threads: vec![t.clone()], ..Region::default() }, &run.constants),
        });
        Evaluated {
            threads: threads.collect(),
            cmgs: Vec::new(),
            processes: Vec::new(),
            total: metrics.of_region(region, &run.constants),
        }
    }
}
