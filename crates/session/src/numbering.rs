//! Numbers of processes and threads in a record, and the calls of MPI by these numbers.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_linux::Guest;
use fxscope_linux::guest::PID;
use fxscope_record::{MpiCall, MpiFunction, Parallel, Process, Thread};
use fxscope_sim::Outcome;

/// The numbers of a run's threads in its record.
pub(crate) struct Numbering {
    processes: Vec<Process>,
    /// By the number of the thread in the simulation: the process, and the thread in it.
    threads: BTreeMap<u32, (u32, u32)>,
}

impl Numbering {
    /// Numbers all ranks, and the other processes and the threads that have counts or calls: ranks by themselves, all other processes behind them in the order in
    /// which they began, and the threads of each process in the order in which they began.
    pub(crate) fn of(outcome: &Outcome, guest: &Guest) -> Numbering {
        let with_counts = outcome.regions.iter().take(1).flat_map(|all| all.threads.keys().copied());
        // Functional runs count by process; calls are those of threads.
        let with_calls = outcome.mpi.sums.iter().map(|sum| sum.thread);
        let counted: BTreeSet<u32> = with_counts.chain(with_calls).collect();
        let ranks = guest.family().iter().filter_map(|member| member.rank);
        let mut next_other = ranks.max().map_or(0, |highest| highest.saturating_add(1));
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
        let mut threads_of: BTreeMap<u32, u32> = BTreeMap::new();
        let mut threads = BTreeMap::new();
        for thread in counted {
            let Some(member) = guest.process_of_thread(PID + thread) else { continue };
            let number = *numbers.entry(member.pid).or_insert_with(|| {
                member.rank.unwrap_or_else(|| {
                    next_other += 1;
                    next_other - 1
                })
            });
            let program = String::from_utf8_lossy(&member.program).into_owned();
            // Of the processes of a rank, the last one is its program, started by scripts.
            processes.insert(number, Process { number, rank: member.rank, program });
            let in_process = threads_of.entry(number).or_default();
            threads.insert(thread, (number, *in_process));
            *in_process += 1;
        }
        // Ranks that have executed nothing have no counts.
        for member in guest.family() {
            let Some(rank) = member.rank else { continue };
            let program = String::from_utf8_lossy(&member.program).into_owned();
            processes.entry(rank).or_insert(Process { number: rank, rank: Some(rank), program });
        }
        Numbering { processes: processes.into_values().collect(), threads }
    }

    /// Returns the thread with this number in the simulation, on a CPU.
    pub(crate) fn thread(&self, thread: u32, cpu: u32) -> Thread {
        let (process, thread) = self.threads.get(&thread).copied().unwrap_or((0, thread));
        Thread { process, thread, cpu, ..Thread::default() }
    }

    /// Returns the processes, and their calls of MPI.
    pub(crate) fn parallel(&self, outcome: &Outcome) -> Parallel {
        let mut by_function: BTreeMap<(u32, &str), MpiFunction> = BTreeMap::new();
        for sum in &outcome.mpi.sums {
            let process = self.thread(sum.thread, 0).process;
            let function = by_function.entry((process, sum.name)).or_insert_with(|| MpiFunction {
                process,
                name: sum.name.to_owned(),
                kind: sum.kind.name().to_owned(),
                ..MpiFunction::default()
            });
            function.calls += sum.calls;
            function.ns += sum.ns;
            function.bytes = function.bytes.saturating_add(sum.bytes);
        }
        let places: BTreeMap<(u32, &str), u32> = by_function.keys().copied().zip(0..).collect();
        let call = |call: &fxscope_sim::mpi::Call| {
            let Thread { process, thread, .. } = self.thread(call.thread, 0);
            let function = places[&(process, call.name())];
            let fxscope_sim::mpi::Call { bytes, partner, begin_ns, end_ns, .. } = *call;
            MpiCall { process, thread, function, bytes, partner, begin_ns, end_ns }
        };
        let calls = outcome.mpi.calls.iter().map(call).collect();
        let functions = by_function.into_values().collect();
        Parallel { processes: self.processes.clone(), functions, calls, dropped_calls: outcome.mpi.dropped }
    }
}
