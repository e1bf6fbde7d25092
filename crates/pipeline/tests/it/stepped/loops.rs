//! Random loops: a few instructions over and over, which amplify what differs between the models.

use fxscope_machine::Spec;

use crate::common::*;
use crate::stepped::parts::{Step, steps};
use crate::stepped::{Both, Deviations, LOADS, STORES, rig, twin};

/// A loop of 20 to 60 instructions in a mix as compiled numerical kernels have it.
fn kernel(r: &mut Random) -> Vec<Inst> {
    let n = 19 + r.below(41);
    let vectors = 4 + r.below(20);
    let integers = 4 + r.below(12);
    // How much of it is memory, vector and integer work varies from loop to loop.
    let (memory, vector, integer) = (10 + r.below(30), 10 + r.below(40), 10 + r.below(40));
    let mut body: Vec<Inst> = (0..n)
        .map(|i| {
            let load = LOADS + r.below(16) * 64;
            let store = STORES + i % 48 * 64;
            let mut pick = r.below(memory + vector + integer + 4);
            let (v, w, a, b) = (r.reg(vectors), r.reg(vectors), r.reg(integers), r.reg(integers));
            if pick < memory {
                return match r.below(8) {
                    0..=2 => ld1d(v, 20, 7, load),
                    3 => ldr_d(v, 20, load),
                    4 | 5 => ldr(a, if r.below(4) == 0 { b } else { 20 }, load),
                    6 => st1d(v, 20, 7, store),
                    _ => str(a, 20, store),
                };
            }
            pick -= memory;
            if pick < vector {
                return match r.below(8) {
                    0..=3 => fmla(v, w),
                    4 | 5 => fadd(v, w),
                    6 => vector_and(v, w),
                    _ => sel(v, w, 7),
                };
            }
            pick -= vector;
            if pick < integer {
                return match r.below(8) {
                    0..=3 => add(a, b),
                    4 => adds(a, b),
                    5 => csel(a, b),
                    6 => mul(a, b),
                    _ => op("base:ADD (shifted register) [LSL 1-4]").reads(&[x(b)]).writes(&[x(a)]),
                };
            }
            match r.below(4) {
                0 => ptrue(r.reg(4)),
                1 => pand(r.reg(4), r.reg(4)),
                2 => op("sve:FDIV [T=S]").reads(&[z(w)]).writes(&[z(v)]),
                _ => sequential(v, w),
            }
        })
        .collect();
    body.push(adds(19, 19));
    body.push(b_cond());
    body
}

const ROUNDS: usize = 60;

/// The loop's rounds as the stepped model has them: the target of its branch is fetched late until the small
/// predictor follows it or the buffer supplies it.
fn unrolled(block: &Block, spec: &Spec) -> Vec<Step> {
    let f = &spec.frontend;
    let in_buffer = block.accesses().len() as u32 <= f.buffer_insts;
    let target_after = |round: u32| {
        // The branch has been seen once.
        let followed = round >= f.small_taken_threshold || (in_buffer && round >= f.short_loop_threshold);
        if followed { 1 } else { f.taken_branch_cycles }
    };
    (0..ROUNDS as u32).flat_map(|round| steps(block, Some(target_after(round)))).collect()
}

fn both(seed: u64) -> Both {
    let body = kernel(&mut Random::new(seed));
    let mut rig = rig();
    let model = rig.time_loop(&body, ROUNDS);
    let steps = unrolled(&Block::new(CODE, &body, &rig.spec), &rig.spec);
    Both { seed, model, stepped: twin::cycles(&rig.spec, &steps) }
}

#[test]
fn nineteen_of_twenty_random_loops_take_as_long_as_in_a_core_that_steps_every_cycle_within_2_percent() {
    let all = Deviations::of(400, both);
    all.print("loops");
    assert!(all.mean() < 0.01, "on average");
    assert!(20 * all.outside().len() <= all.0.len(), "{} loops", all.outside().len());
}
