//! A program as each of its ranks sees it: computation, then a call of MPI that other ranks may delay.
//!
//! A recorded run becomes a [`Program`]; its text form ([`Program::parse`]) can be read and edited. [`Schedule`] puts
//! the steps of all ranks of a node into an order in which they can be replayed on any number of nodes.

mod schedule;
mod text;

use std::fmt;

pub use schedule::{Costs, Met, Op, Round, RoundEnd, Schedule};

/// Largest number of ranks of a node.
pub const MOST_RANKS: usize = 1024;
/// Largest number of steps of all ranks.
pub const MOST_STEPS: usize = 4_000_000;
/// Longest computation or copy of a step, nanoseconds: a day.
pub const LONGEST_STEP: u64 = 86_400_000_000_000;
/// Largest message or contribution, bytes.
pub const MOST_BYTES: u64 = 1 << 50;

/// Operations in which all ranks take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// Nothing is transferred.
    Barrier,
    /// A reduction whose result all receive, and prefix reductions.
    Allreduce,
    /// A reduction whose result one rank receives.
    Reduce,
    /// One rank sends the same to all.
    Broadcast,
    /// One rank receives from all, or sends a part to each.
    Gather,
    /// Each rank sends the same to all.
    Allgather,
    /// Each rank sends a part to each.
    Alltoall,
    /// Each rank exchanges with its neighbours in a grid.
    Neighbours,
}

impl Collective {
    /// All, with their names in the text form.
    pub const NAMES: [(&'static str, Collective); 8] = [
        ("barrier", Collective::Barrier),
        ("allreduce", Collective::Allreduce),
        ("reduce", Collective::Reduce),
        ("bcast", Collective::Broadcast),
        ("gather", Collective::Gather),
        ("allgather", Collective::Allgather),
        ("alltoall", Collective::Alltoall),
        ("neighbours", Collective::Neighbours),
    ];

    /// Returns its name in the text form.
    #[must_use]
    pub fn name(self) -> &'static str {
        Collective::NAMES.iter().find(|(_, which)| *which == self).map_or("", |(name, _)| name)
    }

    /// Returns whether all ranks of a node contribute to what it sends; otherwise the ranks' data become one.
    #[must_use]
    pub fn adds_up(self) -> bool {
        !matches!(self, Collective::Barrier | Collective::Allreduce | Collective::Reduce | Collective::Broadcast)
    }
}

/// A call of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Hands a message over, and does not wait for its receiver.
    Send {
        /// The receiver.
        to: u32,
        /// Size of the message.
        bytes: u64,
    },
    /// Hands a message over when its receiver has begun to receive.
    SynchronousSend {
        /// The receiver.
        to: u32,
        /// Size of the message.
        bytes: u64,
    },
    /// Waits for the next message of a rank.
    Receive {
        /// The sender.
        from: u32,
    },
    /// Waits for all ranks.
    Collective {
        /// The operation.
        kind: Collective,
        /// Bytes that this rank contributes.
        bytes: u64,
    },
}

/// Computation, and the call that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Computation before the call, nanoseconds.
    pub compute: u64,
    /// The call.
    pub call: Call,
    /// Time in the call after all that it waits for is there, nanoseconds.
    pub copy: u64,
}

/// What a rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Its steps in order.
    pub steps: Vec<Step>,
    /// Computation after the last call, nanoseconds.
    pub rest: u64,
}

/// The ranks of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Threads of each rank, each on its own core.
    pub threads: u32,
    /// The ranks by number.
    pub ranks: Vec<Rank>,
}

/// Why a program cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rank.
    pub rank: usize,
    /// Its step, from 0; the number of its steps for its end.
    pub step: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, call {}: {}", self.rank, self.step + 1, self.what)
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> String {
        fault.to_string()
    }
}

impl Program {
    /// Returns the computation of a rank, averaged over all, nanoseconds.
    #[must_use]
    pub fn compute(&self) -> f64 {
        let of = |rank: &Rank| rank.rest as f64 + rank.steps.iter().map(|step| step.compute as f64).sum::<f64>();
        self.ranks.iter().map(of).sum::<f64>() / self.ranks.len().max(1) as f64
    }

    /// Returns the number of steps of all ranks.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.ranks.iter().map(|rank| rank.steps.len()).sum()
    }

    /// Checks numbers of ranks, threads and steps, times, sizes and partners.
    ///
    /// # Errors
    /// The first step out of bounds.
    pub fn check(&self) -> Result<(), Fault> {
        let fault = |rank: usize, step: usize, what: String| Fault { rank, step, what };
        let cores = self.ranks.len() as u64 * u64::from(self.threads);
        if !(1..=MOST_RANKS).contains(&self.ranks.len()) {
            return Err(fault(0, 0, format!("{} ranks; 1 to {MOST_RANKS} are possible", self.ranks.len())));
        }
        if !(1..=u64::from(u16::MAX)).contains(&cores) {
            let what = format!("{} ranks of {} threads; 1 to 65535 cores are possible", self.ranks.len(), self.threads);
            return Err(fault(0, 0, what));
        }
        if self.steps() > MOST_STEPS {
            return Err(fault(0, 0, format!("{} calls; {MOST_STEPS} are possible", self.steps())));
        }
        for (number, rank) in self.ranks.iter().enumerate() {
            for (i, step) in rank.steps.iter().enumerate() {
                self.check_step(number, step).map_err(|what| fault(number, i, what))?;
            }
            if rank.rest > LONGEST_STEP {
                return Err(fault(number, rank.steps.len(), too_long(rank.rest)));
            }
        }
        Ok(())
    }

    fn check_step(&self, rank: usize, step: &Step) -> Result<(), String> {
        if let Some(time) = [step.compute, step.copy].into_iter().find(|&time| time > LONGEST_STEP) {
            return Err(too_long(time));
        }
        let (partner, bytes) = match step.call {
            Call::Send { to, bytes } | Call::SynchronousSend { to, bytes } => (Some(to), bytes),
            Call::Receive { from } => (Some(from), 0),
            Call::Collective { bytes, .. } => (None, bytes),
        };
        if bytes > MOST_BYTES {
            return Err(format!("{bytes} bytes; {MOST_BYTES} at most"));
        }
        match partner {
            Some(partner) if partner as usize >= self.ranks.len() => {
                Err(format!("there is no rank {partner}; ranks are 0 to {}", self.ranks.len() - 1))
            }
            Some(partner) if partner as usize == rank && matches!(step.call, Call::SynchronousSend { .. }) => {
                Err("a rank that waits for itself to receive waits forever; use send".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn too_long(time: u64) -> String {
    format!("{time} ns; a day ({LONGEST_STEP} ns) at most")
}
