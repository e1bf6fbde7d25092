//! The instruction-driven model against a model of the same core that steps every cycle.

#[path = "../common/mod.rs"]
mod common;
mod parts;
mod twin;

use common::*;

/// Loads read one region, stores write another; both stay in the L1D cache. They lie apart within their pages too:
/// loads meet stores in the pipes by their places in a page.
const LOADS: u64 = DATA;
const STORES: u64 = DATA + 36 * LINE;

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
            let (v, w, x, y) = (r.reg(vectors), r.reg(vectors), r.reg(integers), r.reg(integers));
            if pick < memory {
                return match r.below(8) {
                    0..=2 => ld1d(v, 20, 7, load),
                    3 => ldr_d(v, 20, load),
                    4 | 5 => ldr(x, if r.below(4) == 0 { y } else { 20 }, load),
                    6 => st1d(v, 20, 7, store),
                    _ => str(x, 20, store),
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
                    0..=3 => add(x, y),
                    4 => adds(x, y),
                    5 => csel(x, y),
                    6 => mul(x, y),
                    _ => op("base:ADD (shifted register) [LSL 1-4]").reads(&[common::x(y)]).writes(&[common::x(x)]),
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

/// Cycles of both models for one loop.
fn both(body: &[Inst]) -> (u64, u64) {
    let mut spec = machine();
    // The other model knows what starts a cycle before it does, no earlier.
    spec.tables.stations.release_vector = spec.stations.release_integer;
    let mut rig = Rig::new(spec);
    rig.warm((0..64).map(|i| DATA + i * LINE));
    let model = rig.time_loop(body, ROUNDS);
    let twin = twin::cycles(&rig.spec, &Block::new(CODE, body, &rig.spec), ROUNDS);
    (model, twin)
}

/// Relative deviations of the model from the twin over random loops, smallest first.
fn deviations(loops: u64) -> Vec<(f64, u64)> {
    let mut all: Vec<(f64, u64)> = (1..=loops)
        .map(|seed| {
            let (model, twin) = both(&kernel(&mut Random::new(seed)));
            ((model as f64 - twin as f64) / twin as f64, seed)
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

#[test]
fn the_model_agrees_with_a_core_that_steps_every_cycle() {
    let all = deviations(400);
    let mean = all.iter().map(|d| d.0.abs()).sum::<f64>() / all.len() as f64;
    let bias = all.iter().map(|d| d.0).sum::<f64>() / all.len() as f64;
    let at = |percent: usize| all[(all.len() - 1) * percent / 100];
    println!("deviation of the model's cycles: mean {:.2} %, with sign {:+.2} %", 100.0 * mean, 100.0 * bias);
    for percent in [0, 5, 25, 50, 75, 95, 100] {
        println!("  {percent:3} % of loops are below {:+.2} % (seed {})", 100.0 * at(percent).0, at(percent).1);
    }
    let close = all.iter().filter(|d| d.0.abs() < 0.02).count();
    println!("  {close} of {} loops are within 2 %", all.len());
    assert!(mean < 0.01, "on average");
    assert!(100 * close >= 95 * all.len(), "{close} loops");
}
