//! Instructions bound to a machine: joined with its recipes, as the hot path reads them.

use std::sync::Arc;

use fxscope_counts::{FewSignals, Signals, Stall, Stalls};
use fxscope_isa::{Access, Branch, MemOp, Reg};
use fxscope_machine::Pipes;
use fxscope_machine::recipe::{MAX_FLOWS, MAX_UOPS};

pub use crate::bypass::{PIPE_NAMES, PIPES};
use crate::events::EVENTS;
use crate::lsu::rules::Writing;
use crate::warming::Followed;

/// The register that is always ready.
pub const READY: u8 = Reg::COUNT as u8;
/// First of the registers that carry results between the micro-operations of one instruction.
pub const TEMP: u8 = READY + 1;
/// Number of such registers: one for each micro-operation of the longest recipe.
pub const TEMPS: usize = MAX_UOPS;
/// Registers the timing model tracks.
pub const REGS: usize = TEMP as usize + TEMPS;
// Their numbers are bytes: a table of 256 needs no check.
const _: () = assert!(REGS <= 1 << u8::BITS);

/// What a micro-operation does in addition to passing through pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Action {
    /// Nothing: it takes a commit stack entry only.
    None,
    /// Computes a result.
    Compute,
    /// Makes the data of a store whose addresses another micro-operation makes (scatters).
    StoreData,
    /// Reads memory.
    Load,
    /// Writes memory: an address flow and a data flow.
    Store,
    /// Prefetches.
    Prefetch,
    /// Zeroes a line.
    Zero,
    /// Resolves a branch when its flags are there.
    BranchOnFlags,
    /// Resolves a branch after executing.
    BranchExecuted,
    /// A direct branch: resolved at once.
    BranchDirect,
}

/// Which stations may take a micro-operation (manual 5.2, table 5-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Attribute {
    /// None needed.
    None,
    /// Any of RSE0, RSE1, RSA0, RSA1.
    Rsx,
    /// RSE0 or RSE1.
    Rse,
    /// RSE0 only.
    Rse0,
    /// RSE1 only.
    Rse1,
    /// RSA0 or RSA1.
    Rsa,
    /// RSBR.
    Rsbr,
}

/// The producer of a value, as far as bypasses distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Producer {
    /// No producer in flight, or a vector result for a vector consumer.
    Plain,
    /// Flags from an integer operation on EXB (see `Flags`).
    FlagsExb,
    /// Integer result from EXA.
    Exa,
    /// Integer result from EXB.
    Exb,
    /// Integer result from EAGA.
    Eaga,
    /// Integer result from EAGB.
    Eagb,
    /// Flags from an integer operation.
    Flags,
    /// Predicate from the predicate pipe.
    Predicate,
    /// Predicate from a load.
    PredicateLoad,
    /// Predicate from a vector compare.
    Compare,
    /// Flags from the predicate pipe.
    PredicateFlags,
    /// Flags from a floating-point compare.
    VectorFlags,
    /// Flags from a vector compare.
    CompareFlags,
}

/// Number of [`Producer`] values.
pub const PRODUCERS: usize = 13;

/// Instead of a [`Producer`]: the pipe that makes the result decides.
pub const BY_PIPE: u8 = PRODUCERS as u8;

/// How a set of pipes is serialised.
#[derive(serde::Deserialize, serde::Serialize)]
#[serde(remote = "Pipes")]
struct PipeBits(u8);

/// One pass through a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BoundFlow {
    /// Pipes it may use, or uses all of.
    #[serde(with = "PipeBits")]
    pub pipes: Pipes,
    /// It uses all of them at once.
    pub all: bool,
    /// Cycles until the next flow, or the result.
    pub latency: u16,
    /// Cycles the pipe is taken (1 unless flows repeat or block it).
    pub busy: u16,
}

/// An operand that a later flow of a micro-operation needs, not the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Late {
    /// The operand; [`READY`] when there is none.
    pub src: u8,
    /// The flow that needs it.
    pub flow: u8,
    /// Cycles from the start of the first flow to that of this one.
    pub after: u8,
}

impl Late {
    /// No such operand.
    pub const NONE: Late = Late { src: READY, flow: 0, after: 0 };
}

/// Longest run of sequential flows in one micro-operation.
pub const FLOWS: usize = MAX_FLOWS;

/// What is kept of an operation of the vector pipes after its visit, since its result may have to yield to that of a
/// younger one. Kept together, since it is read and written as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[repr(align(8))]
pub struct Brief {
    /// Operands of an operation of one flow for one cycle, which may start at another time; otherwise [`READY`].
    pub operands: [u8; 4],
    /// Its first result.
    pub register: u8,
    /// Latency of its last flow; at most what a byte holds.
    pub latency: u8,
    /// See [`BoundUop::to_commit`] and [`BoundUop::judgement`].
    pub to_commit: u8,
    /// See `to_commit`.
    pub judgement: u8,
}

impl Brief {
    /// Of no operation.
    pub const NOTHING: Brief = Brief { operands: [READY; 4], register: READY, latency: 0, to_commit: 0, judgement: 0 };
}

/// A micro-operation as the hot path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BoundUop {
    /// What it does.
    pub action: Action,
    /// Stations for its (first) flow.
    pub attribute: Attribute,
    /// Number of sequential flows; of a memory access, up to the access.
    pub nflows: u8,
    /// A load with one more flow after its access, which makes the result.
    pub continues: bool,
    /// The flows; for a store, flow 0 is the address, flow 1 the data.
    pub flows: [BoundFlow; FLOWS],
    /// Operands; unused ones are [`READY`].
    pub srcs: [u8; 6],
    /// One more, of a later flow.
    pub late: Late,
    /// Operands that addresses are formed from.
    pub addr_srcs: [u8; 4],
    /// Results; unused ones are [`READY`].
    pub dsts: [u8; 3],
    /// How each result bypasses; [`BY_PIPE`] for integer results, which bypass according to the pipe that makes them.
    pub producers: [u8; 3],
    /// Result to commit.
    pub to_commit: u8,
    /// Cycles of that for judging floating-point exceptions.
    pub judgement: u8,
    /// Rename registers taken, one for each non-zero entry: 1 general purpose, 2 vector, 3 predicate.
    pub renames: [u8; 4],
    /// What the vector pipes keep of it.
    pub brief: Brief,
    /// Blocks its pipe for other blocking operations.
    pub exclusive: bool,
    /// One flow, for one cycle, through one pipe.
    pub simple: bool,
    /// Its second flow leaves the station in the cycle of the first, through the issue port that both use.
    pub together: bool,
    /// A store whose data pass a pipe of RSE0: flow 1.
    pub data_flow: bool,
    /// For a store whose data another micro-operation makes: cycles from the data to the store.
    pub data_forwarded_after: Option<u8>,
    /// First micro-operation of its instruction must open a dispatch group; or each is a group of its own.
    pub opens_group: bool,
    /// Nothing may join its group after it.
    pub closes_group: bool,
    /// Waits for everything older to commit.
    pub pre_sync: bool,
    /// Everything younger waits for it to commit.
    pub post_sync: bool,
    /// An integer operation that may join a dependency group.
    pub chains: bool,
    /// Operands and results as bits (see [`chain_bit`]), for dependency groups.
    pub chain_srcs: u64,
    /// See `chain_srcs`.
    pub chain_dsts: u64,
    /// Fetch ports and store ports it takes.
    pub fetch_ports: u8,
    /// See `fetch_ports`.
    pub store_ports: u8,
    /// Cycles from the stage in which it takes its real ports to its execution, fetch ports and store ports.
    pub port_stages: [u8; 2],
    /// What its instruction takes of a read of the instruction buffer, if it is the first of it.
    pub read_share: u32,
    /// It takes a temporary operand register (TOR).
    pub takes_tor: bool,
    /// The first of its instruction, which, or a MOVPRFX packed with it, is the first in its fetch block.
    pub opens_block: bool,
    /// Its MOVPRFX is in the fetch block before.
    pub crosses_block: bool,
    /// It branches: the last of its block.
    pub branches: bool,
    /// How it counts at its commit (see [`crate::commit::counts`]).
    pub counts: u32,
    /// It passes a floating-point pipe; for memory accesses, it moves vectors or predicates (loads: vectors).
    pub vector: bool,
    /// The cause of a stall while it is the oldest micro-operation and not complete.
    pub wait: Stall,
    /// Index of its instruction in the block.
    pub inst: u8,
    /// Which part of the memory access this micro-operation does, of how many.
    pub part: u8,
    /// Number of micro-operations that share the memory access.
    pub parts: u8,
    /// Load-to-use latency of a load that hits, cycles.
    pub load_latency: u8,
    /// The memory access of its instruction; [`BoundAccess::NONE`] for other instructions.
    pub mem: BoundAccess,
    /// Where its instruction's words start in the block's dynamic stream.
    pub word: u16,
}

impl BoundUop {
    fn is_sound(&self) -> bool {
        let registers =
            [&self.srcs[..], &self.addr_srcs, &self.dsts, &self.brief.operands, &[self.late.src, self.brief.register]];
        let mut registers = registers.into_iter().flatten();
        usize::from(self.nflows) <= FLOWS
            && usize::from(self.late.flow) < FLOWS
            && registers.all(|&register| usize::from(register) < REGS)
            && self.producers.iter().all(|&producer| producer <= BY_PIPE)
            && self.renames.iter().all(|&file| file <= 3)
    }

    /// Whether it is the last of its instruction.
    #[inline(always)]
    #[must_use]
    pub fn is_last(&self) -> bool {
        // It counts as more than a micro-operation.
        self.counts > 1
    }

    /// The words of its instruction in the block's dynamic stream.
    #[inline(always)]
    #[must_use]
    pub fn words<'a>(&self, stream: &'a [u64]) -> &'a [u64] {
        let start = usize::from(self.word);
        &stream[start..start + usize::from(self.mem.words)]
    }
}

/// The bit that stands for a register in dependency groups, 0 for registers that cannot form one. Only integer
/// operations do: vector registers have no bit. Registers between micro-operations share what bits are left:
/// few instructions have that many.
#[must_use]
pub fn chain_bit(register: u8) -> u64 {
    const LEFT: u8 = 64 - 32 - 18;
    match register {
        READY => 0,
        0..=31 => 1 << register,
        32..=63 => 0,
        64..READY => 1 << (register - 32),
        _ => 1 << (50 + (register - TEMP) % LEFT),
    }
}

/// What the timing model needs of a memory access beyond its micro-operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BoundAccess {
    /// The static access.
    pub op: MemOp,
    /// A store whose tag access may run beside a store write, if its address and active elements allow.
    pub eligible: bool,
    /// Forwarding class (see [`crate::lsu::rules::forwards`]).
    pub forward: u8,
    /// Cycles from a store's data to the first flow of a load that finds them.
    pub forwarded_in: u8,
    /// How a store passes the write buffer.
    pub writing: Writing,
    /// Elements of several registers alternate: each register's flows go over the whole range.
    pub interleaved: bool,
    /// Bytes from the first one on that dependency detection takes it to touch; 0: those it touches.
    pub check_bytes: u16,
    /// Log2 of the blocks dependency detection compares.
    pub check_shift: u8,
    /// Words it leaves in the dynamic stream.
    pub words: u8,
}

impl BoundAccess {
    /// No access.
    pub const NONE: BoundAccess = BoundAccess {
        op: MemOp::single(Access::Load, 0),
        eligible: false,
        forward: 0,
        forwarded_in: 0,
        writing: Writing { shift: 0, merges: false, wide: false },
        interleaved: false,
        check_bytes: 0,
        check_shift: 0,
        words: 0,
    };
}

/// The profile of an instruction: sums over its executions. Fields that each execution changes are adjacent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[repr(C)]
pub struct Profile {
    /// Cycles between its commits and the commit before each.
    pub cycles: u64,
    /// Cycles from the issue of its first flow to its commit.
    pub in_flight: u64,
    /// Cycles in which it took each pipe, in the order of [`PIPE_NAMES`], as events count them.
    pub pipes: [u64; PIPES],
    /// Cycles without commit that were charged to it, by cause.
    pub stalls: Stalls,
    /// What happened on its behalf, in the order of [`EVENT_NAMES`](crate::events::EVENT_NAMES).
    pub events: [u64; EVENTS],
}

impl Profile {
    /// Adds the profile of other executions.
    pub fn add(&mut self, other: &Profile) {
        self.add_times(other, 1);
    }

    /// Adds the profile of `many` identical executions.
    pub fn add_times(&mut self, other: &Profile, many: u64) {
        self.combine(other, |sum, n| *sum += n * many);
    }

    /// The profile of `executions` executions, of which it has `timed`.
    #[must_use]
    pub fn scaled(&self, executions: u64, timed: u64) -> Profile {
        let scale = |n: u64| (u128::from(n) * u128::from(executions) / u128::from(timed.max(1))) as u64;
        Profile {
            cycles: scale(self.cycles),
            in_flight: scale(self.in_flight),
            pipes: self.pipes.map(scale),
            stalls: self.stalls.map(scale),
            events: self.events.map(scale),
        }
    }

    /// Subtracts an earlier profile.
    pub fn subtract(&mut self, before: &Profile) {
        self.combine(before, |sum, n| *sum -= n);
    }

    fn combine(&mut self, other: &Profile, change: impl Fn(&mut u64, u64)) {
        change(&mut self.cycles, other.cycles);
        change(&mut self.in_flight, other.in_flight);
        self.stalls.iter_mut().zip(&other.stalls).for_each(|(sum, &n)| change(sum, n));
        self.pipes.iter_mut().zip(&other.pipes).for_each(|(sum, &n)| change(sum, n));
        self.events.iter_mut().zip(&other.events).for_each(|(sum, &n)| change(sum, n));
    }
}

/// What a block's code determines beyond its micro-operations. Blocks with the same code share it.
#[derive(Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct BlockTables {
    /// For each instruction, its memory access.
    pub mem: Box<[Option<BoundAccess>]>,
    /// Its memory accesses in order, as warming follows them.
    pub(crate) followed: Box<[Followed]>,
    /// For each instruction, one past its last micro-operation.
    pub uop_end: Box<[u32]>,
    /// Timing classes without a row: their instructions were given a plain integer operation's cost.
    pub unknown: Box<[usize]>,
    /// The instruction mix of each instruction, and of the block.
    pub(crate) inst_mix: Box<[FewSignals]>,
    pub(crate) mix: FewSignals,
}

/// A basic block, bound to a machine.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct BoundBlock {
    /// Address of the first instruction.
    pub start: u64,
    /// Micro-operations of all instructions, in order.
    pub uops: Arc<[BoundUop]>,
    /// What else its code determines.
    pub tables: Arc<BlockTables>,
    /// How the last instruction branches.
    pub branch: Branch,
    /// The profile of each instruction.
    pub profile: Box<[Profile]>,
    /// The number of the code's origin, given by the driver of the core.
    pub origin: u32,
    /// The number of the function that its first instruction is in, and whether that is the function's first one; set by the driver of
    /// the core.
    pub function: u32,
    /// See `function`.
    pub begins_function: bool,
    /// A region marker may be at its last instruction or at the next one, set by the driver of the core.
    pub marked: bool,
    /// How often the whole block was executed.
    pub executions: u64,
    /// In a sampled run, executions whose counts are known, and which the sample does not stand for.
    pub known: u64,
    /// In a sampled run, executions that were neither timed nor followed, or followed while caches were cold.
    pub skipped: u64,
    /// In a sampled run, the profile of its executions in windows; `profile` is that of the others.
    pub in_windows: Option<Box<[Profile]>>,
    /// The block ends with a system call or another trap on purpose.
    pub enters_kernel: bool,
    /// It may write control registers of the processor, or call the kernel, which may.
    pub controls: bool,
    /// It reads the time.
    pub reads_time: bool,
    /// Executions that were cut short, by instructions completed.
    pub(crate) cut: Vec<(usize, u64)>,
}

impl BoundBlock {
    /// Whether its tables fit together and name only what there is, as those of a snapshot may not.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let BlockTables { mem, uop_end, unknown, inst_mix, .. } = &*self.tables;
        let insts = uop_end.len();
        let mut ends = uop_end.iter().map(|&end| end as usize);
        insts > 0
            && [mem.len(), self.profile.len(), inst_mix.len()] == [insts; 3]
            && ends.clone().is_sorted()
            && ends.next_back() == Some(self.uops.len())
            && self.uops.iter().all(|uop| usize::from(uop.inst) < insts && uop.is_sound())
            && self.cut.iter().all(|&(completed, _)| completed <= insts)
            && self.in_windows.as_ref().is_none_or(|profile| profile.len() == insts)
            && self.known.saturating_add(self.skipped) <= self.executions_of(0)
            && unknown.iter().all(|&inst| inst < insts)
    }

    /// Returns whether it ends with a call or a return.
    #[inline(always)]
    #[must_use]
    pub fn calls_or_returns(&self) -> bool {
        matches!(self.branch, Branch::Call | Branch::IndirectCall | Branch::Return)
    }

    /// Returns whether it is a block of the same code at the same address as `other`, and shares its tables.
    #[must_use]
    pub fn shares_code_of(&self, other: &BoundBlock) -> bool {
        self.start == other.start && Arc::ptr_eq(&self.uops, &other.uops) && Arc::ptr_eq(&self.tables, &other.tables)
    }

    /// Returns the block as it was before it was executed.
    #[must_use]
    pub fn without_counts(&self) -> BoundBlock {
        BoundBlock {
            uops: Arc::clone(&self.uops),
            tables: Arc::clone(&self.tables),
            profile: vec![Profile::default(); self.profile.len()].into(),
            executions: 0,
            known: 0,
            skipped: 0,
            in_windows: None,
            cut: Vec::new(),
            ..*self
        }
    }

    /// Adds the executions of the same code that `other` has counted, with their profile.
    pub fn add_counts_of(&mut self, other: &BoundBlock) {
        self.profile.iter_mut().zip(&other.profile).for_each(|(sum, profile)| sum.add(profile));
        self.executions += other.executions;
        for &(completed, times) in &other.cut {
            match self.cut.iter_mut().find(|(n, _)| *n == completed) {
                Some((_, sum)) => *sum += times,
                None => self.cut.push((completed, times)),
            }
        }
    }

    /// Exchanges the profile with that of executions in windows.
    pub fn swap_profiles(&mut self) {
        let none = || vec![Profile::default(); self.profile.len()].into();
        let in_windows = self.in_windows.get_or_insert_with(none);
        std::mem::swap(&mut self.profile, in_windows);
    }

    /// Counts an execution of the first `executed` instructions.
    #[inline(always)]
    pub fn count(&mut self, executed: usize) {
        if executed == self.profile.len() {
            self.executions += 1;
        } else {
            self.count_cut(executed);
        }
    }

    /// Counts executions of the whole block, or of its first `executed` instructions, that were neither timed nor followed.
    pub fn count_skipped(&mut self, executions: u64, executed: Option<usize>) {
        self.skipped += executions;
        match executed.filter(|&executed| executed < self.profile.len()) {
            None => self.executions += executions,
            Some(executed) => self.count_cut(executed),
        }
    }

    #[cold]
    fn count_cut(&mut self, executed: usize) {
        match self.cut.iter_mut().find(|(n, _)| *n == executed) {
            Some((_, times)) => *times += 1,
            None => self.cut.push((executed, 1)),
        }
    }

    /// Charges cycles to instruction `inst` that no commit of a micro-operation accounts for.
    pub fn charge(&mut self, inst: u8, why: Stall, cycles: u64) {
        let profile = &mut self.profile[usize::from(inst)];
        profile.cycles += cycles;
        profile.stalls[why as usize] += cycles;
    }

    /// Charges the cycles of a system call to the last of the first `executed` instructions, which has made it.
    pub fn charge_kernel(&mut self, executed: usize, cycles: u64) {
        self.charge(executed.max(1) as u8 - 1, Stall::Kernel, cycles);
    }

    /// Flows of instruction `inst` that do floating-point arithmetic: those that take longest among its flows in FLA
    /// and FLB; the others move elements. Each repetition of a flow counts.
    pub(crate) fn arithmetic_flows(&self, inst: u8) -> u32 {
        let flows =
            self.uops.iter().filter(|uop| uop.inst == inst).flat_map(|uop| &uop.flows[..usize::from(uop.nflows)]);
        let (mut longest, mut count) = (0, 0);
        for flow in flows.filter(|flow| flow.pipes.meets(Pipes::FLA.or(Pipes::FLB))) {
            let latency = flow.latency - (flow.busy.max(1) - 1).min(flow.latency);
            if latency > longest {
                (longest, count) = (latency, 0);
            }
            count += if latency == longest { u32::from(flow.busy.max(1)) } else { 0 };
        }
        count.max(1)
    }

    /// In a sampled run, times it was executed, as a whole or in part, without being counted apart.
    #[must_use]
    pub fn sampled_executions(&self) -> u64 {
        self.executions_of(0) - self.known
    }

    /// Times instruction `i` was executed.
    #[must_use]
    pub fn executions_of(&self, i: usize) -> u64 {
        self.executions + self.cut.iter().filter(|(n, _)| *n > i).map(|(_, times)| times).sum::<u64>()
    }

    /// Adds what all executions contribute to the instruction mix.
    pub fn add_mix(&self, signals: &mut Signals) {
        self.tables.mix.add_to(signals, self.executions);
        for &(completed, times) in &self.cut {
            self.tables.inst_mix[..completed].iter().for_each(|mix| mix.add_to(signals, times));
        }
    }

    /// Adds the events that follow from one execution of its first `executed` instructions.
    pub fn add_mix_once(&self, executed: usize, signals: &mut Signals) {
        if executed == self.profile.len() {
            self.tables.mix.add_to(signals, 1);
        } else {
            self.tables.inst_mix[..executed].iter().for_each(|mix| mix.add_to(signals, 1));
        }
    }
}
