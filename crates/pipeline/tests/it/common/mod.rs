//! Small programs for the timing tests, and a rig that runs them on a core in a known state.

// Each test binary uses its own part of this module.
#![allow(dead_code)]

use std::sync::OnceLock;

use fxscope_counts::{Signal, Signals};
use fxscope_isa::{Access, Branch, InstKind, MemOp, Reg, Shape, StaticInst};
use fxscope_machine::Spec;
use fxscope_memory::Chip;
use fxscope_pipeline::bind::BoundUop;
use fxscope_pipeline::uop_probe::{StageTimes, UopProbe};
use fxscope_pipeline::{BoundBlock, Pipeline, bind_block};

/// Where the code of all programs lies, and how far it reaches.
pub const CODE: u64 = 0x40_0000;
const CODE_BYTES: u64 = 4096;
/// Where data begin: the first 64 KiB page is translated before anything is timed.
pub const DATA: u64 = 0x1000_0000;
/// Bytes of a cache line.
pub const LINE: u64 = 256;

/// General register `n`.
pub const fn x(n: u8) -> Reg {
    Reg::gpr(n)
}
/// Vector register `n`.
pub const fn z(n: u8) -> Reg {
    Reg::vector(n)
}
/// Predicate register `n`.
pub const fn p(n: u8) -> Reg {
    Reg::predicate(n)
}

/// An instruction with the words it leaves in the dynamic stream.
#[derive(Clone)]
pub struct Inst {
    pub info: StaticInst,
    pub words: Vec<u64>,
}

/// An instruction of `class`, a row of `instructions.csv`.
pub fn op(class: &'static str) -> Inst {
    let kind = match class.split(':').next() {
        Some("sve") => InstKind::Sve,
        Some("simd") => InstKind::AdvSimd,
        _ => InstKind::Integer,
    };
    Inst { info: StaticInst { kind, ..StaticInst::new(class) }, words: Vec::new() }
}

impl Inst {
    pub fn reads(mut self, regs: &[Reg]) -> Inst {
        regs.iter().for_each(|&r| self.info.srcs.push(r));
        self
    }
    /// It reads `reg` too, and adds to it.
    pub fn accumulates(mut self, reg: Reg) -> Inst {
        self.info.srcs.push(reg);
        self.info.accumulator = Some(reg);
        self
    }
    /// It reads one element of `reg` too, for all elements of its result.
    pub fn reads_element(mut self, reg: Reg) -> Inst {
        self.info.srcs.push(reg);
        self.info.element = Some(reg);
        self
    }
    pub fn writes(mut self, regs: &[Reg]) -> Inst {
        regs.iter().for_each(|&r| self.info.dsts.push(r));
        self
    }
    /// Its address is formed from `regs`.
    pub fn based(mut self, regs: &[Reg]) -> Inst {
        regs.iter().for_each(|&r| self.info.addr_srcs.push(r));
        self
    }
    /// A plain access of `bytes` at `addr`.
    pub fn access(mut self, access: Access, bytes: u16, addr: u64) -> Inst {
        self.info.mem = Some(MemOp::single(access, bytes));
        self.info.kind = InstKind::Memory;
        self.words = vec![addr];
        self
    }
    /// A contiguous vector access of `esize`-byte elements at `addr`, those of `mask` active.
    pub fn masked(mut self, access: Access, esize: u8, addr: u64, mask: u64) -> Inst {
        self.info.mem =
            Some(MemOp { shape: Shape::Masked, mem_esize: esize, reg_esize: esize, ..MemOp::single(access, 64) });
        self.info.kind = InstKind::Memory;
        self.words = vec![addr, mask];
        self
    }
    /// A gather or scatter of 8-byte elements; `None` is an inactive one.
    pub fn indexed(mut self, access: Access, addrs: [Option<u64>; 8]) -> Inst {
        self.info.mem = Some(MemOp { shape: Shape::Indexed, mem_esize: 8, reg_esize: 8, ..MemOp::single(access, 8) });
        self.info.kind = InstKind::Memory;
        let mask = addrs.iter().enumerate().map(|(i, a)| u64::from(a.is_some()) << (8 * i)).sum();
        self.words = std::iter::once(mask).chain(addrs.iter().map(|a| a.unwrap_or(0))).collect();
        self
    }
    pub fn branches(mut self, kind: Branch) -> Inst {
        self.info.branch = kind;
        self.info.kind = InstKind::Branch;
        self
    }
}

// ---- the instructions the tests are made of -------------------------------------------------------

pub fn nop() -> Inst {
    op("base:HINT {NOP}")
}
/// Waits for an event.
pub fn wfe() -> Inst {
    op("base:HINT {WFE}")
}
/// One cycle in any integer or address pipe.
pub fn add(d: u8, s: u8) -> Inst {
    op("base:ADD (immediate)").reads(&[x(s)]).writes(&[x(d)])
}
/// One cycle in EXA or EXB; sets the flags.
pub fn adds(d: u8, s: u8) -> Inst {
    op("base:ADDS (immediate)").reads(&[x(s)]).writes(&[x(d), Reg::NZCV])
}
/// One cycle in EXA or EXB; reads the flags.
pub fn csel(d: u8, s: u8) -> Inst {
    op("base:CSEL").reads(&[x(s), Reg::NZCV]).writes(&[x(d)])
}
/// Five cycles in EXA.
pub fn mul(d: u8, s: u8) -> Inst {
    op("base:MADD {MUL}").reads(&[x(s)]).writes(&[x(d)])
}
/// Ten cycles in EXB, blocking others of its kind.
pub fn crc(d: u8, s: u8) -> Inst {
    op("base:CRC32B").reads(&[x(s)]).writes(&[x(d)])
}
/// Nine cycles in either vector pipe.
pub fn fadd(d: u8, s: u8) -> Inst {
    op("sve:FADD (vectors, unpredicated)").reads(&[z(s)]).writes(&[z(d)])
}
/// Nine cycles in either vector pipe, accumulating.
pub fn fmla(d: u8, s: u8) -> Inst {
    op("sve:FMLA").reads(&[z(d), z(s)]).writes(&[z(d)])
}
/// A copy that is packed with a destructive operation behind it.
pub fn movprfx(d: u8, s: u8) -> Inst {
    let mut inst = op("sve:MOVPRFX (unpredicated)").reads(&[z(s)]).writes(&[z(d)]);
    inst.info.kind = InstKind::MovPrfx;
    inst
}
/// The same, which keeps what its predicate leaves out.
pub fn movprfx_merging(d: u8, s: u8) -> Inst {
    let mut inst = op("sve:MOVPRFX (predicated)").reads(&[p(0), z(s), z(d)]).writes(&[z(d)]);
    inst.info.kind = InstKind::MovPrfx;
    inst
}
/// Four cycles in either vector pipe under a predicate, accumulating; a merging MOVPRFX before it costs an operation.
pub fn add_predicated(d: u8, s: u8, pg: u8) -> Inst {
    op("sve:ADD (vectors, predicated)").reads(&[p(pg), z(d), z(s)]).writes(&[z(d)])
}
/// Two operations from EXA to FLA; the vector part of the second needs the first.
pub fn index(d: u8, s: u8) -> Inst {
    op("sve:INDEX (immediate, scalar) [T={B|H}]").reads(&[x(s)]).writes(&[z(d)])
}
/// Counts the elements of a predicate in PRX and EXA; then two flows in EXB, the second of which needs that.
pub fn uqincp(d: u8, s: u8) -> Inst {
    op("sve:UQINCP (scalar)").reads(&[x(d), p(s)]).writes(&[x(d)])
}
/// Four cycles in FLA only.
pub fn vector_and(d: u8, s: u8) -> Inst {
    op("sve:AND (immediate)").reads(&[z(s)]).writes(&[z(d)])
}
/// Three cycles in PRX.
pub fn ptrue(d: u8) -> Inst {
    op("sve:PTRUE").writes(&[p(d)])
}
/// Three cycles in PRX.
pub fn pand(d: u8, s: u8) -> Inst {
    op("sve:AND (predicates)").reads(&[p(s)]).writes(&[p(d)])
}
/// A cycle in EXA, then three in PRX.
pub fn whilelo(d: u8, a: u8, b: u8) -> Inst {
    op("sve:WHILELO").reads(&[x(a), x(b)]).writes(&[p(d)])
}
/// Three cycles in PRX; sets the flags.
pub fn ptest(s: u8) -> Inst {
    op("sve:PTEST").reads(&[p(s)]).writes(&[Reg::NZCV])
}
/// Four cycles in PRX and FLA together; sets a predicate and the flags.
pub fn cmpeq(d: u8, s: u8) -> Inst {
    op("sve:CMPEQ (vectors)").reads(&[z(s)]).writes(&[p(d), Reg::NZCV])
}
/// Four cycles in either vector pipe, under a predicate.
pub fn sel(d: u8, s: u8, pg: u8) -> Inst {
    op("sve:SEL (vectors)").reads(&[z(s), p(pg)]).writes(&[z(d)])
}
pub fn fcmp(s: u8) -> Inst {
    op("simd:FCMP").reads(&[z(s)]).writes(&[Reg::NZCV])
}
pub fn fcsel(d: u8, s: u8) -> Inst {
    op("simd:FCSEL").reads(&[z(s), Reg::NZCV]).writes(&[z(d)])
}
/// Two micro-operations, each a dispatch group of its own.
pub fn sequential(d: u8, s: u8) -> Inst {
    op("simd:FMLA (by element)").reads(&[z(d), z(s)]).writes(&[z(d)])
}
/// Integer load of eight bytes.
pub fn ldr(d: u8, base: u8, addr: u64) -> Inst {
    op("base:LDR (immediate) [Unsigned offset]").based(&[x(base)]).writes(&[x(d)]).access(Access::Load, 8, addr)
}
/// Scalar floating-point load (short mode).
pub fn ldr_d(d: u8, base: u8, addr: u64) -> Inst {
    op("simd:LDR (immediate, SIMD&FP) [Unsigned offset]").based(&[x(base)]).writes(&[z(d)]).access(
        Access::Load,
        8,
        addr,
    )
}
/// Vector load under a predicate (long mode), all active.
pub fn ld1d(d: u8, base: u8, pg: u8, addr: u64) -> Inst {
    op("sve:LD1D (scalar plus immediate)").based(&[x(base), p(pg)]).writes(&[z(d)]).masked(Access::Load, 8, addr, ALL_D)
}
/// Predicate load.
pub fn ldr_p(d: u8, base: u8, addr: u64) -> Inst {
    op("sve:LDR (predicate)").based(&[x(base)]).writes(&[p(d)]).access(Access::Load, 8, addr)
}
/// Whole-register vector load, EAGA only.
pub fn ldr_z(d: u8, base: u8, addr: u64) -> Inst {
    op("sve:LDR (vector)").based(&[x(base)]).writes(&[z(d)]).access(Access::Load, 64, addr)
}
/// Integer store of `bytes` bytes.
pub fn str_bytes(s: u8, base: u8, bytes: u16, addr: u64) -> Inst {
    op("base:STR (immediate) [Unsigned offset]").based(&[x(base)]).reads(&[x(s)]).access(Access::Store, bytes, addr)
}
/// Integer store of eight bytes.
pub fn str(s: u8, base: u8, addr: u64) -> Inst {
    str_bytes(s, base, 8, addr)
}
/// Vector store under a predicate, all active.
pub fn st1d(s: u8, base: u8, pg: u8, addr: u64) -> Inst {
    op("sve:ST1D (scalar plus immediate)").based(&[x(base), p(pg)]).reads(&[z(s)]).masked(Access::Store, 8, addr, ALL_D)
}
/// Whole-register vector store.
pub fn str_z(s: u8, base: u8, addr: u64) -> Inst {
    op("sve:STR (vector)").based(&[x(base)]).reads(&[z(s)]).access(Access::Store, 64, addr)
}
/// Predicate store.
pub fn str_p(s: u8, base: u8, addr: u64) -> Inst {
    op("sve:STR (predicate)").based(&[x(base)]).reads(&[p(s)]).access(Access::Store, 8, addr)
}
/// Load of structures of `regs` elements of `esize` bytes, all active, to registers from `d` on.
pub fn structures(class: &'static str, access: Access, regs: u8, esize: u8, d: u8, base: u8, addr: u64) -> Inst {
    let all: Vec<Reg> = (d..d + regs).map(z).collect();
    let inst = op(class).based(&[x(base), p(0)]);
    let mut inst = if access == Access::Load { inst.writes(&all) } else { inst.reads(&all) };
    let shape = MemOp::single(access, 64 * u16::from(regs));
    inst.info.mem =
        Some(MemOp { shape: Shape::Masked, mem_esize: esize, reg_esize: esize, regs, structure: true, ..shape });
    inst.words = vec![addr, u64::MAX];
    inst
}
/// Vector store of 4-byte elements, those of `mask` active.
pub fn st1w(s: u8, base: u8, pg: u8, addr: u64, mask: u64) -> Inst {
    op("sve:ST1W (scalar plus immediate)").based(&[x(base), p(pg)]).reads(&[z(s)]).masked(Access::Store, 4, addr, mask)
}
/// Gather of 8-byte elements from a scalar base and vector offsets.
pub fn gather(d: u8, base: u8, offsets: u8, pg: u8, addrs: [Option<u64>; 8]) -> Inst {
    op("sve:LD1D (scalar plus vector)")
        .based(&[x(base), z(offsets), p(pg)])
        .writes(&[z(d)])
        .indexed(Access::Load, addrs)
}
/// Scatter of 8-byte elements, to a scalar base and vector offsets.
pub fn scatter(s: u8, base: u8, offsets: u8, pg: u8, addrs: [Option<u64>; 8]) -> Inst {
    op("sve:ST1D (scalar plus vector)")
        .based(&[x(base), z(offsets), p(pg)])
        .reads(&[z(s)])
        .indexed(Access::Store, addrs)
}
pub fn gather_prefetch(base: u8, offsets: u8, pg: u8, addrs: [Option<u64>; 8]) -> Inst {
    op("sve:PRFD (scalar plus vector) [otherwise]")
        .based(&[x(base), z(offsets), p(pg)])
        .indexed(Access::PrefetchLoad(1), addrs)
}
pub fn b_cond() -> Inst {
    op("base:B.cond").reads(&[Reg::NZCV]).branches(Branch::Conditional)
}
pub fn cbz(s: u8) -> Inst {
    op("base:CBZ").reads(&[x(s)]).branches(Branch::Compare)
}
/// The address of something near: one cycle in EAGB.
pub fn adr(d: u8) -> Inst {
    op("base:ADR").writes(&[x(d)])
}
pub fn bl() -> Inst {
    op("base:BL").writes(&[x(30)]).branches(Branch::Call)
}
pub fn ret() -> Inst {
    op("base:RET").reads(&[x(30)]).branches(Branch::Return)
}
pub fn b() -> Inst {
    op("base:B").branches(Branch::Direct)
}

/// Byte mask with all 8-byte elements active.
pub const ALL_D: u64 = 0x0101_0101_0101_0101;
/// Byte mask with all 4-byte elements active.
pub const ALL_S: u64 = 0x1111_1111_1111_1111;

/// A small deterministic generator (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % n
    }
    /// A register number among the first `n`.
    pub fn reg(&mut self, n: u64) -> u8 {
        self.below(n) as u8
    }
}

// ---- running -------------------------------------------------------------------------------------

/// A basic block with what one execution of it leaves in the dynamic stream.
pub struct Block {
    bound: BoundBlock,
    stream: Vec<u64>,
    last: Option<StaticInst>,
}

impl Block {
    /// Adds the instruction mix of its executions.
    pub fn add_mix(&self, counts: &mut Signals) {
        self.bound.add_mix(counts);
    }

    pub fn new(start: u64, insts: &[Inst], spec: &Spec) -> Block {
        let infos: Vec<StaticInst> =
            (start..).step_by(4).zip(insts).map(|(addr, i)| StaticInst { addr, ..i.info }).collect();
        let bound = bind_block(start, &infos, spec);
        assert!(bound.tables.unknown.is_empty(), "instructions without a row");
        let last = insts.last().map(|inst| inst.info);
        Block { bound, stream: insts.iter().flat_map(|i| i.words.clone()).collect(), last }
    }
    /// The block as the core has it.
    pub fn bound(&self) -> &BoundBlock {
        &self.bound
    }
    /// The words that it leaves in the dynamic stream.
    pub fn stream(&self) -> &[u64] {
        &self.stream
    }
    pub fn uops(&self) -> &[fxscope_pipeline::bind::BoundUop] {
        &self.bound.uops
    }
    /// For each instruction, its memory access and the words it leaves.
    pub fn accesses(&self) -> Vec<Option<(fxscope_pipeline::bind::BoundAccess, Vec<u64>)>> {
        let mut words = self.stream.iter().copied();
        let mut take =
            |m: &fxscope_pipeline::bind::BoundAccess| (*m, words.by_ref().take(usize::from(m.words)).collect());
        self.bound.tables.mem.iter().map(|m| m.as_ref().map(&mut take)).collect()
    }
    /// For each instruction, what is known from its executions.
    pub fn profile(&self) -> &[fxscope_pipeline::bind::Profile] {
        &self.bound.profile
    }
    /// Address of its first instruction.
    pub fn start(&self) -> u64 {
        self.bound.start
    }
    /// Address behind its last instruction.
    pub fn end(&self) -> u64 {
        self.bound.start + 4 * self.bound.profile.len() as u64
    }
}

/// The real machine without its stream prefetcher, so that misses are what a test says they are.
pub fn machine() -> Spec {
    // Reading the description takes longer than most tests.
    static MACHINE: OnceLock<Spec> = OnceLock::new();
    let read = || {
        let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        spec.tables.prefetch.l1 = false;
        spec.tables.prefetch.l2 = false;
        spec
    };
    MACHINE.get_or_init(read).clone()
}

/// A core whose code is cached and whose first data page is translated.
pub struct Rig {
    pub spec: Spec,
    pub core: Pipeline,
    pub chip: Chip,
    /// When the first instruction of the current program reaches decode (stage D).
    pub decode: u64,
}

/// Long enough for everything in flight to end.
const IDLE: u64 = 3_000;

impl Rig {
    /// With the first 64 lines from `DATA` on in the L1D cache.
    pub fn cached(spec: Spec) -> Rig {
        let mut rig = Rig::new(spec);
        rig.warm((0..64).map(|i| DATA + i * LINE));
        rig
    }
    pub fn new(spec: Spec) -> Rig {
        let (core, chip) = (Pipeline::new(&spec, 0), Chip::new(&spec));
        let mut rig = Rig { spec, core, chip, decode: 0 };
        let mut program = vec![nop(); (CODE_BYTES / 4) as usize];
        program[0] = ldr(9, 9, DATA + 0xff00);
        rig.time(&program);
        rig
    }

    /// Brings the lines of `addrs` into the L1D cache.
    pub fn warm(&mut self, addrs: impl IntoIterator<Item = u64>) {
        let loads: Vec<Inst> = addrs.into_iter().map(|a| ldr(9, 10, a)).collect();
        self.time(&loads);
    }

    /// Brings the code from [`CODE`] up to `end` into the L1I cache.
    pub fn warm_code(&mut self, end: u64) {
        let insts = vec![nop(); 64];
        let starts = (CODE..end).step_by(4 * insts.len());
        let mut blocks: Vec<Block> = starts.map(|start| Block::new(start, &insts, &self.spec)).collect();
        let order: Vec<usize> = (0..blocks.len()).collect();
        self.time_blocks(&mut blocks, &order);
    }

    /// The branch at the end of each of `blocks`, which lead to each other, has gone its way (`taken`) once before.
    pub fn learn_branches(&mut self, blocks: &[Block], taken: &[bool]) {
        for ((block, &taken), next) in blocks.iter().zip(taken).zip(&blocks[1..]) {
            if let (true, Some(info)) = (taken, block.last) {
                self.take(block.end() - 4, &Inst { info, words: Vec::new() }, next.start());
            }
        }
    }

    /// Everything in flight ends; the next instruction finds an empty core.
    pub fn drain(&mut self) {
        let resume = self.core.now() + 1 + IDLE;
        self.core.pause(IDLE);
        self.decode = resume + self.spec.frontend.fetch_to_decode;
    }

    /// Runs a straight line of instructions on an empty core. Returns the cycles from the decode of the first one
    /// to the commit of the last.
    pub fn time(&mut self, insts: &[Inst]) -> u64 {
        let mut at = 0;
        let mut blocks = Vec::new();
        for part in insts.chunks(128) {
            blocks.push(Block::new(CODE + at % CODE_BYTES, part, &self.spec));
            at += 4 * part.len() as u64;
        }
        let order: Vec<usize> = (0..blocks.len()).collect();
        self.time_blocks(&mut blocks, &order)
    }

    /// The branch at `addr` leads to `target` once: from then on the target buffer knows it.
    pub fn take(&mut self, addr: u64, branch: &Inst, target: u64) {
        let Block { mut bound, stream, .. } = Block::new(addr, std::slice::from_ref(branch), &self.spec);
        self.core.run(&mut bound, 1, &stream, target, &mut self.chip);
    }

    /// Runs `body`, whose last instruction branches and has done so once before, `rounds` times.
    pub fn time_loop(&mut self, body: &[Inst], rounds: usize) -> u64 {
        let (branch, others) = body.split_last().expect("a branch at least");
        self.take(CODE + 4 * others.len() as u64, branch, CODE);
        let mut blocks = [Block::new(CODE, body, &self.spec)];
        self.time_blocks(&mut blocks, &vec![0; rounds])
    }

    /// Runs `blocks` in `order` on an empty core: each block's last instruction leads to the next one.
    pub fn time_blocks(&mut self, blocks: &mut [Block], order: &[usize]) -> u64 {
        self.drain();
        self.run_blocks(blocks, order);
        self.core.now() - self.decode
    }

    /// Runs `blocks` in `order`, without waiting for anything in flight.
    pub fn run_blocks(&mut self, blocks: &mut [Block], order: &[usize]) {
        for (i, &this) in order.iter().enumerate() {
            let next = order.get(i + 1).map_or(blocks[this].end(), |&n| blocks[n].bound.start);
            let Block { bound, stream, .. } = &mut blocks[this];
            self.core.run(bound, bound.profile.len(), stream, next, &mut self.chip);
            bound.count(bound.profile.len());
        }
    }

    /// Runs at most 128 instructions in a straight line on an empty core; the stage times of each micro-operation.
    pub fn stage_times(&mut self, insts: &[Inst]) -> Vec<StageTimes> {
        struct All(Vec<StageTimes>);
        impl UopProbe for All {
            const ACTIVE: bool = true;
            fn passed(&mut self, _: &BoundUop, _: u64, times: &StageTimes) {
                self.0.push(*times);
            }
        }
        self.drain();
        let mut block = Block::new(CODE, insts, &self.spec);
        let end = block.end();
        let mut all = All(Vec::new());
        self.core.run_probed(&mut block.bound, insts.len(), &block.stream, end, &mut all, &mut self.chip);
        all.0
    }

    /// The same as [`Rig::time`], with what was counted meanwhile.
    pub fn count(&mut self, insts: &[Inst]) -> (u64, Counts) {
        self.drain();
        let before = self.core.counters();
        let cycles = self.time(insts);
        (cycles, Counts(self.core.counters().since(&before)))
    }

    /// Cycles that `n` copies of `body` add behind `n` copies of it: what it costs in the long run.
    pub fn steady(&mut self, body: &[Inst], n: usize) -> u64 {
        let copies = |n: usize| -> Vec<Inst> { body.iter().cycle().take(n * body.len()).cloned().collect() };
        let once = self.time(&copies(n));
        self.time(&copies(2 * n)) - once
    }
}

/// Counts of a timed program.
pub struct Counts(pub Signals);

impl Counts {
    pub fn get(&self, signal: Signal) -> u64 {
        self.0.get(signal)
    }
}
