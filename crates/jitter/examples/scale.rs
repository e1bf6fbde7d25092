//! Measures the time of a simulation: `cargo run --profile fast -p fxscope-jitter --example scale -- MODEL NODES CORES
//! GRAIN PHASES [barrier|halo]`. Prints detours, seconds and the peak memory of the process.

use std::time::Instant;

use fxscope_jitter::scale::{PhaseEnd, Setup, simulate};
use fxscope_jitter::{Time, model, network};

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, nodes, cores, grain, phases, rest @ ..] = &args[..] else {
        return Err("give MODEL NODES CORES GRAIN PHASES [barrier|halo]".to_owned());
    };
    let number = |text: &String| text.parse::<u32>().map_err(|e| format!("{text}: {e}"));
    let nodes = number(nodes)?;
    let phase_end = match rest.first().map(String::as_str) {
        Some("halo") => PhaseEnd::Neighbours { cost: 2000, grid: network::grid(nodes) },
        _ => PhaseEnd::All { cost: 2000 },
    };
    let grain = grain.parse::<Time>()?.ns();
    let phases = u64::from(number(phases)?);
    let setup = Setup { nodes, cores: number(cores)?, grain, imbalance: 0.0, phases, end: phase_end, seed: 1 };
    let model = model::load(model)?;
    let start = Instant::now();
    let outcome = simulate(&model, &setup)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    println!("detours about {:.3e}, {seconds:.1} s, {peak}", setup.detours(&model));
    println!("slowdown {:.5}, {:?}, lost {:?}", outcome.slowdown(), outcome.confidence, outcome.lost);
    Ok(())
}
