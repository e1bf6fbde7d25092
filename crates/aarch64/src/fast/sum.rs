//! Sums of the elements of a vector.
//!
//! A partial sum that is finite and above the smallest normal number is Arm's, and so is a zero: [`crate::fp::host`] has the
//! conditions. If there is another one, the instruction is left to its executing function.

use fxscope_guestmem::Memory;

use super::{FastPath, interpret};
use crate::cpu::{Cpu, Vreg};
use crate::fp::host::{HostFloat, sum_is_certain};
use crate::insn::sve_common::{Element, active, first_elements};
use crate::table::{Inst, bits};

/// See [`super::find_float`].
pub(super) fn find(name: &str, word: u32) -> Option<FastPath> {
    match (name, bits(word, 22, 2)) {
        ("FADDA", 2) => Some(ordered::<f32, u32>),
        ("FADDA", 3) => Some(ordered::<f64, u64>),
        ("FADDV", 2) => Some(tree::<f32, u32>),
        ("FADDV", 3) => Some(tree::<f64, u64>),
        _ => None,
    }
}

/// Writes a number to the lowest element of `rd`, and zero above.
fn write<H: HostFloat>(cpu: &mut Cpu, i: &Inst, number: H) {
    let mut result = Vreg::ZERO;
    result.lanes_mut::<H>()[0] = number;
    *cpu.z_mut(i.rd) = result;
}

/// `rd` plus the active elements of `rm`, one after the other.
extern "C" fn ordered<H: HostFloat, E: Element>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    let (p, elements) = (active::<E>(cpu.p(i.pg)), cpu.z(i.rm).lanes::<H>());
    let (mut sum, mut certain) = (cpu.z(i.rd).lanes::<H>()[0], true);
    let mut add = |element: H| {
        sum = sum + element;
        certain &= sum_is_certain(sum);
    };
    if p == first_elements(E::LOG2, elements.len()) {
        elements.iter().for_each(|&element| add(element));
    } else {
        let is_active = |e: usize| p >> (e << E::LOG2) & 1 == 1;
        elements.iter().enumerate().filter(|&(e, _)| is_active(e)).for_each(|(_, &element)| add(element));
    }
    if !certain {
        return interpret(cpu, mem, i);
    }
    write(cpu, i, sum);
    false
}

/// The sum of the active elements of `rn`, adjacent ones first.
extern "C" fn tree<H: HostFloat, E: Element>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    let p = active::<E>(cpu.p(i.pg));
    let mut left = cpu.vl >> E::LOG2;
    let mut sums = *cpu.z(i.rn);
    let sums = &mut sums.lanes_mut::<H>()[..left];
    for (e, sum) in sums.iter_mut().enumerate() {
        if p >> (e << E::LOG2) & 1 == 0 {
            *sum = H::ZERO;
        }
    }
    let mut certain = true;
    while left > 1 {
        left /= 2;
        for e in 0..left {
            sums[e] = sums[2 * e] + sums[2 * e + 1];
            certain &= sum_is_certain(sums[e]);
        }
    }
    if !certain {
        return interpret(cpu, mem, i);
    }
    let sum = sums[0];
    write(cpu, i, sum);
    false
}
