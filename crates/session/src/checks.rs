//! What does not go together in a scenario, and why.

use fxscope_linux::ClockSource;
use fxscope_machine::Spec;
use fxscope_sim::Mode;
use fxscope_sim::part::{PartError, Selection};

use crate::sectors::SectorOption;
use crate::{Error, PlaceOption, Scenario};

/// What is kept of a run in addition to its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// A trace of the pipeline ([`crate::konata`]).
    pub trace: bool,
    /// Snapshots, from which it continues ([`crate::Checkpoints`]).
    pub snapshots: bool,
}

impl Scenario {
    /// Checks that a run can have what will be kept of it in addition to its counts.
    ///
    /// # Errors
    /// If it cannot; the error names the option that does not go with it.
    pub fn check_kept(&self, kept: Kept) -> Result<(), Error> {
        let options = &self.options;
        let refused = |option: &str, why: &str| Err(Error::option(option, why));
        if kept.trace && options.sample.is_some() {
            return refused("sample", "a trace needs each instruction timed; leave --sample or --konata out");
        }
        if kept.trace && kept.snapshots {
            return refused("checkpoint", "a trace cannot be continued; leave --checkpoint or --konata out");
        }
        if kept == Kept::default() {
            return Ok(());
        }
        if options.data {
            let why = "neither a trace nor snapshots have the objects that exist; leave --data or the other option out";
            return refused("data", why);
        }
        if options.jobs.is_some() {
            let why = "a trace and snapshots are of a run in one piece; leave --jobs or the other option out";
            return refused("jobs", why);
        }
        if let Some((option, argument)) = self.option_about_heap_blocks() {
            let why = format!(
                "neither a trace nor snapshots have the blocks that exist; leave {argument} or the other option out"
            );
            return refused(option, &why);
        }
        Ok(())
    }

    /// Checks that a trace of the pipeline can be made.
    ///
    /// # Errors
    /// If there is no pipeline.
    pub fn check_pipeline(&self) -> Result<(), Error> {
        match self.options.mode {
            Mode::Functional => {
                Err(Error::option("konata", "functional mode has no pipeline to trace; leave out --mode functional"))
            }
            Mode::Timing => Ok(()),
        }
    }

    /// Checks that the whole program is timed: `command` needs each of its accesses, or compares runs that hardly differ.
    ///
    /// # Errors
    /// If it is sampled.
    pub fn refuse_sampling(&self, command: &str) -> Result<(), Error> {
        match self.options.sample {
            Some(_) => {
                let why = format!(
                    "fxscope {command} needs the whole program timed; leave it out, or choose a smaller problem"
                );
                Err(Error::option("sample", why))
            }
            None => Ok(()),
        }
    }

    /// Refuses what needs simulated time where there is none.
    pub(crate) fn check_times(&self) -> Result<(), Error> {
        let options = &self.options;
        let is_given = |ns: Option<u64>| ns.is_some_and(|ns| ns > 0);
        let timed = [
            ("interval", is_given(options.interval_ns), "intervals need"),
            ("stacks", is_given(options.stack_ns), "call stacks are sampled in"),
            ("data", options.data, "misses need"),
        ];
        match timed.iter().find(|(_, given, _)| *given && options.mode == Mode::Functional) {
            Some((option, _, what)) => Err(Error::option(*option, format!("{what} simulated time; use --mode timing"))),
            None => Ok(()),
        }
    }

    /// Returns the name of an option that finds heap blocks by the calls that allocate them, and its argument that does.
    fn option_about_heap_blocks(&self) -> Option<(&'static str, &'static str)> {
        let in_sectors = !SectorOption::blocks(&self.sectors).is_empty();
        let placed = self.placement.places.iter().any(PlaceOption::is_of_blocks);
        let options = [(in_sectors, ("sector", "assign=malloc@CALL")), (placed, ("place", "malloc@CALL=NODE"))];
        options.into_iter().find(|(used, _)| *used).map(|(_, option)| option)
    }

    /// Refuses what sampling does not go with.
    pub(crate) fn check_sampling(&self) -> Result<(), Error> {
        let options = &self.options;
        if options.sample.is_none() {
            return Ok(());
        }
        let reasons = [
            (options.mode == Mode::Functional, "functional mode times nothing that could be sampled; use timing mode"),
            (
                options.interval_ns.is_some_and(|ns| ns > 0),
                "estimates are made for regions, not for intervals of time; leave --interval or --sample out",
            ),
            (options.data, "what is not timed has no misses to attribute to data; leave --data or --sample out"),
            (
                options.stack_ns.is_some_and(|ns| ns > 0),
                "call stacks are sampled at distances of time, which estimates do not have; leave --stacks or --sample out",
            ),
            (
                options.host_threads > 1,
                "a sampled run is simulated by one host thread; leave --host-threads or --sample out",
            ),
        ];
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        if !is_share(options.precision.confidence) || !is_share(options.precision.error) {
            return Err(Error::option(
                "sample",
                "error and confidence are shares between 0 and 1, such as 0.02 and 0.95",
            ));
        }
        match reasons.iter().find(|(applies, _)| *applies) {
            Some((_, why)) => Err(Error::option("sample", *why)),
            None => Ok(()),
        }
    }

    /// Refuses what timing a part only does not go with.
    pub(crate) fn check_part(&self) -> Result<(), Error> {
        let Some(part) = &self.options.part else { return Ok(()) };
        let option = match &part.selection {
            Selection::Region(_) => "region",
            Selection::Between { from: Some(_), .. } => "from",
            Selection::Between { .. } => "until",
        };
        if self.options.mode == Mode::Functional {
            return Err(Error::option(option, "functional mode times nothing; use timing mode, or --max-instructions"));
        }
        if self.options.interval_ns.is_some_and(|ns| ns > 0) && matches!(part.selection, Selection::Region(_)) {
            let why = "intervals follow one another, executions of a region do not; leave --interval out, or time one \
                       execution with --from and --until";
            return Err(Error::option(option, why));
        }
        if self.options.clock == ClockSource::Host && part.uses_time() {
            return Err(Error::option(option, "a time is one of the simulated clock; leave --clock host out"));
        }
        part.check().map_err(|why| {
            let option = if matches!(why, PartError::UnknownBeginning(_)) { "warm" } else { option };
            Error::option(option, why.to_string())
        })
    }

    /// Refuses what timing in intervals does not go with.
    pub(crate) fn check_jobs(&self) -> Result<(), Error> {
        let options = &self.options;
        let is_given = |ns: Option<u64>| ns.is_some_and(|ns| ns > 0);
        let reasons = [
            (options.mode == Mode::Functional, "functional mode times nothing; use timing mode, or leave --jobs out"),
            (
                self.ranks.is_some(),
                "intervals are timed of one thread of one process; leave --ranks out, or time all ranks on one host thread without --jobs",
            ),
            (
                options.host_threads > 1,
                "a program that uses several CMGs has several threads; leave --host-threads or --jobs out",
            ),
            (options.sample.is_some(), "the windows of a sample are no intervals; leave --sample or --jobs out"),
            (
                options.part.is_some(),
                "the whole run is timed in intervals; leave --from, --until and --region out, or --jobs",
            ),
            (
                is_given(options.interval_ns),
                "when an interval of simulated time ends is known only after the program has run; leave --interval or --jobs out",
            ),
            (
                is_given(options.stack_ns),
                "where the program is at a simulated time is known only after it has run; leave --stacks or --jobs out",
            ),
            (options.data, "which data exist at an access is not recorded; leave --data or --jobs out"),
            (
                options.clock == ClockSource::Host,
                "a program that reads the host's clock sees how fast it is simulated; leave --clock host or --jobs out",
            ),
        ];
        match reasons.iter().find(|(applies, _)| options.jobs.is_some() && *applies) {
            Some((_, why)) => Err(Error::option("jobs", *why)),
            None => Ok(()),
        }
    }

    /// Refuses options about heap blocks where not all allocations are seen.
    pub(crate) fn check_heap_blocks(&self) -> Result<(), Error> {
        let options = &self.options;
        let in_parts = options.sample.is_some() || options.part.is_some() || options.jobs.is_some();
        let unseen = in_parts || options.mode == Mode::Functional;
        let Some((option, argument)) = self.option_about_heap_blocks().filter(|_| unseen) else { return Ok(()) };
        let why = format!(
            "heap blocks are found where the whole program is timed as it runs; leave {argument} out, or functional mode, --sample, \
             --jobs, --from, --until and --region"
        );
        Err(Error::option(option, why))
    }

    pub(crate) fn check_host_threads(&self, spec: &Spec) -> Result<(), Error> {
        let (threads, cmgs) = (self.options.host_threads, spec.topology.cmgs);
        if threads <= cmgs as usize {
            return Ok(());
        }
        let machine = &spec.identity.title;
        let s = if cmgs == 1 { "" } else { "s" };
        let most = if cmgs == 1 { "leave it out".to_owned() } else { format!("give 1 to {cmgs}") };
        Err(Error::option(
            format!("host-threads {threads}"),
            format!("each takes the cores of at least one CMG, and {machine} has {cmgs} CMG{s}; {most}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;

    const TRACE: Kept = Kept { trace: true, snapshots: false };
    const SNAPSHOTS: Kept = Kept { trace: false, snapshots: true };

    /// Returns the option that is refused when `kept` will be kept of a run that `change` changes.
    fn refused(kept: Kept, change: impl FnOnce(&mut Scenario)) -> Option<String> {
        let mut scenario = Scenario::new("program");
        change(&mut scenario);
        match scenario.check_kept(kept) {
            Ok(()) => None,
            Err(Error::Option { option, .. }) => Some(option),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_trace_and_snapshots_refuse_what_they_cannot_have() {
        for kept in [TRACE, SNAPSHOTS] {
            assert_eq!(refused(kept, |_| {}), None);
            assert_eq!(refused(kept, |run| run.options.data = true).as_deref(), Some("data"));
            assert_eq!(refused(kept, |run| run.options.jobs = Some(4)).as_deref(), Some("jobs"));
            let place = PlaceOption::parse("malloc@main=cxl").expect("heap blocks");
            assert_eq!(refused(kept, |run| run.placement.places.push(place)).as_deref(), Some("place"));
        }
        let sampled = |run: &mut Scenario| run.options.sample = Some(fxscope_sampling::Plan::auto());
        assert_eq!(refused(TRACE, sampled).as_deref(), Some("sample"));
        assert_eq!(refused(SNAPSHOTS, sampled), None);
        assert_eq!(refused(Kept { trace: true, snapshots: true }, |_| {}).as_deref(), Some("checkpoint"));
        assert_eq!(refused(Kept::default(), |run| run.options.data = true), None);
    }

    #[test]
    fn functional_runs_have_no_times_for_intervals_stacks_and_misses() {
        let usual = RunOptions::default;
        let given = [
            (RunOptions { interval_ns: Some(1000), ..usual() }, "--interval: intervals need simulated time"),
            (RunOptions { stack_ns: Some(1000), ..usual() }, "--stacks: call stacks are sampled in simulated time"),
            (RunOptions { data: true, ..usual() }, "--data: misses need simulated time"),
        ];
        for (options, told) in given {
            let mut scenario = Scenario { options, ..Scenario::new("program") };
            assert!(scenario.check_times().is_ok(), "timed: {told}");
            scenario.options.mode = Mode::Functional;
            let error = scenario.check_times().expect_err(told).to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
