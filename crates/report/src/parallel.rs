//! Ranks of a run: how each divides its time between computation and MPI, and how well they are balanced.

use std::collections::BTreeMap;

use fxscope_record::{MpiCall, MpiFunction, Run};

/// The functions that begin and end the part of a program in which ranks work together.
const BEGIN: [&str; 2] = ["MPI_Init", "MPI_Init_thread"];
const END: &str = "MPI_Finalize";

/// The time of a rank between the end of `MPI_Init` and the beginning of `MPI_Finalize`.
#[derive(Clone, Debug, PartialEq)]
pub struct RankTime {
    /// The rank.
    pub rank: u32,
    /// The number of its process in the record.
    pub process: u32,
    /// All of it, ns.
    pub ns: u64,
    /// The part inside functions of MPI, ns, by kind: send, receive, wait, collective, one-sided, other.
    pub mpi_ns: BTreeMap<String, u64>,
}

impl RankTime {
    /// Returns the time inside functions of MPI, ns.
    #[must_use]
    pub fn all_mpi_ns(&self) -> u64 {
        self.mpi_ns.values().sum()
    }

    /// Returns the time outside functions of MPI, ns.
    #[must_use]
    pub fn compute_ns(&self) -> u64 {
        self.ns.saturating_sub(self.all_mpi_ns())
    }
}

/// Parallel efficiency and its factors, as the POP centre of excellence defines them: from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Mean over maximum of the ranks' time outside MPI.
    pub load_balance: f64,
    /// Maximum of the ranks' time outside MPI over the time of the run.
    pub communication: f64,
}

impl Efficiency {
    /// Returns the parallel efficiency, the product of both.
    #[must_use]
    pub fn parallel(self) -> f64 {
        self.load_balance * self.communication
    }
}

/// Returns the times of all ranks that have called MPI, by ascending rank.
#[must_use]
pub fn rank_times(run: &Run) -> Vec<RankTime> {
    let ranks = run.parallel.processes.iter().filter_map(|process| Some((process.rank?, process.number)));
    ranks.filter_map(|(rank, process)| rank_time(run, rank, process)).collect()
}

fn rank_time(run: &Run, rank: u32, process: u32) -> Option<RankTime> {
    let parallel = &run.parallel;
    let name = |call: &MpiCall| parallel.functions.get(call.function as usize).map_or("", |f| f.name.as_str());
    let mut calls = parallel.calls.iter().filter(|call| call.process == process).peekable();
    let first = calls.peek()?.begin_ns;
    let (mut from, mut to, mut last) = (None, None, first);
    for call in calls {
        last = call.end_ns;
        if BEGIN.contains(&name(call)) {
            from = Some(call.end_ns);
        } else if name(call) == END {
            to = Some(call.begin_ns);
        }
    }
    let ns = to.unwrap_or(last).saturating_sub(from.unwrap_or(first));
    let mut mpi_ns: BTreeMap<String, u64> = BTreeMap::new();
    let inside = |f: &&MpiFunction| f.process == process && !BEGIN.contains(&f.name.as_str()) && f.name != END;
    for function in parallel.functions.iter().filter(inside) {
        *mpi_ns.entry(function.kind.clone()).or_default() += function.ns;
    }
    Some(RankTime { rank, process, ns, mpi_ns })
}

/// Returns the efficiency of ranks; `None` if there is at most one, or if none computes.
#[must_use]
pub fn efficiency(times: &[RankTime]) -> Option<Efficiency> {
    if times.len() < 2 {
        return None;
    }
    let longest = times.iter().map(|time| time.ns).max()? as f64;
    let most = times.iter().map(RankTime::compute_ns).max()? as f64;
    let mean = times.iter().map(|time| time.compute_ns() as f64).sum::<f64>() / times.len() as f64;
    (most > 0.0).then(|| Efficiency { load_balance: mean / most, communication: most / longest })
}

/// The messages from one rank to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Their number.
    pub count: u64,
    /// Their bytes, as far as known.
    pub bytes: u64,
}

/// Returns the messages between ranks, by sender and receiver: those of sends, and one-sided accesses, in the order of their
/// arguments. Messages to ranks that are not known are not among them.
#[must_use]
pub fn messages(run: &Run) -> BTreeMap<(u32, u32), Messages> {
    let parallel = &run.parallel;
    let ranks: BTreeMap<u32, u32> = parallel.processes.iter().filter_map(|p| Some((p.number, p.rank?))).collect();
    let mut between: BTreeMap<(u32, u32), Messages> = BTreeMap::new();
    for call in &parallel.calls {
        let kind = parallel.functions.get(call.function as usize).map_or("", |f| f.kind.as_str());
        let (Some(&from), Some(to)) = (ranks.get(&call.process), call.partner) else { continue };
        if matches!(kind, "send" | "one-sided") {
            let messages = between.entry((from, to)).or_default();
            messages.count += 1;
            messages.bytes = messages.bytes.saturating_add(call.bytes.unwrap_or(0));
        }
    }
    between
}

#[cfg(test)]
mod tests {
    use super::{RankTime, efficiency};

    fn time(rank: u32, ns: u64, wait_ns: u64) -> RankTime {
        RankTime { rank, process: rank, ns, mpi_ns: [("wait".to_owned(), wait_ns)].into() }
    }

    #[test]
    fn efficiency_is_load_balance_times_communication() {
        let times = [time(0, 100, 20), time(1, 100, 60)];
        let efficiency = efficiency(&times).expect("two ranks compute");
        assert_eq!((efficiency.load_balance, efficiency.communication), (0.75, 0.8));
        assert!((efficiency.parallel() - 0.6).abs() < 1e-12, "mean computation over time");
    }

    #[test]
    fn one_rank_or_none_that_computes_has_no_efficiency() {
        assert_eq!(efficiency(&[time(0, 100, 20)]), None);
        assert_eq!(efficiency(&[time(0, 100, 100), time(1, 100, 100)]), None);
    }
}
