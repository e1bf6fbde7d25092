//! The instruction-driven model against a model of the same core that steps every cycle.

use crate::common;
mod front;
mod loops;
mod parts;
mod streams;
mod twin;

use common::{DATA, LINE, Rig, machine};
use fxscope_machine::Spec;

/// Loads read one region, stores write another, and both meet in a third one; all stay in the L1D cache. They lie apart
/// within their pages too: loads meet stores in the pipes by their places in a page.
const LOADS: u64 = DATA;
const STORES: u64 = DATA + 36 * LINE;
const SHARED: u64 = DATA + 18 * LINE;

/// The machine as both models have it: the stepped one knows what starts a cycle before it does, no earlier, and never
/// mispredicts, so the target buffer has room for all branches.
fn spec() -> Spec {
    let mut spec = machine();
    spec.tables.frontend.btb_entries *= 16;
    spec.tables.stations.release_vector = spec.stations.release_integer;
    spec
}

/// A core that has the data of the loops and streams in its L1D cache.
fn rig() -> Rig {
    rig_forwarding_vectors_later(0)
}

/// The same, but loads of vectors find stored data this number of cycles later than the machine file says.
fn rig_forwarding_vectors_later(cycles: u64) -> Rig {
    let mut spec = spec();
    spec.tables.load_store.forward_vector += cycles;
    Rig::cached(spec)
}

/// Cycles of the model and of the stepped one for the same program.
#[derive(Clone, Copy)]
struct Both {
    seed: u64,
    model: u64,
    stepped: u64,
}

impl Both {
    /// How much longer the model takes, as a fraction.
    fn deviation(&self) -> f64 {
        (self.model as f64 - self.stepped as f64) / self.stepped as f64
    }
}

/// Deviations over random programs.
struct Deviations(Vec<Both>);

impl Deviations {
    /// Sorted by deviation.
    fn of(seeds: u64, both: impl Fn(u64) -> Both) -> Deviations {
        Deviations::of_some(seeds, |seed| Some(both(seed)))
    }

    /// Of those programs only that both models can run.
    fn of_some(seeds: u64, both: impl Fn(u64) -> Option<Both>) -> Deviations {
        let mut all: Vec<Both> = (1..=seeds).filter_map(both).collect();
        all.sort_by(|a, b| a.deviation().total_cmp(&b.deviation()));
        Deviations(all)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|both| both.deviation().abs()).sum::<f64>() / self.0.len() as f64
    }

    /// Those that are 2 % off or more.
    fn outside(&self) -> Vec<&Both> {
        self.0.iter().filter(|both| both.deviation().abs() >= 0.02).collect()
    }

    fn print(&self, what: &str) {
        let all = &self.0;
        let bias = all.iter().map(Both::deviation).sum::<f64>() / all.len() as f64;
        println!(
            "deviation of the model's cycles: mean {:.2} %, with sign {:+.2} %",
            100.0 * self.mean(),
            100.0 * bias
        );
        for percent in [0, 5, 25, 50, 75, 95, 100] {
            let at = all[(all.len() - 1) * percent / 100];
            println!("  {percent:3} % of {what} are below {:+.2} % (seed {})", 100.0 * at.deviation(), at.seed);
        }
        let outside = self.outside();
        println!("  {} of {} {what} are within 2 %", all.len() - outside.len(), all.len());
        for both in outside {
            println!("  seed {}: {:+.2} %, {} for {}", both.seed, 100.0 * both.deviation(), both.model, both.stepped);
        }
    }
}
