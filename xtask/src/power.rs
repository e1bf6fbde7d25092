//! `calibrate power`: fits the energy of cores, L2 caches and memory, `[energy]` of the machine.
//!
//! The measured programs of `testdata/import/fapp` have counts of energy beside those of the events that consume it. Each of
//! the three kinds of energy is fitted as a sum of a few terms per cycle, minimising the squared relative errors over the
//! programs. Events of a thread are divided by its cycles in the same pass; threads are averaged. The chip's power, `[power]`, is then
//! fitted to measured watts: see [`chip`].

mod chip;

use std::collections::BTreeMap;
use std::path::Path;

use fxscope_machine::spec::Energy;

use crate::root;

/// Passes of the profiler with the events that are needed.
const PASSES: [u32; 3] = [3, 8, 17];
/// Numbers of events (`data/machines/a64fx/pmu.csv`).
const EA_CORE: u16 = 0x01e0;
const EA_L2: u16 = 0x03e0;
const EA_MEMORY: u16 = 0x03e8;
const FLA_VAL_PRD_CNT: u16 = 0x01b4;
const FLB_VAL_PRD_CNT: u16 = 0x01b5;
const L1_PIPE0_VAL: u16 = 0x0240;
const L1_PIPE1_VAL: u16 = 0x0241;
const L2_PIPE_VAL: u16 = 0x0330;
const BUS_READ_TOTAL_MEM: u16 = 0x0316;
const BUS_WRITE_TOTAL_MEM: u16 = 0x031e;

/// Picojoules per nanojoule, and per second of one milliwatt.
const PJ_PER_NJ: f64 = 1e3;
const PJ_PER_MW_SECOND: f64 = 1e9;

/// A measured program.
struct Program {
    name: String,
    clock_hz: f64,
    /// Events per cycle, mean of the threads.
    rates: BTreeMap<u16, f64>,
}

impl Program {
    fn sum(&self, events: &[u16]) -> f64 {
        events.iter().map(|event| self.rates.get(event).copied().unwrap_or(f64::NAN)).sum()
    }
}

/// A term: the key of its coefficient in the machine's table, and its amount per cycle.
type Term = (&'static str, fn(&Program) -> f64);

/// One kind of energy.
struct Kind {
    event: u16,
    name: &'static str,
    count_nj: u64,
    terms: &'static [Term],
}

/// A fitted coefficient, with its key.
type Found = (&'static str, u64);

fn kinds(energy: &Energy) -> [Kind; 3] {
    [
        Kind {
            event: EA_CORE,
            name: "EA_CORE",
            count_nj: energy.core_count_nj,
            terms: &[
                ("core_cycle_pj", |_| 1.0),
                ("vector_operation_pj", |p| p.sum(&[FLA_VAL_PRD_CNT, FLB_VAL_PRD_CNT]) / 16.0),
                ("load_store_cycle_pj", |p| p.sum(&[L1_PIPE0_VAL, L1_PIPE1_VAL])),
            ],
        },
        Kind {
            event: EA_L2,
            name: "EA_L2",
            count_nj: energy.l2_count_nj,
            terms: &[("l2_cycle_pj", |_| 1.0), ("l2_pipe_cycle_pj", |p| p.sum(&[L2_PIPE_VAL]))],
        },
        Kind {
            event: EA_MEMORY,
            name: "EA_MEMORY",
            count_nj: energy.memory_count_nj,
            terms: &[
                ("memory_mw", |p| PJ_PER_MW_SECOND / p.clock_hz),
                ("memory_line_pj", |p| p.sum(&[BUS_READ_TOTAL_MEM, BUS_WRITE_TOTAL_MEM])),
            ],
        },
    ]
}

/// Fits all kinds of energy, and prints the errors and the entries of the machine's table.
///
/// # Errors
/// If a measured program cannot be read.
pub fn run() -> Result<(), String> {
    let spec = fxscope_machine::load("a64fx", &[]).map_err(|e| e.to_string())?;
    let energy = spec.tables.energy.clone();
    let programs = programs(&root().join("testdata/import/fapp"))?;
    let mut all = Vec::new();
    for kind in kinds(&energy) {
        let found = fit(&kind, &programs);
        println!("{}, counts of {} nJ: measured and fitted per cycle, pJ", kind.name, kind.count_nj);
        for program in &programs {
            let (measured, fitted) = (measured(&kind, program), fitted(&kind, &found, program));
            let off = 100.0 * (fitted / measured - 1.0);
            println!("  {:<12} {measured:>9.1} {fitted:>9.1} {off:>+6.1} %", program.name);
        }
        println!("  root of the mean square of relative errors: {:.1} %", 100.0 * rms(&kind, &found, &programs));
        all.extend(found);
    }
    println!("[energy]");
    all.iter().for_each(|(key, value)| println!("{key} = {value}"));
    chip::run(&root(), &spec)
}

/// Returns the measured energy per cycle, pJ.
fn measured(kind: &Kind, program: &Program) -> f64 {
    program.sum(&[kind.event]) * kind.count_nj as f64 * PJ_PER_NJ
}

/// Returns the energy per cycle by the terms, pJ.
fn fitted(kind: &Kind, found: &[Found], program: &Program) -> f64 {
    kind.terms.iter().zip(found).map(|((_, amount), (_, each))| amount(program) * *each as f64).sum()
}

fn rms(kind: &Kind, found: &[Found], programs: &[Program]) -> f64 {
    let error = |p: &Program| (fitted(kind, found, p) / measured(kind, p) - 1.0).powi(2);
    (programs.iter().map(error).sum::<f64>() / programs.len() as f64).sqrt()
}

/// Returns the coefficients with the least squares of relative errors, as integers.
fn fit(kind: &Kind, programs: &[Program]) -> Vec<Found> {
    let rows: Vec<Vec<f64>> =
        programs.iter().map(|p| kind.terms.iter().map(|(_, amount)| amount(p) / measured(kind, p)).collect()).collect();
    let n = kind.terms.len();
    let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
    let total = |i: usize| rows.iter().map(|row| row[i]).sum::<f64>();
    let equations = (0..n).map(|i| (0..n).map(|j| product(i, j)).chain([total(i)]).collect()).collect();
    kind.terms.iter().zip(solve(equations)).map(|((key, _), x)| (*key, x.round() as u64)).collect()
}

/// Solves linear equations, each a row of coefficients and the right-hand side, by elimination.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    for i in 0..n {
        let largest = (i..n).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs())).unwrap_or(i);
        rows.swap(i, largest);
        let pivot = rows[i].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|&(k, _)| k != i) {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    (0..n).map(|i| rows[i][n] / rows[i][i]).collect()
}

/// Reads the measured programs in the folders of `folder`, by name.
fn programs(folder: &Path) -> Result<Vec<Program>, String> {
    let read = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut folders: Vec<_> = std::fs::read_dir(folder).map_err(read)?.flatten().map(|e| e.path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders.iter().map(|path| program(path)).collect()
}

fn program(folder: &Path) -> Result<Program, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut program = Program { name, clock_hz: 0.0, rates: BTreeMap::new() };
    for pass in PASSES {
        let path = folder.join(format!("pa{pass}.csv"));
        read_pass(&path, &mut program).map_err(|what| format!("{}: {what}", path.display()))?;
    }
    Ok(program)
}

/// Adds the rates of one pass: lines `FAPP-cpupa,Thread,…,CNTVCT,PMCCNTR,counts` below one with the events' numbers.
fn read_pass(path: &Path, program: &mut Program) -> Result<(), String> {
    const CNTVCT: usize = 8;
    const FIRST_EVENT: usize = 10;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(path).map_err(|e| e.to_string())?;
    let mut events: Vec<Option<u16>> = Vec::new();
    let (mut sums, mut threads, mut clock) = (BTreeMap::<u16, f64>::new(), 0.0, 0.0);
    let mut timer_hz = 0.0;
    for record in reader.records() {
        let record = record.map_err(|e| e.to_string())?;
        let number = |i: usize| record.get(i).and_then(|text| text.parse::<f64>().ok()).ok_or("a count is missing");
        match (record.get(0), record.get(1)) {
            (Some("FAPP-info"), Some("Timer clock frequency")) => timer_hz = number(2)?,
            (Some("LABEL-FAPP-cpupa"), _) => {
                let code = |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                events = record.iter().skip(FIRST_EVENT).map(code).collect();
            }
            (Some("FAPP-cpupa"), Some("Thread")) => {
                let cycles = number(CNTVCT + 1)?;
                threads += 1.0;
                clock += cycles / number(CNTVCT)? * timer_hz;
                for (i, event) in events.iter().enumerate() {
                    if let Some(event) = event {
                        *sums.entry(*event).or_default() += number(FIRST_EVENT + i)? / cycles;
                    }
                }
            }
            _ => {}
        }
    }
    if threads == 0.0 {
        return Err("no thread".to_owned());
    }
    program.clock_hz = clock / threads;
    program.rates.extend(sums.into_iter().map(|(event, sum)| (event, sum / threads)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_the_energies_that_the_measured_programs_give_within_four_percent() {
        let energy = fxscope_machine::load("a64fx", &[]).expect("built in").tables.energy;
        let of_the_machine = BTreeMap::from([
            ("core_cycle_pj", energy.core_cycle_pj),
            ("vector_operation_pj", energy.vector_operation_pj),
            ("load_store_cycle_pj", energy.load_store_cycle_pj),
            ("l2_cycle_pj", energy.l2_cycle_pj),
            ("l2_pipe_cycle_pj", energy.l2_pipe_cycle_pj),
            ("memory_mw", energy.memory_mw),
            ("memory_line_pj", energy.memory_line_pj),
        ]);
        let programs = programs(&root().join("testdata/import/fapp")).expect("measured programs");
        assert_eq!(programs.len(), 10);
        for kind in kinds(&energy) {
            let found = fit(&kind, &programs);
            for (key, value) in &found {
                assert_eq!(of_the_machine[key], *value, "{key}");
            }
            let rms = rms(&kind, &found, &programs);
            assert!(rms < 0.04, "{}: {rms}", kind.name);
        }
    }

    #[test]
    fn equations_are_solved_whatever_their_order() {
        // 2 y = 6; x + y = 5.
        assert_eq!(solve(vec![vec![0.0, 2.0, 6.0], vec![1.0, 1.0, 5.0]]), [2.0, 3.0]);
    }
}
