//! Why no instruction commits: the leaves of the PMU's cycle accounting.
//!
//! The PMU's events are sums of leaves, so that they add up by construction. Records, reports and documents take names and titles
//! from this table.

use crate::{Signal, Signals};

macro_rules! stalls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $title:literal, $short:literal, [$($signal:ident),*];)+) => {
        /// Why no instruction commits in a cycle (microarchitecture manual 14.4, tables 14-6 and 14-7).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        pub enum Stall {
            $($(#[$doc])* $variant,)+
        }

        impl Stall {
            /// All causes, in order.
            pub const ALL: &[Stall] = &[$(Stall::$variant,)+];
            /// Number of causes.
            pub const COUNT: usize = Stall::ALL.len();

            /// Returns the PMU event that counts this cause, or in lower case the manual's name if it follows from several
            /// events.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Stall::$variant => $name,)+ }
            }
            /// Returns its name for people, as in the metrics of cycle accounting.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Stall::$variant => $title,)+ }
            }
            /// Returns its shortest name, for narrow columns.
            #[must_use]
            pub const fn short(self) -> &'static str {
                match self { $(Stall::$variant => $short,)+ }
            }
            /// Returns the events that count it, in addition to that of cycles without commit.
            #[must_use]
            pub const fn events(self) -> &'static [Signal] {
                match self { $(Stall::$variant => &[$(Signal::$signal),*],)+ }
            }
        }
    };
}

stalls! {
    /// The oldest operation, a base instruction's memory access, is not known to have missed yet.
    BaseL1 = "ld_comp_wait_l1_hit_ex", "Integer load L1D wait", "int L1D", [LdCompWait, LdCompWaitEx];
    /// … is known to have missed the L1D cache.
    BaseL2 = "LD_COMP_WAIT_L1_MISS_EX", "Integer load L2 wait", "int L2",
        [LdCompWait, LdCompWaitEx, LdCompWaitL1Miss, LdCompWaitL1MissEx];
    /// … is known to have missed the L2 cache.
    BaseMemory = "LD_COMP_WAIT_L2_MISS_EX", "Integer load memory wait", "int memory",
        [LdCompWait, LdCompWaitEx, LdCompWaitL2Miss, LdCompWaitL2MissEx];
    /// The oldest operation, a SIMD&FP or SVE instruction's memory access, is not known to have missed yet.
    VectorL1 = "ld_comp_wait_l1_hit_fl", "FP load L1D wait", "FP L1D", [LdCompWait];
    /// … is known to have missed the L1D cache.
    VectorL2 = "ld_comp_wait_l1_miss_fl", "FP load L2 wait", "FP L2", [LdCompWait, LdCompWaitL1Miss];
    /// … is known to have missed the L2 cache.
    VectorMemory = "ld_comp_wait_l2_miss_fl", "FP load memory wait", "FP memory", [LdCompWait, LdCompWaitL2Miss];
    /// The oldest operation, a base instruction's memory access, is complete, but no prefetch port is free for the hardware
    /// prefetch that follows it.
    BasePrefetchPort = "LD_COMP_WAIT_PFP_BUSY_EX", "Prefetch port busy, hardware prefetch", "int PFP",
        [LdCompWait, LdCompWaitEx, LdCompWaitPfpBusy, LdCompWaitPfpBusyEx];
    /// The same for a SIMD&FP or SVE instruction's memory access.
    VectorPrefetchPort = "ld_comp_wait_pfp_busy_fl", "Prefetch port busy, hardware prefetch", "FP PFP",
        [LdCompWait, LdCompWaitPfpBusy];
    /// The oldest operation, a prefetch instruction, has no prefetch port.
    SoftwarePrefetchPort = "LD_COMP_WAIT_PFP_BUSY_SWPF", "Prefetch port busy, software prefetch", "prefetch PFP",
        [LdCompWait, LdCompWaitPfpBusy, LdCompWaitPfpBusySwpf];
    /// The oldest operation, of a base instruction, is not complete.
    BaseOperation = "ex_comp_wait", "Integer operation wait", "int op", [EuCompWait];
    /// The oldest operation, of a SIMD&FP or SVE instruction, is not complete.
    VectorOperation = "FL_COMP_WAIT", "FP operation wait", "FP op", [EuCompWait, FlCompWait];
    /// The oldest operation, which moves a scatter's data to store ports, is not complete. The machine has no event for this
    /// cause.
    StoreData = "scatter_data_wait", "Scatter data wait", "scatter data", [];
    /// The oldest operation is an unresolved branch.
    Branch = "BR_COMP_WAIT", "Branch wait", "branch", [BrCompWait];
    /// Nothing is in flight, mostly for lack of instructions.
    Fetch = "rob_empty_not_stq_busy", "Instruction fetch wait", "fetch", [RobEmpty];
    /// Nothing is in flight, because decoding waits for a store port.
    StorePort = "ROB_EMPTY_STQ_BUSY", "Store port busy", "store port", [RobEmpty, RobEmptyStqBusy];
    /// Nothing is in flight, because the core sleeps.
    Asleep = "WFE_WFI_CYCLE", "Barrier wait", "asleep", [RobEmpty, WfeWfiCycle];
    /// The kernel works for the program: system calls, and the allocation and release of pages. Its instructions are not
    /// simulated, so nothing is in flight; its time comes from the machine's description (tables `assumptions` and `page_costs`).
    Kernel = "KERNEL_CYCLES", "Kernel", "kernel", [RobEmpty, KernelCycles];
    /// Micro-operations commit, but none completes an instruction.
    UopOnly = "UOP_ONLY_COMMIT", "Micro-operations commit", "uops only", [UopOnlyCommit];
    /// Only an unpacked MOVPRFX commits.
    Movprfx = "SINGLE_MOVPRFX_COMMIT", "MOVPRFX commits", "MOVPRFX", [SingleMovprfxCommit];
}

/// Cycles by cause, in the order of [`Stall::ALL`].
pub type Stalls = [u64; Stall::COUNT];

impl Signals {
    /// Adds cycles without commit to the counts, by cause.
    pub fn add_stalls(&mut self, stalls: &Stalls) {
        for (stall, &cycles) in Stall::ALL.iter().zip(stalls) {
            self.add(Signal::Commit0, cycles);
            for &event in stall.events() {
                self.add(event, cycles);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_named_after_an_event_counts_that_event() {
        for stall in Stall::ALL {
            let event = Signal::ALL.iter().find(|signal| signal.name() == stall.name());
            assert_eq!(event.is_none(), stall.name() == stall.name().to_lowercase(), "{}", stall.name());
            assert!(event.is_none_or(|event| stall.events().contains(event)), "{}", stall.name());
        }
    }

    #[test]
    fn the_causes_add_up_to_the_cycles_without_commit() {
        let mut signals = Signals::default();
        let stalls: Stalls = std::array::from_fn(|i| 1 << i);
        signals.add_stalls(&stalls);
        assert_eq!(signals.get(Signal::Commit0), (1 << Stall::COUNT) - 1);
        let parts = [
            Signal::LdCompWait,
            Signal::EuCompWait,
            Signal::BrCompWait,
            Signal::RobEmpty,
            Signal::UopOnlyCommit,
            Signal::SingleMovprfxCommit,
        ];
        let uncounted: u64 = Stall::ALL.iter().filter(|s| s.events().is_empty()).map(|&s| stalls[s as usize]).sum();
        assert_eq!(uncounted, stalls[Stall::StoreData as usize], "one cause has no event");
        let counted = parts.iter().map(|&part| signals.get(part)).sum::<u64>();
        assert_eq!(counted + uncounted, signals.get(Signal::Commit0));
    }
}
