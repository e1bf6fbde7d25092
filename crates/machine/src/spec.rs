//! The machine as the timing model sees it: flat, resolved, checked.
//!
//! The tables mirror `machine.toml` one to one; field names are the keys. Units are in the names or the
//! comments: cycles are core clock cycles, sizes are bytes unless a name says otherwise.

mod hierarchy;
mod policies;
mod power;
mod thp;
mod tiering;
mod tiers;

use crate::evidence::Provenance;
use crate::pmu::Pmu;
use crate::recipe::Recipes;
use crate::schema::Rule::{self, OneOf, Power, Range, Register};
use crate::schema::{table, tables};

pub use hierarchy::{
    Cache, Energy, HardwareBarrier, L2Hash, L2Timing, MemorySideCache, MemoryTiming, PageCosts, Pages, Prefetch, Ring,
    SectorCache, Tlb,
};
pub use policies::{
    DirectionPredictor, FolioSetting, HugePageSetting, PowerMode, PrefetchPolicy, Replacement, StreamReplacement,
    TlbReplacement,
};
pub use power::ChipPower;
pub use thp::Thp;
pub use tiering::Tiering;
pub use tiers::{MemoryTier, MemoryTiers};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The sizes that a page can have. [`Pages::sizes`] lists those of a machine.
const PAGE: Rule = Power(4 * KIB, 16 * GIB);
/// Page-table granules, bytes.
pub const GRANULES: &[u64] = &[4 * KIB, 16 * KIB, 64 * KIB];
/// Vector lengths that the model knows, bits.
pub const VECTOR_BITS: &[u64] = &[128, 256, 512];

/// Most ways of a cache: the model keeps the state of a set's replacement policy in one word.
pub const MAX_WAYS: u64 = 16;

/// Cycles within a core. The model keeps such numbers in a byte.
const CYCLES: Rule = Range(0, 255);
/// Entries of a queue or buffer.
const ENTRIES: Rule = Range(1, 4096);

table! {
    /// Name and identification registers.
    Identity {
        /// Full name.
        title: String; inert "`fxscope machine list` shows it",
        /// `MIDR_EL1`.
        midr: u64 => Register,
        /// `CTR_EL0`.
        ctr: u64 => Register,
        /// `DCZID_EL0`.
        dczid: u64 => Range(0, 31),
        /// `ID_AA64ISAR0_EL1`.
        isar0: u64 => Register,
        /// `ID_AA64ISAR1_EL1`.
        isar1: u64 => Register,
        /// `ID_AA64PFR0_EL1`.
        pfr0: u64 => Register,
        /// `ID_AA64ZFR0_EL1`.
        zfr0: u64 => Register,
        /// `AT_HWCAP` of a Linux process.
        hwcap: u64 => Register,
        /// `AT_HWCAP2` of a Linux process.
        hwcap2: u64 => Register,
        /// `CNTFRQ_EL0`, Hz.
        counter_hz: u64 => Range(1_000_000, 10_000_000_000); unit "Hz",
        /// A sentence that accompanies every run on this machine. Empty: none.
        note: String,
    }
}

table! {
    /// Clock and vector length.
    Clock {
        /// Core clock, Hz.
        core_hz: u64 => Range(100_000_000, 10_000_000_000); unit "Hz",
        /// Vector length, bits.
        vector_bits: u32 => OneOf(VECTOR_BITS); unit "bits",
        /// Floating-point pipes in use: both, or FLA alone (eco mode), which then executes FLB's operations too.
        fma_pipes: u32 => Range(1, 2); unit "pipes",
    }
}

table! {
    /// Cores, memory groups and their numbers.
    Topology {
        /// Core memory groups (CMG).
        cmgs: u32 => Range(1, 16); unit "CMGs",
        /// Compute cores of each CMG.
        cores_per_cmg: u32 => Range(1, 32); unit "cores",
        /// Number of the first compute core as Linux shows it.
        first_core: u32 => Range(0, 1024),
        /// Number of the first memory node as Linux shows it.
        first_node: u32 => Range(0, 1024),
        /// Distances between memory nodes as firmware reports them to Linux: from a node to itself, to the other node of its
        /// pair, and to all other nodes. Nodes form pairs in the order of their numbers.
        node_distances: [u64; 3] => Range(10, 254),
        /// Memory of each node.
        node_bytes: u64 => Range(64 * MIB, 1024 * GIB); unit "bytes",
        /// CMGs with an assistant core, counted from 0. It occupies `l2.reserved_ways` of their L2; programs can use all ways
        /// of the other CMGs' L2.
        assistant_cmgs: Vec<u64> => Range(0, 15),
    }
}

table! {
    /// Instruction fetch and branch prediction.
    Frontend {
        /// Bytes of one aligned fetch block.
        fetch_bytes: u32 => Power(4, 256); unit "bytes",
        /// Instructions that the buffer between fetch and decode holds.
        buffer_insts: u32 => Range(1, 1024); unit "instructions",
        /// Cycles from the fetch address stage to the decode stage.
        fetch_to_decode: u64 => CYCLES; unit "cycles",
        /// Instructions read from the buffer into pre-decode per cycle.
        predecode_insts: u32 => Range(2, 127); unit "instructions",
        /// Pairs of MOVPRFX and the next instruction packed per cycle.
        predecode_pairs: u32 => Range(1, 127); unit "pairs",
        /// Instructions that leave the first stage of pre-decode per cycle; a pair counts as one.
        predecode_packed: u32 => Range(1, 127); unit "instructions",
        /// Cycles from the fetch of a taken branch to that of its target, when the main predictors predict it.
        taken_branch_cycles: u64 => Range(1, 255); unit "cycles",
        /// Taken branches that the small one-cycle predictor can follow.
        small_taken_targets: u32 => Range(0, 8); unit "branches",
        /// Repetitions of a chain of taken branches before the small predictor takes over.
        small_taken_threshold: u32 => Range(0, 1_000_000); unit "repetitions",
        /// Iterations of a loop that fits into the instruction buffer before the buffer supplies it.
        short_loop_threshold: u32 => Range(1, 1_000_000); unit "repetitions",
        /// How the directions of conditional branches are predicted.
        predictor: DirectionPredictor,
        /// Entries of the loop prediction table.
        loop_entries: u32 => ENTRIES; unit "entries"; option of predictor "perceptron",
        /// Executions of a loop with equal iteration counts after which the loop prediction table predicts it.
        loop_confidence: u32 => Range(1, 1_000_000); unit "repetitions"; option of predictor "perceptron",
        /// Rows of the branch weight table: the address of a branch selects one.
        weight_entries: u32 => Power(1, MIB); unit "rows"; option of predictor "perceptron",
        /// Bits of a branch weight, its sign included.
        weight_bits: u32 => Range(2, 7); unit "bits"; option of predictor "perceptron",
        /// Two-bit counters of the pattern history table.
        pattern_entries: u32 => Power(2, MIB); unit "counters"; option of predictor "gshare",
        /// Bits of global history used.
        history_bits: u32 => Range(1, 63); unit "bits",
        /// Entries of the branch target buffer.
        btb_entries: u32 => Power(1, MIB); unit "entries",
        /// Ways of the branch target buffer.
        btb_ways: u32 => Power(1, 64); unit "ways",
        /// Targets of earlier indirect branches that the index of an indirect branch includes.
        rehash_targets: u32 => Range(1, 63); unit "branches",
        /// Directions of earlier conditional branches that this index includes.
        rehash_directions: u32 => Range(0, 63); unit "branches",
        /// Entries of the return address stack.
        return_stack: u32 => ENTRIES; unit "entries",
        /// Cycles from the fetch of a return to that of its target, when the return address stack predicts it.
        return_stack_cycles: u64 => Range(1, 255); unit "cycles",
        /// Cycles from the resolution of a mispredicted branch to the decode of the correct path, beyond the length of the
        /// front end.
        mispredict_extra: u64 => CYCLES; unit "cycles",
    }
}

table! {
    /// Decode, dispatch and commit.
    Window {
        /// Micro-operations decoded and dispatched per cycle; one dispatch group.
        dispatch_width: u32 => Range(1, 16); unit "micro-operations",
        /// Micro-operations committed per cycle.
        commit_width: u32 => Range(1, 16); unit "micro-operations",
        /// Commit stack entries.
        commit_stack: u32 => ENTRIES; unit "entries",
        /// Commit stack entries of one group; a dispatch group takes a whole one.
        group_entries: u32 => Range(1, 16); unit "entries",
        /// Rename registers, general purpose (beyond the architectural ones).
        rename_gpr: u32 => Range(4, 4096); unit "registers",
        /// Rename registers, vector.
        rename_vector: u32 => Range(4, 4096); unit "registers",
        /// Rename registers, predicate.
        rename_predicate: u32 => Range(4, 4096); unit "registers",
        /// Temporary operand registers (TOR), which carry program counters to the pipes.
        temporary_operand_registers: u32 => Range(1, 64); unit "registers",
        /// Cycles from commit to the release of rename registers.
        rename_release: u64 => CYCLES; unit "cycles",
    }
}

table! {
    /// Reservation stations.
    Stations {
        /// Entries of RSE0 and of RSE1.
        rse_entries: u32 => Range(2, 255); unit "entries",
        /// Entries of RSA0 and of RSA1.
        rsa_entries: u32 => Range(2, 255); unit "entries",
        /// Entries of RSBR.
        rsbr_entries: u32 => Range(2, 255); unit "entries",
        /// Micro-operations written into one station per cycle.
        writes_per_cycle: u32 => Range(1, 16); unit "micro-operations",
        /// Cycles before its first execution stage at which an integer or predicate operation releases its entry.
        release_integer: u64 => CYCLES; unit "cycles",
        /// The same for SIMD&FP operations.
        release_vector: u64 => CYCLES; unit "cycles",
        /// The same for loads and stores, before address generation.
        release_address: u64 => CYCLES; unit "cycles",
        /// Free entries of RSE0 or RSE1 that count as "some" where the slot of an operation chooses between the two.
        some_free_entries: u32 => Range(1, 255); unit "entries",
        /// Difference of free entries from which the RSX allocation prefers one kind of station.
        balance_threshold: u32 => Range(0, 255); unit "entries",
    }
}

table! {
    /// Positions of the pipeline stages, as cycles from the decode stage D.
    Stages {
        /// D to the first execution stage of integer operations (X).
        integer: u64 => CYCLES; unit "cycles",
        /// D to the first execution stage of SIMD&FP operations (X1).
        vector: u64 => CYCLES; unit "cycles",
        /// D to the first execution stage of predicate operations (X1).
        predicate: u64 => CYCLES; unit "cycles",
        /// D to the address stage of loads and stores (A).
        address: u64 => CYCLES; unit "cycles",
        /// D to the resolution of a branch on flags (BC).
        branch: u64 => CYCLES; unit "cycles",
        /// Result of an integer operation to its commit.
        commit_integer: u64 => CYCLES; unit "cycles",
        /// Result of a SIMD&FP operation to its commit.
        commit_vector: u64 => CYCLES; unit "cycles",
        /// Cycles of that for judging floating-point exceptions, which No Exception mode omits.
        exception_judgement: u64 => CYCLES; unit "cycles",
        /// Additional cycles of a flow with an operand or result that is a subnormal number. All younger operations wait for
        /// it.
        denormal: u64 => Range(0, 10_000); unit "cycles",
        /// Latencies of SIMD&FP operations that can be lengthened, in ascending order. If a result would leave its pipe in the
        /// same cycle as another one, the operation takes the next latency of the list, if there is one.
        lengthened_vector: [u64; 3] => Range(1, 255); unit "cycles",
        /// Result of a predicate operation to its commit.
        commit_predicate: u64 => CYCLES; unit "cycles",
        /// Address stage to commit, integer and short loads and stores that hit.
        commit_short: u64 => CYCLES; unit "cycles",
        /// Address stage to commit, long loads and stores that hit.
        commit_long: u64 => CYCLES; unit "cycles",
        /// Resolution of a branch to its commit.
        commit_branch: u64 => CYCLES; unit "cycles",
        /// Execution of a compare-and-branch or indirect branch to its resolution.
        branch_after_execute: u64 => CYCLES; unit "cycles",
    }
}

table! {
    /// Operand bypass: extra cycles between the result of a producer and the execution of a consumer.
    ///
    /// Each row gives the consumers in this order: integer pipes, address pipes, vector pipes, predicate
    /// pipe, branch pipe; 0 also where the combination does not exist.
    Bypass {
        /// Between different integer pipes (EXA, EXB, EAGA, EAGB).
        integer_other_pipe: u64 => CYCLES; unit "cycles",
        /// Condition flags set by an integer operation.
        flags: [u64; 5] => CYCLES; unit "cycles",
        /// Predicate set by a predicate operation.
        predicate: [u64; 5] => CYCLES; unit "cycles",
        /// Predicate loaded.
        predicate_load: [u64; 5] => CYCLES; unit "cycles",
        /// Predicate set by a vector compare.
        compare: [u64; 5] => CYCLES; unit "cycles",
        /// Condition flags set by a predicate operation.
        predicate_flags: [u64; 5] => CYCLES; unit "cycles",
        /// Condition flags set by a floating-point compare.
        vector_flags: [u64; 5] => CYCLES; unit "cycles",
        /// Condition flags set by a vector compare.
        compare_flags: [u64; 5] => CYCLES; unit "cycles",
    }
}

table! {
    /// Load/store unit.
    LoadStore {
        /// Load queue entries: real fetch ports.
        fetch_ports: u32 => ENTRIES; unit "ports",
        /// Virtual fetch ports.
        virtual_fetch_ports: u32 => ENTRIES; unit "ports",
        /// Store queue entries: real store ports.
        store_ports: u32 => ENTRIES; unit "ports",
        /// Virtual store ports.
        virtual_store_ports: u32 => ENTRIES; unit "ports",
        /// Cycles from the stage in which real ports are taken (B1) to execution (X or A).
        port_stages: u64 => CYCLES; unit "cycles",
        /// The same for the fetch ports of a gather or scatter, to the execution of its first flow.
        indexed_fetch_stages: u64 => CYCLES; unit "cycles",
        /// The same for its store ports.
        indexed_store_stages: u64 => CYCLES; unit "cycles",
        /// Write buffer entries.
        write_buffer: u32 => ENTRIES; unit "entries",
        /// Bytes of a write buffer entry.
        write_buffer_bytes: u32 => Power(16, 4 * KIB); unit "bytes",
        /// Stores whose data move from their ports to the write buffer per cycle.
        write_buffer_moves: u32 => ENTRIES; unit "stores",
        /// Cycles that an entry with room for more bytes waits for a store to merge.
        merge_wait: u64 => CYCLES; unit "cycles",
        /// Bytes of a write buffer entry that data of general-purpose and scalar stores may fill.
        narrow_write_bytes: u32 => Power(8, 4 * KIB); unit "bytes",
        /// Load to use, integer register, L1D hit; `load_integer` in `instructions.csv`.
        load_integer: u64 => Range(1, 255); unit "cycles",
        /// Load to use, SIMD&FP register (short mode); `load_short` in `instructions.csv`.
        load_short: u64 => Range(1, 255); unit "cycles",
        /// Load to use, SVE and multi-register (long mode); `load_long` in `instructions.csv`.
        load_long: u64 => Range(1, 255); unit "cycles",
        /// Commit of a store to its write into the L1D cache (W5), at the earliest.
        store_write: u64 => CYCLES; unit "cycles",
        /// Cycles from the data of a store to the first flow of a load to which they are forwarded: general-purpose and
        /// predicate registers.
        forward: u64 => CYCLES; unit "cycles",
        /// The same for SIMD&FP and SVE registers.
        forward_vector: u64 => CYCLES; unit "cycles",
        /// Aligned block within which an access is one flow.
        flow_block: u32 => Power(16, 4 * KIB); unit "bytes",
        /// Cycles from the end of a flow to the next flow that its fetch port sends: the second part of an access split at a
        /// flow block, or the replay of a cancelled flow.
        resubmit: u64 => CYCLES; unit "cycles",
        /// Address bits that dependency detection compares where it does not have whole addresses.
        partial_address_bits: u32 => Range(7, 20); unit "bits",
        /// Cycles for which the flow of a store in the load/store pipes has only that part of its address.
        partial_address_stages: u64 => CYCLES; unit "cycles",
        /// Alignment, in bytes, to which dependency detection widens accesses with smaller vector elements.
        element_check_bytes: u32 => Power(1, 64); unit "bytes",
        /// Vector length that dependency detection assumes for structures, bytes.
        structure_vector_bytes: u32 => Power(16, 256); unit "bytes",
        /// Cycles for which a line moving in occupies both load/store pipes.
        move_in: u64 => CYCLES; unit "cycles",
        /// Cycles for which the write-back of a dirty line occupies both pipes.
        move_out_dirty: u64 => CYCLES; unit "cycles",
        /// Cycles for which the eviction of a clean line occupies both pipes.
        move_out_clean: u64 => CYCLES; unit "cycles",
        /// Dirty lines on their way from L1D to L2 (move-out buffers).
        move_out_buffers: u32 => ENTRIES; unit "entries",
    }
}

table! {
    /// Costs that no document gives.
    Assumptions {
        /// Latency of an integer division, as a position between its shortest (0) and longest (100) latency, percent.
        divide_point: u32 => Range(0, 100); unit "percent",
        /// Cycles of a system call in the kernel, charged to the calling thread.
        system_call: u64 => Range(0, 10_000_000); unit "cycles",
        /// Rate at which a system call copies data between a program and a socket, a pipe or another process, bytes/s.
        call_copy_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
        /// Cycles from the wake-up of a thread to its first instruction on a core that was idle.
        thread_wake: u64 => Range(0, 100_000_000); unit "cycles",
    }
}

/// Everything that a machine's folder says, with what it inherits and with settings applied.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The machine's name: that of its folder, or of its file.
    pub name: String,
    /// The absolute path of its folder or file; none for a built-in machine.
    pub path: Option<String>,
    /// The machine that its CSV tables come from, a built-in name or a path: the first along `extends`, starting with
    /// itself, that has any.
    pub csv_from: String,
    /// Its tables.
    pub tables: Tables,
    /// Where each value of the tables comes from, in the order of [`SCHEMA`].
    pub provenance: Vec<Vec<Provenance>>,
    /// The cost of each timing class.
    pub recipes: Recipes,
    /// The events of its PMU.
    pub pmu: Pmu,
}

/// Reads the page size of one segment, bytes.
pub type PageBytes = fn(&Pages) -> u64;

impl Pages {
    /// Bytes of a transparent huge page: the span of a descriptor one table level above that of normal pages (a table is a
    /// page of descriptors of 8 bytes).
    #[must_use]
    pub fn transparent(&self) -> u64 {
        self.normal * (self.normal / 8)
    }

    /// The segments of a program: the key of each, and its page size in bytes.
    pub const SEGMENTS: [(&'static str, PageBytes); 8] = [
        ("text", |pages| pages.text),
        ("data", |pages| pages.data),
        ("bss", |pages| pages.bss),
        ("heap", |pages| pages.heap),
        ("stack", |pages| pages.stack),
        ("thread_stack", |pages| pages.thread_stack),
        ("mmap", |pages| pages.mmap),
        ("shared", |pages| pages.shared),
    ];
}

impl Tables {
    /// Ways of the L2 cache of CMG `cmg`, counted from 0, that programs can use.
    #[must_use]
    pub fn l2_ways(&self, cmg: u32) -> u32 {
        let assisted = self.topology.assistant_cmgs.contains(&u64::from(cmg));
        self.l2.ways.saturating_sub(if assisted { self.l2.reserved_ways } else { 0 })
    }

    /// Bytes of the L2 cache of CMG `cmg`, counted from 0, that programs can use.
    #[must_use]
    pub fn l2_bytes(&self, cmg: u32) -> u64 {
        self.l2.bytes / u64::from(self.l2.ways) * u64::from(self.l2_ways(cmg))
    }
}

impl std::ops::Deref for Spec {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

tables! {
    /// The tables of `machine.toml`.
    Tables {
        /// Name and identification registers.
        identity: Identity,
        /// Clock and vector length.
        clock: Clock,
        /// Cores, memory groups and their numbers.
        topology: Topology,
        /// Instruction fetch and branch prediction.
        frontend: Frontend,
        /// Decode, dispatch and commit.
        window: Window,
        /// Reservation stations.
        stations: Stations,
        /// Pipeline stages.
        stages: Stages,
        /// Operand bypass.
        bypass: Bypass,
        /// Load/store unit.
        load_store: LoadStore,
        /// L1 instruction cache.
        l1i: Cache; inert miss_buffers "the front end waits for one line at a time",
        /// L1 data cache.
        l1d: Cache,
        /// L2 cache of a CMG.
        l2: Cache,
        /// Hash of L2's set numbers.
        l2_hash: L2Hash,
        /// L2 timing.
        l2_timing: L2Timing,
        /// Local memory.
        memory: MemoryTiming,
        /// Memory-side cache.
        memory_side_cache: MemorySideCache,
        /// Memory nodes without cores.
        memory_tiers: MemoryTiers,
        /// Promotion and demotion of pages.
        tiering: Tiering,
        /// The ring between the CMGs.
        ring: Ring,
        /// Translation.
        tlb: Tlb,
        /// Page sizes.
        pages: Pages,
        /// Transparent huge pages.
        thp: Thp,
        /// Cost of the operating system's work on pages.
        page_costs: PageCosts,
        /// Hardware prefetch.
        prefetch: Prefetch,
        /// Sector cache.
        sector_cache: SectorCache,
        /// Hardware barrier.
        hardware_barrier: HardwareBarrier,
        /// Energy.
        energy: Energy,
        /// Modes of power, and power of the chip.
        power: ChipPower,
        /// Costs that no document gives.
        assumptions: Assumptions,
    }
}
