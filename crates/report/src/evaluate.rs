//! The values of a region's metrics, for the whole and for its parts.

use fxscope_pmu::{Evaluation, Team, Values};
use fxscope_record::{Region, Run, Thread};

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
        let evaluation = Evaluation::new(run, region);
        let thread = |(t, values): (&Thread, Values)| Part {
            place: Place::Thread { process: t.process, thread: t.thread, cpu: t.cpu },
            values,
        };
        let cmg = |(team, values): (&Team, Values)| Part { place: Place::Cmg(team.cmg), values };
        let process = |process| Some(Part { place: Place::Process(process), values: evaluation.process(process)? });
        Evaluated {
            threads: region.threads.iter().zip(evaluation.threads()).map(thread).collect(),
            cmgs: evaluation.cmgs().into_iter().map(cmg).collect(),
            processes: evaluation.processes().filter_map(process).collect(),
            total: evaluation.total(),
        }
    }
}
