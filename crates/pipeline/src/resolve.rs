//! Joins decoded instructions with the machine's recipes: once for each static instruction.

use fxscope_base::Signals;
use fxscope_machine::{Blocking, Pipes, Recipe, Spec, Uop};
use fxscope_uop::{Access, Branch, InstKind, MemOp, Reg, RegClass, RegList, Shape, StaticInst};

use crate::mix::count_mix;
pub use crate::resolved::{
    Action, Attribute, BY_PIPE, FLOWS, PRODUCERS, Producer, READY, REGS, RFlow, RMem, RUop, ResolvedBlock, TEMP, TEMPS,
    chain_bit,
};

/// Resolves a block of decoded instructions for `spec`.
#[must_use]
pub fn resolve_block(start: u64, infos: &[StaticInst], spec: &Spec) -> ResolvedBlock {
    let mut uops = Vec::new();
    let mut uop_end = Vec::new();
    let mut unknown = Vec::new();
    let mut inst_mix = Vec::new();
    let words_per_vector = spec.clock.vector_bits / 8;
    let mut prefix: Option<&StaticInst> = None;
    for (i, info) in infos.iter().enumerate() {
        let before = uops.len();
        let moved = prefix.take();
        let packed = moved.map(|p| behind_prefix(info, p));
        let info = packed.as_ref().unwrap_or(info);
        let plain;
        let recipe = match spec.recipes.get(info.class) {
            Some(recipe) => recipe,
            None => {
                unknown.push(i);
                plain = Recipe { uops: vec![Uop::default()], ..Recipe::default() };
                &plain
            }
        };
        let packs = |next: &StaticInst| spec.recipes.get(next.class).is_some_and(|r| r.movprfx_packable);
        if info.kind == InstKind::MovPrfx && infos.get(i + 1).is_some_and(packs) {
            // It becomes one micro-operation with the instruction behind it (manual 4.3).
            prefix = Some(&infos[i]);
        } else if let Some(merge) = moved.filter(|p| recipe.movprfx_extra_uop && merges(p)) {
            resolve_inst(i as u8, info, &with_merge(recipe, merge, spec), spec, &mut uops);
        } else {
            resolve_inst(i as u8, info, recipe, spec, &mut uops);
        }
        uop_end.push(uops.len() as u32);
        let mut mix = Signals::default();
        count_mix(info, (uops.len() - before) as u64, &mut mix);
        inst_mix.push(mix);
    }
    let mem: Box<[Option<RMem>]> =
        infos.iter().map(|info| info.mem.map(|op| resolve_mem(&op, info, words_per_vector as usize))).collect();
    let branch = infos.last().map_or(Branch::None, |i| i.branch);
    if let Some(last) = uops.last_mut() {
        last.branches = branch != Branch::None;
    }
    place_words(&mut uops, &mem);
    place_in_blocks(&mut uops, start, u64::from(spec.frontend.fetch_bytes));
    let mut mix = Signals::default();
    inst_mix.iter().for_each(|m| mix.merge(m));
    ResolvedBlock {
        start,
        uops: uops.into(),
        mem,
        uop_end: uop_end.into(),
        branch,
        unknown: unknown.into(),
        cycles: vec![0; infos.len()].into(),
        executions: 0,
        enters_kernel: infos.last().is_some_and(|i| i.serialising && i.kind == InstKind::System),
        inst_mix: inst_mix.into(),
        mix,
        cut: Vec::new(),
    }
}

/// Tells each micro-operation of its instruction's memory access and where its words are.
fn place_words(uops: &mut [RUop], mem: &[Option<RMem>]) {
    let starts: Vec<u16> = mem
        .iter()
        .scan(0, |next, m| Some(std::mem::replace(next, *next + m.map_or(0, |m| u16::from(m.words)))))
        .collect();
    for uop in uops {
        uop.mem = mem[usize::from(uop.inst)].unwrap_or(RMem::NONE);
        uop.word = starts[usize::from(uop.inst)];
    }
}

/// Marks the micro-operations with which a fetch block begins.
fn place_in_blocks(uops: &mut [RUop], start: u64, fetch_bytes: u64) {
    // The instruction behind the last one that has micro-operations: instructions from there on come together.
    let mut from = 0;
    for uop in uops {
        let inst = u64::from(uop.inst);
        let aligned = |i: u64| (start + 4 * i).is_multiple_of(fetch_bytes);
        uop.opens_block = (from..=inst).any(aligned);
        uop.crosses_block = from < inst && aligned(inst);
        from = inst + 1;
    }
}

/// An instruction packed with the MOVPRFX before it: it reads what the MOVPRFX reads in place of the register moved.
fn behind_prefix(info: &StaticInst, prefix: &StaticInst) -> StaticInst {
    let mut packed = *info;
    packed.srcs = RegList::EMPTY;
    for reg in info.srcs.iter() {
        if prefix.dsts.iter().any(|d| d == reg) {
            prefix.srcs.iter().filter(|s| *s != reg).for_each(|s| packed.srcs.push(s));
        } else {
            packed.srcs.push(reg);
        }
    }
    packed
}

/// Whether a MOVPRFX keeps inactive elements: it reads what it writes.
fn merges(prefix: &StaticInst) -> bool {
    prefix.srcs.iter().any(|s| prefix.dsts.iter().any(|d| d == s))
}

/// An instruction packed with a merging MOVPRFX has the MOVPRFX's own operation at its end (manual 4.3).
fn with_merge(recipe: &Recipe, prefix: &StaticInst, spec: &Spec) -> Recipe {
    let mut merged = recipe.clone();
    let own = spec.recipes.get(prefix.class).and_then(|r| r.uops.first()).cloned().unwrap_or_default();
    merged.uops.push(Uop { depends: vec![1], ..own });
    merged
}

fn resolve_mem(op: &MemOp, info: &StaticInst, vector_bytes: usize) -> RMem {
    let vector = info.dsts.iter().chain(info.srcs.iter()).any(|r| r.class() == RegClass::Vector);
    let words = match op.shape {
        Shape::Single => 1,
        Shape::Masked => 2,
        Shape::Indexed => 1 + vector_bytes / usize::from(op.reg_esize),
    };
    // Manual table 7-5: 8-byte and larger aligned stores, element-wise contiguous SVE stores of 8 bytes.
    let eligible = match op.shape {
        Shape::Single => op.bytes >= 8,
        Shape::Masked => !op.structure,
        Shape::Indexed => false,
    };
    // Manual tables 7-3 and 7-4: scalar stores up to 8 bytes, and whole-register STR of vectors and predicates.
    let forward_bytes = match op.shape {
        Shape::Single if op.regs == 1 && (op.bytes <= 8 || (vector && op.bytes as usize == vector_bytes)) => {
            op.bytes as u8
        }
        _ => 0,
    };
    RMem { op: *op, eligible, forward_bytes, words: words as u8 }
}

/// Assigns operands and results of one instruction to the micro-operations of its recipe.
fn resolve_inst(index: u8, info: &StaticInst, recipe: &Recipe, spec: &Spec, out: &mut Vec<RUop>) {
    let count = recipe.uops.len().max(1);
    let first = out.len();
    let memory_uops: Vec<usize> = (0..recipe.uops.len()).filter(|&k| is_memory(&recipe.uops[k], info)).collect();
    let update = info.writeback.map(|_| recipe.uops.len().saturating_sub(1));
    for (k, uop) in recipe.uops.iter().enumerate() {
        let mut r = blank(index);
        r.flows_from(uop, info, spec);
        r.exclusive = uop.blocking == Blocking::Operation;
        r.movprfx = info.kind == InstKind::MovPrfx;
        r.last = k + 1 == count;
        // A gather or scatter is decoded alone (manual 7.8.2).
        let alone = info.mem.is_some_and(|op| op.shape == Shape::Indexed);
        r.opens_group = recipe.sequential || (k == 0 && (count >= 3 || alone));
        r.closes_group = recipe.sequential || (alone && r.last);
        r.pre_sync = (recipe.pre_sync || info.serialising) && k == 0;
        r.post_sync = (recipe.post_sync || info.serialising) && r.last;
        for &distance in &uop.depends {
            if let Some(producer) = k.checked_sub(distance as usize) {
                push(&mut r.srcs, temp(producer));
            }
        }
        let is_update = update == Some(k) && info.mem.is_some() && !memory_uops.contains(&k);
        let part = memory_uops.iter().position(|&m| m == k);
        if let (Some(part), Some(op)) = (part, info.mem) {
            r.memory(part, memory_uops.len(), &op, info, spec);
            let share = |ports: u32| ports.div_ceil(memory_uops.len() as u32).clamp(1, 64) as u8;
            r.fetch_ports = share(recipe.fetch_ports);
            r.store_ports = share(recipe.store_ports);
        } else if is_update {
            add_all(&mut r.addr_srcs, &info.addr_srcs);
            r.addr_to_srcs();
        } else if uop.depends.is_empty() || k == 0 {
            add_all(&mut r.srcs, &info.srcs);
            if info.mem.is_some() {
                add_all(&mut r.addr_srcs, &info.addr_srcs);
                r.addr_to_srcs();
            }
        }
        r.results(k, count, part, memory_uops.len(), is_update, info);
        r.branch(info, k + 1 == count);
        r.commit_from(info, spec);
        r.finish();
        out.push(r);
    }
    if recipe.uops.is_empty() {
        out.push(RUop { last: true, ..blank(index) });
    }
    debug_assert!(out.len() > first);
}

/// Whether this micro-operation accesses memory: it passes an address pipe, in an instruction that does,
/// and is not the update of the base register.
fn is_memory(uop: &Uop, info: &StaticInst) -> bool {
    let Some(op) = info.mem else { return false };
    let address = Pipes::EAGA.or(Pipes::EAGB);
    let only_address = |p: Pipes| p.meets(address) && p.0 & !address.0 == 0;
    match op.access {
        // An address computation has latency 1; what goes to the cache has the load-to-use latency.
        Access::Load => uop.flows.iter().any(|f| only_address(f.pipes) && f.latency >= 5),
        Access::Atomic => uop.flows.iter().any(|f| only_address(f.pipes) && (f.latency >= 5 || f.latency == 0)),
        _ => uop.flows.iter().any(|f| f.pipes.meets(address) && f.latency == 0),
    }
}

fn blank(inst: u8) -> RUop {
    RUop {
        action: Action::None,
        attribute: Attribute::None,
        nflows: 0,
        flows: [RFlow::default(); FLOWS],
        srcs: [READY; 6],
        addr_srcs: [READY; 4],
        dsts: [READY; 3],
        producers: [Producer::Plain as u8; 3],
        to_commit: 1,
        renames: [0; 4],
        exclusive: false,
        simple: false,
        opens_group: false,
        closes_group: false,
        pre_sync: false,
        post_sync: false,
        chains: false,
        chain_srcs: 0,
        chain_dsts: 0,
        fetch_ports: 0,
        store_ports: 0,
        opens_block: false,
        crosses_block: false,
        last: false,
        branches: false,
        movprfx: false,
        vector: false,
        inst,
        part: 0,
        parts: 1,
        load_latency: 0,
        mem: RMem::NONE,
        word: 0,
    }
}

fn temp(uop: usize) -> u8 {
    TEMP + (uop % TEMPS) as u8
}

/// Adds `reg` to a list of operands. Lists are as long as the most demanding instruction; operands
/// beyond that would only be ready earlier than others of the same instruction in practice.
fn push(list: &mut [u8], reg: u8) {
    if list.contains(&reg) {
        return;
    }
    if let Some(slot) = list.iter_mut().find(|s| **s == READY) {
        *slot = reg;
    }
}

/// Takes one more rename register of a class.
fn rename(renames: &mut [u8; 4], class: u8) {
    if let Some(slot) = renames.iter_mut().find(|s| **s == 0) {
        *slot = class;
    }
}

fn add_all(list: &mut [u8], regs: &RegList) {
    for reg in regs.iter() {
        push(list, reg.0);
    }
}

const FL: Pipes = Pipes::FLA.or(Pipes::FLB);
const EX: Pipes = Pipes::EXA.or(Pipes::EXB);
const EAG: Pipes = Pipes::EAGA.or(Pipes::EAGB);

impl RUop {
    fn flows_from(&mut self, uop: &Uop, info: &StaticInst, spec: &Spec) {
        let point = u64::from(spec.assumptions.divide_point);
        let latency = |f: &fxscope_machine::Flow| {
            u64::from(f.latency) + u64::from(f.latency_max - f.latency) * point / 100 + u64::from(f.wait)
        };
        self.action = if uop.flows.is_empty() { Action::None } else { Action::Compute };
        if uop.blocking == Blocking::Pipe && !uop.flows.is_empty() {
            // The flows follow each other in one pipe, which takes nothing else until they are through.
            let total: u64 = uop.flows.iter().map(latency).sum();
            self.nflows = 1;
            self.flows[0] = RFlow { pipes: uop.flows[0].pipes, all: false, latency: total as u16, busy: total as u16 };
        } else if uop.flows.len() == 2 && uop.flows[1].independent && info.mem.is_none() && info.branch == Branch::None
        {
            // Two pipes work on it at the same time (a vector compare, say).
            let pipes = uop.flows[0].pipes.or(uop.flows[1].pipes);
            let longest = uop.flows.iter().map(latency).max().unwrap_or(0);
            self.nflows = 1;
            self.flows[0] = RFlow { pipes, all: true, latency: longest as u16, busy: 1 };
        } else {
            for (slot, f) in self.flows.iter_mut().zip(&uop.flows) {
                let repeat = f.repeat.max(1);
                *slot = RFlow {
                    pipes: f.pipes,
                    all: f.all_pipes,
                    latency: (latency(f) + u64::from(repeat - 1)) as u16,
                    busy: repeat as u16,
                };
                self.nflows += 1;
            }
        }
        self.attribute = attribute(self.flows[0].pipes, self.nflows);
        self.vector = self.flows[..usize::from(self.nflows)].iter().any(|f| f.pipes.meets(FL));
    }

    fn memory(&mut self, part: usize, parts: usize, op: &MemOp, info: &StaticInst, spec: &Spec) {
        add_all(&mut self.addr_srcs, &info.addr_srcs);
        self.part = part as u8;
        self.parts = parts as u8;
        let ls = &spec.load_store;
        let vector = info.dsts.iter().next().is_some_and(|r| r.class() == RegClass::Vector);
        match op.access {
            Access::Load | Access::Atomic => {
                self.action = Action::Load;
                self.vector = vector;
                let last = self.flows[usize::from(self.nflows.max(1) - 1)];
                // The unit itself spreads the flows of a gather: the latency is that of one.
                let latency = last.latency.saturating_sub(last.busy.max(1) - 1);
                self.load_latency = if latency >= 5 { latency } else { ls.load_integer as u16 } as u8;
            }
            Access::Store => {
                self.action = Action::Store;
                // Data of a pair or structure: one register for each part.
                match (parts, info.srcs.get(part)) {
                    (1, _) | (_, None) => add_all(&mut self.srcs, &info.srcs),
                    (_, Some(reg)) => push(&mut self.srcs, reg.0),
                }
                self.vector = info.srcs.iter().any(|r| r.class() != RegClass::Gpr);
            }
            Access::PrefetchLoad(_) | Access::PrefetchStore(_) => self.action = Action::Prefetch,
            Access::ZeroLine => self.action = Action::Zero,
        }
    }

    /// An operation on the base register: it needs what addresses need.
    fn addr_to_srcs(&mut self) {
        for reg in self.addr_srcs {
            if reg != READY {
                push(&mut self.srcs, reg);
            }
        }
    }

    /// Which results this micro-operation makes.
    fn results(&mut self, k: usize, count: usize, part: Option<usize>, parts: usize, update: bool, info: &StaticInst) {
        if k + 1 < count {
            push(&mut self.dsts, temp(k));
        }
        let loads = info.mem.is_some_and(|op| op.access == Access::Load);
        let mut give = |reg: Reg| {
            push(&mut self.dsts, reg.0);
            match reg.class() {
                RegClass::Gpr => rename(&mut self.renames, 1),
                RegClass::Vector => rename(&mut self.renames, 2),
                RegClass::Predicate => rename(&mut self.renames, 3),
                RegClass::Flags => {}
            }
        };
        if update {
            if let Some(base) = info.writeback {
                give(base);
            }
        } else if loads && parts > 1 && info.dsts.len() == parts {
            if let Some(reg) = part.and_then(|p| info.dsts.get(p)) {
                give(reg);
            }
        } else if loads && parts > 0 {
            // One register, or several from fewer flows: all come with the last loading one.
            if part == Some(parts - 1) {
                info.dsts.iter().for_each(&mut give);
            }
        } else if k + 1 == count {
            info.dsts.iter().for_each(&mut give);
        }
        if k + 1 == count
            && !update
            && parts > 0
            && let Some(base) = info.writeback
        {
            // A row without a separate update: the base comes with the access.
            if !self.dsts.contains(&base.0) && part.is_some() {
                push(&mut self.dsts, base.0);
                rename(&mut self.renames, 1);
            }
        }
        for (i, dst) in self.dsts.into_iter().enumerate() {
            self.producers[i] = self.producer_of(dst, info);
        }
    }

    /// How the result `dst` bypasses.
    fn producer_of(&self, dst: u8, info: &StaticInst) -> u8 {
        let made = self.result_producer(info);
        let flags = dst == Reg::NZCV.0;
        let producer = match made {
            Producer::Predicate if flags => Producer::PredicateFlags,
            Producer::Compare if flags => Producer::CompareFlags,
            Producer::Plain if flags && self.vector => Producer::VectorFlags,
            Producer::Plain if flags => Producer::Flags,
            Producer::Plain if self.action == Action::Load || self.vector => Producer::Plain,
            Producer::Plain => return BY_PIPE,
            other => other,
        };
        producer as u8
    }

    fn result_producer(&self, info: &StaticInst) -> Producer {
        let predicate = info.dsts.iter().any(|r| r.class() == RegClass::Predicate);
        let used = |p: Pipes| self.flows[..usize::from(self.nflows)].iter().any(|f| f.pipes.meets(p));
        match () {
            () if predicate && self.action == Action::Load => Producer::PredicateLoad,
            () if predicate && used(FL) => Producer::Compare,
            // Of flows one after the other, the last makes the result.
            () if self.flows[usize::from(self.nflows.max(1)) - 1].pipes.meets(Pipes::PRX) => Producer::Predicate,
            () => Producer::Plain,
        }
    }

    fn branch(&mut self, info: &StaticInst, last: bool) {
        if !last {
            return;
        }
        self.action = match info.branch {
            Branch::None => return,
            Branch::Direct | Branch::Call => Action::BranchDirect,
            Branch::Conditional => Action::BranchOnFlags,
            Branch::Compare | Branch::Indirect | Branch::IndirectCall | Branch::Return => Action::BranchExecuted,
        };
    }

    /// What follows from the rest.
    fn finish(&mut self) {
        self.chains =
            self.action == Action::Compute && !self.vector && matches!(self.attribute, Attribute::Rsx | Attribute::Rse);
        let bits = |registers: &[u8]| registers.iter().map(|&r| chain_bit(r)).fold(0, |all, bit| all | bit);
        self.chain_srcs = bits(&self.srcs);
        self.chain_dsts = if self.chains { bits(&self.dsts) } else { 0 };
        let flow = &self.flows[0];
        self.simple = self.nflows == 1 && flow.busy <= 1 && !flow.all && !self.exclusive;
    }

    fn commit_from(&mut self, info: &StaticInst, spec: &Spec) {
        let s = &spec.stages;
        let long = self.load_latency as u64 > spec.load_store.load_short
            || info.mem.is_some_and(|op| op.shape != Shape::Single && self.vector);
        let cycles = match self.action {
            Action::Load | Action::Store | Action::Prefetch | Action::Zero => {
                if long {
                    s.commit_long
                } else {
                    s.commit_short
                }
            }
            Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted => s.commit_branch,
            Action::None => 1,
            Action::Compute if self.vector => s.commit_vector,
            Action::Compute if self.result_producer(info) == Producer::Predicate => {
                // The flags come a stage after the predicate (manual figures 2-2 to 2-6).
                s.commit_predicate + u64::from(info.dsts.iter().any(|r| r == Reg::NZCV))
            }
            Action::Compute => s.commit_integer,
        };
        self.to_commit = cycles as u8;
    }
}

fn attribute(first: Pipes, nflows: u8) -> Attribute {
    let within = |set: Pipes| first.0 & !set.0 == 0;
    match () {
        () if nflows == 0 || first.is_empty() => Attribute::None,
        () if within(Pipes::BR) => Attribute::Rsbr,
        () if within(EAG) => Attribute::Rsa,
        () if within(Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX)) => Attribute::Rse0,
        () if within(Pipes::EXB.or(Pipes::FLB)) => Attribute::Rse1,
        () if within(EX.or(FL)) => Attribute::Rse,
        () => Attribute::Rsx,
    }
}
