//! The machine as the timing model sees it: flat, resolved, checked.
//!
//! The tables mirror `machine.toml` one to one; field names are the keys. Units are in the names or the
//! comments: cycles are core clock cycles, sizes are bytes unless a name says otherwise.

use serde::{Deserialize, Serialize};

use crate::recipe::Recipes;

/// Declares a table of `machine.toml`: its fields, with `source` and `evidence` beside them.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $ty,)+
            /// Where the numbers come from.
            pub source: String,
            /// How well they are known.
            pub evidence: Evidence,
        }
    };
}

/// How well a table's numbers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Stated by the maker's documents.
    Documented,
    /// Read off measurements directly.
    Measured,
    /// Chosen so that the model reproduces measurements.
    Calibrated,
    /// A plausible value nobody has confirmed.
    Assumed,
}

table! {
    /// What the machine is.
    Identity {
        /// Full name.
        title: String,
        /// `MIDR_EL1`.
        midr: u64,
        /// `CTR_EL0`.
        ctr: u64,
        /// `DCZID_EL0`.
        dczid: u64,
        /// `ID_AA64ISAR0_EL1`.
        isar0: u64,
        /// `ID_AA64ISAR1_EL1`.
        isar1: u64,
        /// `ID_AA64PFR0_EL1`.
        pfr0: u64,
        /// `ID_AA64ZFR0_EL1`.
        zfr0: u64,
        /// `AT_HWCAP` of a Linux process.
        hwcap: u64,
        /// `AT_HWCAP2` of a Linux process.
        hwcap2: u64,
        /// `CNTFRQ_EL0`, Hz.
        counter_hz: u64,
    }
}

table! {
    /// Clock and vector length.
    Clock {
        /// Core clock, Hz.
        core_hz: u64,
        /// Vector length, bits: 128, 256 or 512.
        vector_bits: u32,
    }
}

table! {
    /// Cores, memory groups and their numbers.
    Topology {
        /// Core memory groups (CMG).
        cmgs: u32,
        /// Compute cores of each CMG.
        cores_per_cmg: u32,
        /// Number of the first compute core as Linux shows it.
        first_core: u32,
        /// Number of the first memory node as Linux shows it.
        first_node: u32,
        /// Memory of each node.
        node_bytes: u64,
    }
}

table! {
    /// Instruction fetch and branch prediction.
    Frontend {
        /// Bytes of one aligned fetch block.
        fetch_bytes: u32,
        /// Instructions the buffer between fetch and decode holds.
        buffer_insts: u32,
        /// Cycles from the fetch address stage to the decode stage.
        fetch_to_decode: u64,
        /// Cycles from a taken branch's fetch to its target's fetch, predicted by the main predictors.
        taken_branch_cycles: u64,
        /// Taken branches the one-cycle small predictor can follow.
        small_taken_targets: u32,
        /// Repetitions of a chain of taken branches before the small predictor takes over.
        small_taken_threshold: u32,
        /// Entries of the loop prediction table.
        loop_entries: u32,
        /// Entries of the branch weight table.
        weight_entries: u32,
        /// Bits of global history used.
        history_bits: u32,
        /// Entries of the branch target buffer.
        btb_entries: u32,
        /// Ways of the branch target buffer.
        btb_ways: u32,
        /// Entries of the return address stack.
        return_stack: u32,
        /// Cycles from the resolution of a mispredicted branch to the decode of the right path, beyond
        /// the front end's own length.
        mispredict_extra: u64,
    }
}

table! {
    /// Decode, dispatch and commit.
    Window {
        /// Micro-operations decoded and dispatched a cycle; one dispatch group.
        dispatch_width: u32,
        /// Micro-operations committed a cycle.
        commit_width: u32,
        /// Commit stack entries.
        commit_stack: u32,
        /// Commit stack entries of one group; a dispatch group takes a whole one.
        group_entries: u32,
        /// Rename registers, general purpose (beyond the architectural ones).
        rename_gpr: u32,
        /// Rename registers, vector.
        rename_vector: u32,
        /// Rename registers, predicate.
        rename_predicate: u32,
        /// Cycles from commit to the release of rename registers.
        rename_release: u64,
    }
}

table! {
    /// Reservation stations.
    Stations {
        /// Entries of RSE0 and of RSE1.
        rse_entries: u32,
        /// Entries of RSA0 and of RSA1.
        rsa_entries: u32,
        /// Entries of RSBR.
        rsbr_entries: u32,
        /// Micro-operations written into one station a cycle.
        writes_per_cycle: u32,
        /// Difference of free entries from which the RSX allocation prefers one kind of station.
        balance_threshold: u32,
    }
}

table! {
    /// Where the pipeline stages stand, as cycles from the decode stage D.
    Stages {
        /// D to the first execution stage of integer operations (X).
        integer: u64,
        /// D to the first execution stage of SIMD&FP operations (X1).
        vector: u64,
        /// D to the first execution stage of predicate operations (X1).
        predicate: u64,
        /// D to the address stage of loads and stores (A).
        address: u64,
        /// D to the resolution of a branch on the flags (BC).
        branch: u64,
        /// Result of an integer operation to its commit.
        commit_integer: u64,
        /// Result of a SIMD&FP operation to its commit.
        commit_vector: u64,
        /// Result of a predicate operation to its commit.
        commit_predicate: u64,
        /// Address stage to commit, integer and short loads and stores that hit.
        commit_short: u64,
        /// Address stage to commit, long loads and stores that hit.
        commit_long: u64,
        /// Resolution of a branch to its commit.
        commit_branch: u64,
        /// Execution of a compare-and-branch or indirect branch to its resolution.
        branch_after_execute: u64,
    }
}

table! {
    /// Operand bypass: extra cycles between the result of a producer and the execution of a consumer.
    ///
    /// Each row gives the consumers in this order: integer pipes, address pipes, vector pipes, predicate
    /// pipe, branch pipe; 0 also where the combination does not exist.
    Bypass {
        /// Between different integer pipes (EXA, EXB, EAGA, EAGB).
        integer_other_pipe: u64,
        /// Condition flags set by an integer operation.
        flags: [u64; 5],
        /// Predicate set by a predicate operation.
        predicate: [u64; 5],
        /// Predicate loaded.
        predicate_load: [u64; 5],
        /// Predicate set by a vector compare.
        compare: [u64; 5],
        /// Condition flags set by a predicate operation.
        predicate_flags: [u64; 5],
        /// Condition flags set by a floating-point compare.
        vector_flags: [u64; 5],
        /// Condition flags set by a vector compare.
        compare_flags: [u64; 5],
    }
}

table! {
    /// Load/store unit.
    LoadStore {
        /// Load queue entries: real fetch ports.
        fetch_ports: u32,
        /// Virtual fetch ports.
        virtual_fetch_ports: u32,
        /// Store queue entries: real store ports.
        store_ports: u32,
        /// Virtual store ports.
        virtual_store_ports: u32,
        /// Write buffer entries.
        write_buffer: u32,
        /// Bytes of a write buffer entry.
        write_buffer_bytes: u32,
        /// Load to use, integer register, L1D hit.
        load_integer: u64,
        /// Load to use, SIMD&FP register (short mode).
        load_short: u64,
        /// Load to use, SVE and multi-register (long mode).
        load_long: u64,
        /// Commit of a store to its write into the L1D cache (W5), at the earliest.
        store_write: u64,
        /// Cycles from a store's data to the result of a load that it forwards to.
        forward: u64,
        /// Cycles from the write of an interlocking store to the load's second try.
        interlock_retry: u64,
        /// Aligned block within which an access is one flow.
        flow_block: u32,
        /// Extra cycles of the second flow of an access split at a flow block.
        split_flow: u64,
        /// Cycles both load/store pipes are taken by moving a line in.
        move_in: u64,
        /// Cycles both pipes are taken by writing a dirty line back.
        move_out_dirty: u64,
        /// Cycles both pipes are taken by giving up a clean line.
        move_out_clean: u64,
    }
}

table! {
    /// A cache.
    Cache {
        /// Capacity.
        bytes: u64,
        /// Associativity.
        ways: u32,
        /// Ways kept from applications (assistant cores).
        reserved_ways: u32,
        /// Line size.
        line_bytes: u32,
        /// Outstanding misses (move-in buffers).
        miss_buffers: u32,
    }
}

table! {
    /// Timing of the L2 cache and of the path between L1 and L2.
    L2Timing {
        /// Load-to-use of an integer load that hits L2, core nearest to the cache.
        hit_nearest: u64,
        /// The same, farthest core.
        hit_farthest: u64,
        /// Cycles from an L1 miss to the start of the L2 pipeline.
        request: u64,
        /// Cycles between two requests of one core (demand or prefetch).
        request_period: f64,
        /// Cycles from a tag miss in L2 to the request at the memory controller.
        miss_detect: u64,
        /// Bytes a cycle from L2 into one L1D.
        fill_bytes_per_cycle: u32,
        /// Bytes a cycle from one L1D to L2.
        writeback_bytes_per_cycle: u32,
        /// Banks; each serves one line a cycle.
        banks: u32,
        /// Bytes a cycle of one bank.
        bank_bytes_per_cycle: u32,
    }
}

table! {
    /// Local memory.
    MemoryTiming {
        /// Load-to-use of an integer load from local memory, core nearest to the controller.
        latency_nearest: u64,
        /// The same, farthest core.
        latency_farthest: u64,
        /// Bytes a second the device delivers at most, reads and writes together.
        peak_bytes_per_second: u64,
        /// Share of the peak that a stream of reads reaches, percent.
        read_efficiency: f64,
        /// Time a line's write takes on the channel, as a multiple of a read's (turn-around included).
        write_cost: f64,
    }
}

table! {
    /// Translation.
    Tlb {
        /// L1 entries, data and instruction each, fully associative, FIFO.
        l1_entries: u32,
        /// L2 entries, data and instruction each.
        l2_entries: u32,
        /// L2 associativity.
        l2_ways: u32,
        /// Cycles of an L1 miss that hits L2.
        l2_hit: u64,
        /// Cycles of a table walk whose last access hits the L2 cache.
        walk: u64,
        /// Walks at a time.
        walkers: u32,
    }
}

table! {
    /// Page sizes by segment.
    Pages {
        /// Text and read-only data.
        text: u64,
        /// Initialised data.
        data: u64,
        /// Zero-initialised data.
        bss: u64,
        /// Heap.
        heap: u64,
        /// Stack.
        stack: u64,
        /// Anonymous mappings.
        mmap: u64,
    }
}

table! {
    /// The hardware stream prefetcher.
    Prefetch {
        /// Prefetch into L1 on.
        l1: bool,
        /// Prefetch into L2 on.
        l2: bool,
        /// Entries of the prefetch queue.
        queue: u32,
        /// Largest distance of L1 prefetches, lines.
        l1_lines: u32,
        /// Largest distance of L2 prefetches, lines.
        l2_lines: u32,
        /// Lines requested for each queue hit while the distance grows.
        ramp_lines: u32,
        /// Consecutive L2 hits of L2 prefetches after which L2 prefetching of the stream stops.
        l2_stop_hits: u32,
    }
}

table! {
    /// What the documents leave open.
    Assumptions {
        /// Where between its shortest and longest latency an integer division lies, percent.
        divide_point: u32,
        /// Cycles of a system call in the kernel, charged to the caller.
        system_call: u64,
    }
}

/// Everything the timing model reads.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The machine's name: that of its folder.
    pub name: String,
    /// Its tables.
    pub tables: Tables,
    /// What each timing class costs.
    pub recipes: Recipes,
}

impl std::ops::Deref for Spec {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

/// The tables of `machine.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// What the machine is.
    pub identity: Identity,
    /// Clock and vector length.
    pub clock: Clock,
    /// Cores, memory groups and their numbers.
    pub topology: Topology,
    /// Instruction fetch and branch prediction.
    pub frontend: Frontend,
    /// Decode, dispatch and commit.
    pub window: Window,
    /// Reservation stations.
    pub stations: Stations,
    /// Pipeline stages.
    pub stages: Stages,
    /// Operand bypass.
    pub bypass: Bypass,
    /// Load/store unit.
    pub load_store: LoadStore,
    /// L1 instruction cache.
    pub l1i: Cache,
    /// L1 data cache.
    pub l1d: Cache,
    /// L2 cache of a CMG.
    pub l2: Cache,
    /// L2 timing.
    pub l2_timing: L2Timing,
    /// Local memory.
    pub memory: MemoryTiming,
    /// Translation.
    pub tlb: Tlb,
    /// Page sizes.
    pub pages: Pages,
    /// Hardware prefetch.
    pub prefetch: Prefetch,
    /// What the documents leave open.
    pub assumptions: Assumptions,
}
