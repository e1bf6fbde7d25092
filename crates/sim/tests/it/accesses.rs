//! Which micro-operations access memory follows from the instruction, never from the latencies of its row.

use std::sync::Arc;

use fxscope_aarch64::coverage::samples;
use fxscope_aarch64::table::encodings;
use fxscope_isa::{Access, StaticInst};
use fxscope_machine::{Pipes, Recipe, Spec};
use fxscope_pipeline::bind_block;

const EAG: Pipes = Pipes::EAGA.or(Pipes::EAGB);
/// Words of each encoding: enough for all forms that have rows of their own.
const WORDS: u32 = 600;

fn a64fx(bits: usize) -> Spec {
    fxscope_machine::load("a64fx", &[("clock.vector_bits".to_owned(), bits.to_string())]).expect("built in")
}

/// The same machine when a load that hits takes `latency` cycles, whatever its registers are.
fn with_load_latency(bits: usize, latency: u32) -> Spec {
    let mut spec = a64fx(bits);
    let faster = |recipe: &Recipe| {
        let mut recipe = recipe.clone();
        // The shortest load of this machine takes 5 cycles, an operation on addresses 1.
        let flows = Arc::make_mut(&mut recipe.uops)
            .iter_mut()
            .flat_map(|uop| &mut uop.flows)
            .filter(|f| f.pipes.within(EAG) && f.latency >= 5);
        flows.for_each(|flow| (flow.latency, flow.latency_max) = (latency, latency));
        recipe
    };
    let recipes: Vec<_> = spec.recipes.sorted().map(|(class, r)| (class.to_owned(), faster(r))).collect();
    spec.recipes = recipes.into_iter().collect();
    spec
}

/// What each micro-operation of an instruction does, and which part of its access.
fn roles(info: &StaticInst, spec: &Spec) -> Vec<(String, u8, u8, u8)> {
    let block = bind_block(0, std::slice::from_ref(info), spec);
    block.uops.iter().map(|uop| (format!("{:?}", uop.action), uop.part, uop.parts, uop.nflows)).collect()
}

/// They take many seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn loads_of_any_latency_are_the_same_accesses() {
        let mut loads = 0;
        for bits in [128, 256, 512] {
            let spec = a64fx(bits);
            let others = [1, 3, 4, 20].map(|latency| with_load_latency(bits, latency));
            for encoding in encodings() {
                for (decoded, vl) in samples(encoding, WORDS).filter(|(d, vl)| d.info.mem.is_some() && vl * 8 == bits) {
                    let info = &decoded.info;
                    let expected = roles(info, &spec);
                    loads += u32::from(info.mem.is_some_and(|op| op.access == Access::Load));
                    assert!(
                        expected.iter().any(|(action, ..)| action != "None" && action != "Compute"),
                        "{}",
                        encoding.name
                    );
                    for other in &others {
                        assert_eq!(roles(info, other), expected, "{} at {vl} bytes", encoding.name);
                    }
                }
            }
        }
        assert!(loads > 10_000, "{loads} loads");
    }
}
