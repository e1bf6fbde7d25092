//! Checks our side alone: the description of an instruction (`StaticInst`, the dynamic stream) must agree with its execution,
//! because the timing model sees only the description.

use fxscope_aarch64::cpu::stream_words;
use fxscope_isa::{Access, MemOp, Reg, RegClass, Shape, StaticInst};

use crate::differential::machine::{Case, End, Machine, Outcome, State, WINDOW, WINDOW_BYTES};
use crate::differential::rng::Rng;

/// Returns the first inconsistency, as text.
pub fn complaint(case: &Case, infos: &[StaticInst], machine: &mut Machine, rng: &mut Rng) -> Option<String> {
    let (ours, stream, broken) = machine.run(case);
    if broken.is_some() || ours.end != End::Completed {
        return broken;
    }
    let ops: Vec<MemOp> = infos.iter().filter_map(|i| i.mem).collect();
    let promised: usize = ops.iter().map(|m| stream_words(m, case.vl)).sum();
    if promised != stream.len() {
        return Some(format!("appends {} words to the stream, its MemOp promises {promised}", stream.len()));
    }
    let touched = touched(&ops, &stream, case.vl);
    undeclared_write(case, infos, &ours)
        .or_else(|| undeclared_store(case, &ops, &touched, &ours))
        .or_else(|| undeclared_source(case, infos, &touched, (&ours, &stream), machine, rng))
}

fn all_registers() -> impl Iterator<Item = Reg> {
    (0..Reg::COUNT as u8).map(Reg)
}

/// Returns the value of a register, as words.
fn get(s: &State, r: Reg) -> [u64; 8] {
    let word = match r.class() {
        RegClass::Vector => return s.z[usize::from(r.0) - 32],
        _ if r == Reg::SP => s.sp,
        _ if r == Reg::FFR => s.ffr,
        RegClass::Gpr => s.x[usize::from(r.0)],
        RegClass::Predicate => s.p[usize::from(r.0) - 64],
        RegClass::Flags => s.nzcv,
    };
    [word, 0, 0, 0, 0, 0, 0, 0]
}

fn randomise(s: &mut State, r: Reg, vl: usize, rng: &mut Rng) {
    let p_mask = u64::MAX >> (64 - vl);
    match r.class() {
        RegClass::Vector => s.z[usize::from(r.0) - 32][..vl / 8].fill_with(|| rng.next()),
        _ if r == Reg::SP => s.sp = rng.next(),
        _ if r == Reg::FFR => s.ffr = ((1u128 << rng.below(vl as u64 + 1)) - 1) as u64,
        RegClass::Gpr => s.x[usize::from(r.0)] = rng.next(),
        RegClass::Predicate => s.p[usize::from(r.0) - 64] = rng.next() & p_mask,
        RegClass::Flags => s.nzcv = rng.below(16),
    }
}

fn undeclared_write(case: &Case, infos: &[StaticInst], ours: &Outcome) -> Option<String> {
    let declared: Vec<Reg> = infos.iter().flat_map(|i| i.dsts.iter().chain(i.writeback)).collect();
    all_registers()
        .find(|&r| get(&case.state, r) != get(&ours.state, r) && !declared.contains(&r))
        .map(|r| format!("writes {}, which it does not declare", name(r)))
}

/// Calls `access` with the address and size of each piece of memory that an instruction's words name.
pub fn each_access(op: &MemOp, words: &[u64], vl: usize, mut access: impl FnMut(u64, usize)) {
    let active = |mask: u64, i: usize| mask >> (i * usize::from(op.reg_esize)) & 1 == 1;
    let esize = usize::from(op.mem_esize);
    let bytes = usize::from(op.bytes);
    match op.shape {
        Shape::Single if op.access == Access::ZeroLine => access(words[0] & !(bytes as u64 - 1), bytes),
        Shape::Single => access(words[0], bytes),
        Shape::Masked => {
            let step = if op.structure { esize * usize::from(op.regs) } else { esize };
            let elements = (bytes / step).min(vl / usize::from(op.reg_esize));
            // A broadcast: every bit of the mask stands for the single element in memory.
            if elements == 1 && words[1] != 0 {
                access(words[0], step);
            }
            for i in (0..elements).filter(|&i| active(words[1], i)) {
                access(words[0].wrapping_add((i * step) as u64), step);
            }
        }
        Shape::Indexed => {
            let addresses = words[1..].iter().enumerate().filter(|(i, _)| active(words[0], *i));
            addresses.for_each(|(_, &address)| access(address, esize));
        }
    }
}

/// Returns for each byte of the window whether the dynamic stream names it as accessed.
fn touched(ops: &[MemOp], mut stream: &[u64], vl: usize) -> [bool; WINDOW_BYTES] {
    let mut touched = [false; WINDOW_BYTES];
    for op in ops {
        let (words, rest) = stream.split_at(stream_words(op, vl));
        stream = rest;
        each_access(op, words, vl, |address, bytes| {
            let start = (address & ((1 << 56) - 1)).wrapping_sub(WINDOW);
            for at in (0..bytes as u64).map(|i| start.wrapping_add(i)) {
                if let Some(byte) = usize::try_from(at).ok().and_then(|at| touched.get_mut(at)) {
                    *byte = true;
                }
            }
        });
    }
    touched
}

fn undeclared_store(case: &Case, ops: &[MemOp], touched: &[bool; WINDOW_BYTES], ours: &Outcome) -> Option<String> {
    let stores = ops.iter().any(|m| matches!(m.access, Access::Store | Access::Atomic | Access::ZeroLine));
    let (before, after) = (case.window.as_ref()?, ours.window.as_ref()?);
    (0..WINDOW_BYTES)
        .find(|&i| before[i] != after[i] && !(stores && touched[i]))
        .map(|i| format!("changes memory at {:#x}, which its stream does not name", WINDOW + i as u64))
}

/// Returns whether a result changes with a register or memory that is not declared as read.
fn undeclared_source(
    case: &Case,
    infos: &[StaticInst],
    touched: &[bool; WINDOW_BYTES],
    (ours, stream): (&Outcome, &[u64]),
    machine: &mut Machine,
    rng: &mut Rng,
) -> Option<String> {
    let declared: Vec<Reg> = infos.iter().flat_map(|i| i.srcs.iter().chain(i.addr_srcs.iter())).collect();
    let results: Vec<Reg> = infos.iter().flat_map(|i| i.dsts.iter().chain(i.writeback)).collect();
    let others: Vec<Reg> = all_registers().filter(|r| !declared.contains(r)).collect();
    let mut differs = |registers: &[Reg], memory: bool, rng: &mut Rng| {
        let mut changed = case.clone();
        registers.iter().for_each(|&r| randomise(&mut changed.state, r, case.vl, rng));
        if memory && let Some(window) = &mut changed.window {
            (0..WINDOW_BYTES).filter(|&i| !touched[i]).for_each(|i| window[i] = !window[i]);
        }
        let (other, words, _) = machine.run(&changed);
        let same_memory = match (&ours.window, &other.window) {
            (Some(a), Some(b)) => (0..WINDOW_BYTES).all(|i| !touched[i] || a[i] == b[i]),
            _ => true,
        };
        let same_registers = results.iter().all(|&r| get(&ours.state, r) == get(&other.state, r));
        let status = |o: &Outcome| (o.end, o.state.pc, o.state.fpsr, o.state.fpcr);
        !(same_memory && same_registers && status(ours) == status(&other) && words == stream)
    };
    if !differs(&others, true, rng) {
        return None;
    }
    let culprit = others.iter().find(|&&r| differs(&[r], false, rng));
    Some(match culprit {
        Some(&r) => format!("reads {}, which it does not declare", name(r)),
        None => "reads memory that its stream does not name".into(),
    })
}

fn name(r: Reg) -> String {
    match r.class() {
        _ if r == Reg::SP => "SP".into(),
        _ if r == Reg::FFR => "FFR".into(),
        RegClass::Gpr => format!("X{}", r.0),
        RegClass::Vector => format!("Z{}", r.0 - 32),
        RegClass::Predicate => format!("P{}", r.0 - 64),
        RegClass::Flags => "NZCV".into(),
    }
}
