//! Binds decoded instructions to a machine: joins them with its recipes, once for each static instruction.

mod accounting;
mod flows;
mod memory;
mod operands;
mod prefix;
mod roles;
mod shared;

use std::sync::Arc;

use fxscope_counts::{FewSignals, Signals, Stall};
use fxscope_isa::{Branch, InstKind, Shape, StaticInst};
use fxscope_machine::{Blocking, Recipe, Spec, Uop};

pub use self::memory::lacks_access;
use self::prefix::{behind_prefix, merges, with_merge};
use self::roles::Roles;
pub use self::shared::SharedTables;
pub use crate::bound::{
    Action, Attribute, BY_PIPE, BlockTables, BoundAccess, BoundBlock, BoundFlow, BoundUop, Brief, FLOWS, Late,
    PIPE_NAMES, PIPES, PRODUCERS, Producer, Profile, READY, REGS, TEMP, TEMPS, chain_bit,
};
use crate::commit::counts;
use crate::lsu::rules::bind_access;
use crate::mix::count_mix;
use crate::partial::count_store_data;
use crate::predecode::share;
use crate::warming::Followed;

/// Binds a block of decoded instructions to the machine `spec`.
#[must_use]
pub fn bind_block(start: u64, infos: &[StaticInst], spec: &Spec) -> BoundBlock {
    let mut uops = Vec::new();
    let mut uop_end = Vec::new();
    let mut unknown = Vec::new();
    let (mut inst_mix, mut all_mix) = (Vec::new(), Signals::default());
    let mut prefix: Option<&StaticInst> = None;
    for (i, info) in infos.iter().enumerate() {
        let before = uops.len();
        let plain;
        let recipe = match spec.recipes.get(info.class).filter(|recipe| !lacks_access(info, recipe)) {
            Some(recipe) => recipe,
            None => {
                unknown.push(i);
                plain = Recipe { uops: [Uop::default()].into(), ..Recipe::default() };
                &plain
            }
        };
        let moved = prefix.take();
        let merge = moved.filter(|p| recipe.movprfx_extra_uop && merges(p));
        let packed = moved.map(|p| behind_prefix(info, p, merge.is_some()));
        let info = packed.as_ref().unwrap_or(info);
        let packs = |next: &StaticInst| spec.recipes.get(next.class).is_some_and(|r| r.movprfx_packable);
        if info.kind == InstKind::MovPrfx && infos.get(i + 1).is_some_and(packs) {
            // It is packed with the next instruction into one micro-operation (manual 4.3).
            prefix = Some(&infos[i]);
        } else if let Some(merge) = merge {
            bind_inst(i as u8, info, &with_merge(recipe, merge, spec), spec, &mut uops);
        } else {
            bind_inst(i as u8, info, recipe, spec, &mut uops);
        }
        uop_end.push(uops.len() as u32);
        let mut mix = Signals::default();
        count_mix(info, (uops.len() - before) as u64, &mut mix);
        count_store_data(&uops[before..], &mut mix);
        all_mix.merge(&mix);
        inst_mix.push(FewSignals::from(&mix));
    }
    let mem: Box<[Option<BoundAccess>]> =
        infos.iter().map(|info| info.mem.map(|op| bind_access(&op, info, spec))).collect();
    let branch = infos.last().map_or(Branch::None, |i| i.branch);
    if let Some(last) = uops.last_mut() {
        last.branches = branch != Branch::None;
    }
    place_words(&mut uops, &mem);
    place_in_blocks(&mut uops, start, u64::from(spec.frontend.fetch_bytes));
    BoundBlock {
        start,
        uops: uops.into(),
        tables: Arc::new(BlockTables {
            followed: Followed::all(&mem),
            mem,
            uop_end: uop_end.into(),
            unknown: unknown.into(),
            inst_mix: inst_mix.into(),
            mix: FewSignals::from(&all_mix),
        }),
        branch,
        profile: vec![Profile::default(); infos.len()].into(),
        origin: 0,
        function: 0,
        begins_function: false,
        marked: false,
        executions: 0,
        known: 0,
        skipped: 0,
        in_windows: None,
        controls: infos.iter().any(|i| i.kind == InstKind::System && (i.serialising || !i.srcs.is_empty())),
        reads_time: infos.iter().any(|i| i.reads_time),
        enters_kernel: infos.last().is_some_and(|i| i.enters_kernel),
        cut: Vec::new(),
    }
}

/// Sets the memory access of each micro-operation, and where its words are.
fn place_words(uops: &mut [BoundUop], mem: &[Option<BoundAccess>]) {
    let starts: Vec<u16> = mem
        .iter()
        .scan(0, |next, m| Some(std::mem::replace(next, *next + m.map_or(0, |m| u16::from(m.words)))))
        .collect();
    for uop in uops {
        uop.mem = mem[usize::from(uop.inst)].unwrap_or(BoundAccess::NONE);
        uop.word = starts[usize::from(uop.inst)];
    }
}

/// Marks the micro-operations with which a fetch block begins.
fn place_in_blocks(uops: &mut [BoundUop], start: u64, fetch_bytes: u64) {
    // One past the last instruction with micro-operations: instructions from there on are read together.
    let mut from = 0;
    for uop in uops {
        let inst = u64::from(uop.inst);
        let aligned = |i: u64| (start + 4 * i).is_multiple_of(fetch_bytes);
        uop.opens_block = (from..=inst).any(aligned);
        uop.crosses_block = from < inst && aligned(inst);
        // A further micro-operation comes with its instruction.
        uop.read_share = if from > inst { 0 } else { share(from < inst) };
        from = inst + 1;
    }
}

/// Appends the micro-operations of one instruction, by its recipe.
fn bind_inst(index: u8, info: &StaticInst, recipe: &Recipe, spec: &Spec, out: &mut Vec<BoundUop>) {
    let first = out.len();
    let roles = Roles::new(info, recipe);
    for (k, uop) in recipe.uops.iter().enumerate() {
        let mut r = blank(index);
        r.flows_from(uop, info, spec);
        r.exclusive = uop.blocking == Blocking::Operation;
        if let (Some(part), Some(op)) = (roles.part(k), info.mem) {
            r.memory(part, roles.parts(), &op, info, spec);
            let share = |ports: u32| ports.div_ceil(roles.parts() as u32).clamp(1, 64) as u8;
            r.fetch_ports = share(recipe.fetch_ports);
            r.store_ports = if recipe.store_ports == 0 { 0 } else { share(recipe.store_ports) };
            r.port_stages = port_stages(op.shape, spec);
        } else if roles.transfers(k) {
            (r.fetch_ports, r.store_ports) = (recipe.fetch_ports as u8, recipe.store_ports as u8);
            r.port_stages = port_stages(Shape::Single, spec);
        }
        if roles.makes_store_data(k) {
            r.action = Action::StoreData;
            let before = out[first..].iter_mut().rfind(|u| u.action == Action::Store);
            before.into_iter().for_each(|store| store.data_forwarded_after = Some(r.latency_of_flows()));
        }
        roles.operands(k, &mut r);
        roles.results(k, &mut r);
        r.bypasses(info);
        r.branch(info, k + 1 == recipe.uops.len());
        r.commit_from(uop, info, spec);
        r.wait = accounting::wait(&r, info, spec);
        r.finish();
        out.push(r);
    }
    if recipe.uops.is_empty() {
        out.push(blank(index));
    }
    readers_first(&mut out[first..]);
    decode_together(&mut out[first..], info, recipe);
}

/// Cycles from the stages in which an access of this shape takes its real fetch and store ports to its execution.
fn port_stages(shape: Shape, spec: &Spec) -> [u8; 2] {
    let s = &spec.load_store;
    let stages = match shape {
        Shape::Indexed => [s.indexed_fetch_stages, s.indexed_store_stages],
        Shape::Single | Shape::Masked => [s.port_stages; 2],
    };
    stages.map(|cycles| cycles as u8)
}

/// Moves a micro-operation that reads a register before the one of its instruction that writes it, unless it depends on
/// that one: a register has one value at a time here.
fn readers_first(uops: &mut [BoundUop]) {
    for i in 0..uops.len() {
        let reads = |j: usize, regs: &[u8]| {
            let own = |reg: &u8| *reg != READY && (uops[j].srcs.contains(reg) || uops[j].addr_srcs.contains(reg));
            regs.iter().any(|reg| own(reg) || (*reg == uops[j].late.src && *reg != READY))
        };
        let carried = |j: usize| uops[i..j].iter().flat_map(|u| u.dsts).filter(|&reg| reg >= TEMP).collect::<Vec<_>>();
        let architectural: Vec<u8> = uops[i].dsts.into_iter().filter(|&reg| reg < READY).collect();
        let reader = (i + 1..uops.len()).find(|&j| reads(j, &architectural) && !reads(j, &carried(j)));
        if let Some(j) = reader {
            uops[i..=j].rotate_right(1);
        }
    }
}

/// How the micro-operations of an instruction are grouped: which are first and last, and what may share their group.
fn decode_together(uops: &mut [BoundUop], info: &StaticInst, recipe: &Recipe) {
    let count = uops.len();
    // A gather or scatter is decoded alone (manual 7.8.2).
    let alone = info.mem.is_some_and(|op| op.shape == Shape::Indexed);
    for (k, r) in uops.iter_mut().enumerate() {
        let last = k + 1 == count;
        r.counts = counts(last, info.kind == InstKind::MovPrfx);
        r.opens_group = recipe.sequential || (k == 0 && (count >= 3 || alone));
        r.closes_group = recipe.sequential || (alone && last);
        r.takes_tor = recipe.temporary_operand && k == 0;
        r.pre_sync = (recipe.pre_sync || info.serialising) && k == 0;
        r.post_sync = (recipe.post_sync || info.serialising) && last;
    }
}

fn blank(inst: u8) -> BoundUop {
    BoundUop {
        action: Action::None,
        attribute: Attribute::None,
        nflows: 0,
        continues: false,
        flows: [BoundFlow::default(); FLOWS],
        srcs: [READY; 6],
        late: Late::NONE,
        addr_srcs: [READY; 4],
        dsts: [READY; 3],
        producers: [Producer::Plain as u8; 3],
        to_commit: 1,
        judgement: 0,
        renames: [0; 4],
        exclusive: false,
        simple: false,
        together: false,
        data_flow: false,
        data_forwarded_after: None,
        brief: Brief::NOTHING,
        opens_group: false,
        closes_group: false,
        pre_sync: false,
        post_sync: false,
        chains: false,
        chain_srcs: 0,
        chain_dsts: 0,
        fetch_ports: 0,
        port_stages: [0; 2],
        store_ports: 0,
        read_share: 0,
        takes_tor: false,
        opens_block: false,
        crosses_block: false,
        branches: false,
        counts: 0,
        vector: false,
        wait: Stall::BaseOperation,
        inst,
        part: 0,
        parts: 1,
        load_latency: 0,
        mem: BoundAccess::NONE,
        word: 0,
    }
}
