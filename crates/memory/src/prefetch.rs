//! The hardware prefetcher of a core.
//!
//! The machine selects a policy, which decides what to prefetch. A policy is shown demand accesses: each miss of L1D, the
//! first use of each prefetched line and, if it has an injection mode, each access through a pointer that names injection
//! registers. It returns lines to prefetch into L1 and into L2. The hierarchy translates and requests them
//! (`hierarchy/prefetching.rs`), and reports L2's answer to the policy. The registers by which programs control prefetching
//! are the same for all policies ([`control`]).

pub mod control;
mod next_line;
mod stream;

use fxscope_counts::Signal;
use fxscope_machine::spec::{Prefetch as PrefetchSpec, PrefetchPolicy};

use crate::pointer::Steering;
use control::{Control, Defaults, Registers, Reliableness};

/// A demand access, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Its virtual address.
    pub addr: u64,
    /// Whether L1D missed.
    pub missed: bool,
    /// What its pointer requests of the prefetcher.
    pub steering: Steering,
}

/// What a policy does.
trait Policy: Sized {
    /// Whether it has an injection mode, and is shown each access through a pointer that names injection registers.
    const INJECTION: bool;

    /// The policy at the start of a program, for lines of `1 << line_shift` bytes.
    fn new(spec: &PrefetchSpec, line_shift: u32) -> Self;

    /// The prefetches that an access triggers, as far as the program's `control` allows them.
    fn access(&mut self, access: Access, control: &Control) -> Option<Requests>;

    /// A prefetch into L2 that `entry` requested hit or missed in L2.
    fn l2_answered(&mut self, _entry: usize, _hit: bool) {}

    /// A prefetch into L1 that `entry` requested missed L2.
    fn l1_missed_l2(&mut self, _entry: usize) {}

    /// A prefetch that `entry` requested missed the TLB, and was dropped with those behind it.
    fn stop(&mut self, _entry: usize) {}
}

/// Lines to prefetch into one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first one.
    pub first: u64,
    /// How many there are.
    pub count: u32,
    /// Of each of them.
    pub reliableness: Reliableness,
}

/// The mode of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By what the hardware detects.
    Stream,
    /// Injection through the queue.
    Allocate,
    /// Injection by each access.
    NoAllocate,
}

impl Mode {
    /// The counters of its requests into L1 and into L2.
    #[must_use]
    pub fn counters(self) -> (Signal, Signal) {
        match self {
            Mode::Stream => (Signal::L1HwpfStreamPf, Signal::L2HwpfStreamPf),
            Mode::Allocate => (Signal::L1HwpfInjAllocPf, Signal::L2HwpfInjAllocPf),
            Mode::NoAllocate => (Signal::L1HwpfInjNoallocPf, Signal::L2HwpfInjNoallocPf),
        }
    }
}

/// Requests that follow from one access. Lines are numbers of virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// For L1.
    pub l1: Run,
    /// For L2.
    pub l2: Run,
    /// From one line of a run to the next, +1 or −1.
    pub step: i64,
    /// The mode.
    pub mode: Mode,
    /// The entry of the policy's own tables that requests, if one does: answers name it.
    pub entry: Option<usize>,
}

/// Makes an enumeration of policies, which matches in place: the model calls no policy through a pointer.
macro_rules! policies {
    ($($policy:ident = $module:ident::$name:ident,)+) => {
        /// The policy of a prefetcher.
        #[derive(Clone, serde::Deserialize, serde::Serialize)]
        enum Selected {
            $($policy($module::$name),)+
        }

        impl Selected {
            fn new(spec: &PrefetchSpec, line_shift: u32) -> Selected {
                match spec.policy {
                    $(PrefetchPolicy::$policy => Selected::$policy($module::$name::new(spec, line_shift)),)+
                }
            }

            #[inline(always)]
            fn has_injection(&self) -> bool {
                match self {
                    $(Selected::$policy(_) => $module::$name::INJECTION,)+
                }
            }

            #[inline(always)]
            fn access(&mut self, access: Access, control: &Control) -> Option<Requests> {
                match self {
                    $(Selected::$policy(policy) => policy.access(access, control),)+
                }
            }

            fn l2_answered(&mut self, entry: usize, hit: bool) {
                match self {
                    $(Selected::$policy(policy) => policy.l2_answered(entry, hit),)+
                }
            }

            fn l1_missed_l2(&mut self, entry: usize) {
                match self {
                    $(Selected::$policy(policy) => policy.l1_missed_l2(entry),)+
                }
            }

            fn stop(&mut self, entry: usize) {
                match self {
                    $(Selected::$policy(policy) => policy.stop(entry),)+
                }
            }
        }
    };
}

policies! {
    Stream = stream::Stream,
    NextLine = next_line::NextLine,
}

/// The prefetcher of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Prefetcher {
    policy: Selected,
    control: Control,
    defaults: Defaults,
}

impl Prefetcher {
    /// A prefetcher that has seen nothing, for lines of `1 << line_shift` bytes, controlled by registers that hold zero.
    #[must_use]
    pub fn new(spec: &PrefetchSpec, line_shift: u32) -> Prefetcher {
        let defaults = spec.into();
        Prefetcher {
            policy: Selected::new(spec, line_shift),
            control: Control::new(&Registers::default(), &defaults),
            defaults,
        }
    }

    /// Sets the registers. The policy continues with the new settings.
    pub fn set_registers(&mut self, registers: &Registers) {
        self.control = Control::new(registers, &self.defaults);
    }

    /// How it prefetches.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Whether it observes every access through such a pointer, not only misses and first hits of prefetched lines.
    #[inline(always)]
    #[must_use]
    pub fn watches(&self, steering: Steering) -> bool {
        self.control.injection_of(steering).is_some() && self.policy.has_injection()
    }

    /// The prefetches that a demand access triggers.
    #[inline(always)]
    pub fn access(&mut self, access: Access) -> Option<Requests> {
        self.policy.access(access, &self.control)
    }

    /// A prefetch into L2 that `entry` requested hit or missed in L2.
    pub fn l2_answered(&mut self, entry: usize, hit: bool) {
        self.policy.l2_answered(entry, hit);
    }

    /// A prefetch into L1 that `entry` requested missed L2.
    pub fn l1_missed_l2(&mut self, entry: usize) {
        self.policy.l1_missed_l2(entry);
    }

    /// A prefetch that `entry` requested missed the TLB, and was dropped with those behind it.
    pub fn stop(&mut self, entry: usize) {
        self.policy.stop(entry);
    }
}

#[cfg(test)]
mod tests;
